"""The check that a gate which a person stopped stays where it is, through lost controllers and restarts."""

from __future__ import annotations

from drivers.contract import GatePosition
from gateway.domain.commands import GateAction
from gateway.domain.events import EventKind
from simulation.virtual_site import observations as seen
from simulation.virtual_site.lane_field import FIRE

_ON_ITS_WAY_SECONDS = 0.05
_CARD_SECONDS = 1.5


class StoppingCheck:
    """The rule that no gate moves after a stop that was acknowledged and seen to work, until there is a reason.

    Reasons are a person's command, a card that may pass, a gate that is closed by hand, and a fire. A reason that comes
    after the stop was given counts too, even if the line answers the stop only later. The rule holds through a restart
    if the begin of the stop was on disk.
    """

    promise = "what a person stopped is not moved"
    wants = (
        seen.Asked,
        seen.Presented,
        seen.Called,
        seen.Answered,
        seen.PositionReported,
        seen.PointReported,
        seen.GateAway,
        seen.Acknowledged,
        seen.Ended,
    )

    def __init__(self) -> None:
        self._position: dict[str, GatePosition] = {}
        self._stop_asked: set[str] = set()
        self._stop_acknowledged: set[str] = set()
        self._stopped: dict[str, float] = {}
        self._on_disk: set[str] = set()
        self._card_at: dict[str, float] = {}

    def see(self, observation: seen.Observation) -> str:
        """Judge an observation; return a sentence when it breaks the promise, otherwise ""."""
        match observation:
            case seen.Asked():
                self._note_asked(observation)
            case seen.Presented():
                if observation.good is not False:
                    self._card_at[observation.lane] = observation.at
                    self._over(observation.lane)
            case seen.Answered(action=GateAction.STOP, acknowledged=True) if observation.lane in self._stop_asked:
                self._stop_acknowledged.add(observation.lane)
                self._judge_stop(observation.lane, observation.at)
            case seen.PositionReported():
                self._position[observation.lane] = observation.position
                if observation.position is GatePosition.CLOSED:
                    self._over(observation.lane)
                self._judge_stop(observation.lane, observation.at)
            case seen.PointReported(point=point) if point == FIRE:
                self._over(observation.lane)
            case seen.GateAway():
                self._position.pop(observation.lane, None)
            case seen.Called():
                return self._judge(observation)
            case seen.Acknowledged():
                self._note_recorded(observation)
            case seen.Ended():
                self._forget_unrecorded()
            case _:
                pass
        return ""

    def _note_asked(self, asked: seen.Asked) -> None:
        if asked.action is GateAction.STOP:
            self._stop_asked.add(asked.lane)
        elif asked.action in {GateAction.OPEN, GateAction.CLOSE}:
            self._over(asked.lane)

    def _judge_stop(self, lane: str, at: float) -> None:
        recent_card = at - self._card_at.get(lane, -_CARD_SECONDS) < _CARD_SECONDS
        if lane in self._stop_acknowledged and self._position.get(lane) is GatePosition.STOPPED and not recent_card:
            self._stopped.setdefault(lane, at)

    def _judge(self, called: seen.Called) -> str:
        if called.action is GateAction.STOP:
            return ""
        since = self._stopped.get(called.lane)
        if since is None or called.at <= since + _ON_ITS_WAY_SECONDS:
            self._stop_acknowledged.discard(called.lane)
            return ""
        self._over(called.lane)
        return f"{called.action} was sent in {called.lane} {called.at - since:.1f} s after a person's stop had worked"

    def _note_recorded(self, observation: seen.Acknowledged) -> None:
        for event in observation.entry.events:
            if event.kind is EventKind.STOP_BEGAN:
                self._on_disk.add(event.lane_id)
            elif event.kind is EventKind.STOP_ENDED:
                self._on_disk.discard(event.lane_id)

    def _forget_unrecorded(self) -> None:
        self._stopped = {lane: at for lane, at in self._stopped.items() if lane in self._on_disk}
        self._stop_asked.clear()
        self._stop_acknowledged.clear()
        self._position.clear()

    def _over(self, lane: str) -> None:
        self._stopped.pop(lane, None)
        self._stop_asked.discard(lane)
        self._stop_acknowledged.discard(lane)
