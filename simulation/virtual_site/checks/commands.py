"""Promise 2: no command is replayed, and none acts after its deadline. Also: no gate opens without a reason."""

from __future__ import annotations

from drivers.contract import GatePosition, PointState
from gateway.domain.commands import FINAL_STATES, Command, CommandState, GateAction
from simulation.virtual_site import observations as seen
from simulation.virtual_site.lane_field import CLOSING, FIRE, PHOTOCELL

_DECISION_SECONDS = 1.0
_SLACK = 0.05
_SAFETY = frozenset({CLOSING, PHOTOCELL})
_ONE_EXCHANGE = 0.6  # a driver with a busy line reports a passed deadline by this much later
_UNDO_TRIES = 3
_UNDONE_WITHIN = 30.0


class CommandsCheck:
    """The rule that each open on the line has a reason: a card or a person in the same life of the gateway, used once.

    Other reasons are a fire, and a close that must be undone because something is in the way or its outcome is unknown;
    that allows three opens at most.
    """

    promise = "2 no command is replayed or late"
    wants = (
        seen.Presented,
        seen.Asked,
        seen.Called,
        seen.Wrote,
        seen.Answered,
        seen.Acknowledged,
        seen.Started,
        seen.Ended,
        seen.PointReported,
        seen.PositionReported,
        seen.Refreshed,
        seen.GateAway,
        seen.ModuleAway,
        seen.PollMissed,
    )

    def __init__(self, *, command_life: float, stale: float = 5.0) -> None:
        self._life = command_life
        self._stale = stale
        self._fire_until: dict[str, float] = {}
        self._reasons: dict[str, list[float]] = {}
        self._states: dict[str, CommandState] = {}
        self._left_open: set[str] = set()
        self._undo = _Undo(stale=stale)

    def see(self, observation: seen.Observation) -> str:
        """Judge an observation; return a sentence when it breaks the promise, otherwise ""."""
        match observation:
            case seen.Presented():
                if observation.good is not False:
                    self._reason(observation.lane, observation.at + _DECISION_SECONDS + self._life)
            case seen.Asked(action=GateAction.OPEN):
                self._reason(observation.lane, observation.at + self._life)
            case seen.Wrote():
                return self._judge(observation)
            case seen.Acknowledged():
                faults = (self._follow(command) for command in observation.entry.commands)
                return next((fault for fault in faults if fault), "")
            case seen.Started():
                self._left_open.update(observation.unfinished)
            case seen.Ended():
                self._reasons.clear()
                self._fire_until.clear()
                self._undo = _Undo(stale=self._stale)
            case _:
                self._note_other_reasons(observation)
        return ""

    def _note_other_reasons(self, observation: seen.Observation) -> None:
        match observation:
            case seen.Called(action=GateAction.CLOSE):
                self._undo.asked(observation.lane, until=observation.at + self._life + _ONE_EXCHANGE)
            case seen.Called(action=GateAction.OPEN):
                self._undo.opens(observation)
            case seen.Answered(action=GateAction.OPEN, acknowledged=False):
                self._undo.unanswered(observation)
            case seen.PointReported(point=point) if point == FIRE:
                on = observation.state is PointState.ON
                self._fire_until[observation.lane] = float("inf") if on else observation.at + self._life
            case (
                seen.PointReported() | seen.PositionReported() | seen.GateAway() | seen.ModuleAway() | seen.PollMissed()
            ):
                self._undo.see(observation)
            case seen.Refreshed():
                self._undo.refreshed(observation)
            case _:
                pass

    def _reason(self, lane: str, until: float) -> None:
        self._reasons.setdefault(lane, []).append(until)

    def _judge(self, wrote: seen.Wrote) -> str:
        if wrote.action is GateAction.CLOSE:
            self._undo.closes(wrote)
        elif wrote.action is GateAction.OPEN:
            self._undo.opened(wrote)
        if wrote.action is not GateAction.OPEN or wrote.at <= self._fire_until.get(wrote.lane, 0.0):
            return ""
        if self._undo.allows(wrote):
            return ""
        reasons = sorted(until for until in self._reasons.get(wrote.lane, ()) if until + _SLACK >= wrote.at)
        if not reasons:
            return f"open went out in {wrote.lane} and neither a good card nor a person had asked for it in time"
        self._reasons[wrote.lane] = reasons[1:]
        return ""

    def _follow(self, command: Command) -> str:
        name, before = command.command_id, self._states.get(command.command_id)
        self._states[name] = command.state
        if command.state is CommandState.SENT:
            if name in self._left_open:
                return f"command {name} of an earlier life was sent"
            if before is CommandState.SENT:
                return f"command {name} was sent twice"
        if before in FINAL_STATES and command.state is not before:
            return f"command {name} was {before} and became {command.state}"
        return ""


class DeadlinesCheck:
    """The rule that no command is sent after its deadline, or after a later command was given to the driver."""

    promise = "2 no command goes out late"
    wants = (seen.Called, seen.Wrote)

    def __init__(self, *, command_life: float) -> None:
        self._life = command_life
        self._called: dict[str, seen.Called] = {}

    def see(self, observation: seen.Observation) -> str:
        """Judge an observation; return a sentence when it breaks the promise, otherwise ""."""
        match observation:
            case seen.Called():
                self._called[observation.lane] = observation
            case seen.Wrote():
                return self._judge(observation)
            case _:
                pass
        return ""

    def _judge(self, wrote: seen.Wrote) -> str:
        called = self._called.get(wrote.lane)
        if wrote.at > wrote.deadline:
            return f"{wrote.action} went out in {wrote.lane} {wrote.at - wrote.deadline:.3f} s after its deadline"
        if called is None or called.action is not wrote.action:
            return f"{wrote.action} went out in {wrote.lane} though another command had taken its place"
        if wrote.at > called.at + self._life:
            return f"{wrote.action} went out in {wrote.lane} {wrote.at - called.at:.3f} s after it was given"
        return ""


class _Undo:
    """The lanes where a close was sent and one of its safety points is no longer known to be free."""

    def __init__(self, *, stale: float) -> None:
        self._stale = stale
        self._read: dict[tuple[str, str], float] = {}
        self._closing: dict[str, float] = {}
        self._asked: dict[str, float] = {}
        self._unfinished: set[str] = set()
        self._left: dict[str, tuple[int, float]] = {}
        self._unanswered: set[str] = set()
        self._unmoved: set[str] = set()

    def asked(self, lane: str, *, until: float) -> None:
        """Begin to count the opens that may undo this close, which may be sent without being observed."""
        self._asked[lane] = until
        self._unfinished.add(lane)
        self._left.pop(lane, None)

    def closes(self, wrote: seen.Wrote) -> None:
        self._closing[wrote.lane] = wrote.at
        self._unmoved.add(wrote.lane)
        self._left.pop(wrote.lane, None)

    def opened(self, wrote: seen.Wrote) -> None:
        """Note an open for any reason. A gate that has not moved since the close may still close."""
        if wrote.lane in self._unmoved and self._may_close(wrote.lane, wrote.at):
            self._closing[wrote.lane] = wrote.at

    def opens(self, called: seen.Called) -> None:
        """Note whether a point is stale when an open is given. No report tells its age, and the gate may be closing."""
        if any(lane == called.lane and called.at >= at + self._stale for (lane, _), at in self._read.items()):
            self._trip(called.lane, called.at)

    def unanswered(self, answered: seen.Answered) -> None:
        """Note an open that may not have undone the close, so that the next obstacle may cause another one."""
        if self._may_close(answered.lane, answered.at):
            self._closing[answered.lane] = answered.at
            self._unanswered.add(answered.lane)

    def refreshed(self, observation: seen.Refreshed) -> None:
        """Note when each safety point was read. A point unread for too long may have caused another open."""
        for point in _SAFETY.intersection(observation.points):
            self._read[observation.lane, point] = observation.at

    def see(
        self,
        observation: seen.PointReported | seen.PositionReported | seen.GateAway | seen.ModuleAway | seen.PollMissed,
    ) -> None:
        match observation:
            case seen.ModuleAway(away=True):
                self._trip(observation.lane, observation.at)
            case seen.PositionReported(position=GatePosition.OPENING | GatePosition.OPEN):
                self._unmoved.discard(observation.lane)
            case seen.PositionReported(position=GatePosition.CLOSED):
                self._unmoved.discard(observation.lane)
                self._closing.pop(observation.lane, None)
                self._unanswered.discard(observation.lane)
                self._unfinished.discard(observation.lane)
            case seen.PollMissed():
                if observation.in_a_row > 1:
                    self._trip(observation.lane, observation.at)
            case seen.PointReported(state=PointState.ON | PointState.UNKNOWN, point=point) if point in _SAFETY:
                self._trip(observation.lane, observation.at)
            case seen.GateAway():
                if observation.at <= self._asked.get(observation.lane, 0.0):  # nobody knows whether it went out
                    self._closing[observation.lane] = observation.at
                self._trip(observation.lane, observation.at)
                if not observation.away and observation.lane in self._unfinished:
                    # However long it was away: its inputs are not trusted at once, and the gate may still be closing.
                    self._left[observation.lane] = (_UNDO_TRIES, observation.at + _UNDONE_WITHIN)
            case _:
                pass

    def allows(self, wrote: seen.Wrote) -> bool:
        left, until = self._left.get(wrote.lane, (0, 0.0))
        if not left or wrote.at > until:
            return False
        self._left[wrote.lane] = (left - 1, until)
        return True

    def _trip(self, lane: str, at: float) -> None:
        if not self._may_close(lane, at):
            return
        if lane in self._unanswered:
            self._unanswered.discard(lane)
            self._left.pop(lane, None)
        self._left.setdefault(lane, (_UNDO_TRIES, at + _UNDONE_WITHIN))

    def _may_close(self, lane: str, at: float) -> bool:
        return at - self._closing.get(lane, -_UNDONE_WITHIN) < _UNDONE_WITHIN


class ArrivalsCheck:
    """The rule that a command reaches the gate's controller while its driver waits for the answer, or never."""

    promise = "2 no command arrives after it was given up"
    wants = (seen.Called, seen.Answered, seen.Arrived, seen.Ended)

    def __init__(self) -> None:
        self._under_way: dict[tuple[str, GateAction], int] = {}
        self._given_up: dict[tuple[str, GateAction], float] = {}

    def see(self, observation: seen.Observation) -> str:
        """Judge an observation; return a sentence when it breaks the promise, otherwise ""."""
        match observation:
            case seen.Called():
                self._count(observation, 1)
            case seen.Answered():
                self._count(observation, -1)
                self._given_up[observation.lane, observation.action] = observation.at
            case seen.Arrived():
                return self._judge(observation)
            case seen.Ended():
                self._under_way.clear()
            case _:
                pass
        return ""

    def _count(self, observation: seen.Called | seen.Answered, more: int) -> None:
        place = observation.lane, observation.action
        self._under_way[place] = max(0, self._under_way.get(place, 0) + more)

    def _judge(self, arrived: seen.Arrived) -> str:
        place = arrived.lane, arrived.action
        if self._under_way.get(place):
            return ""
        since = self._given_up.get(place)
        late = "" if since is None else f" {arrived.at - since:.2f} s"
        return f"{arrived.action} arrived in {arrived.lane}{late} after its driver had given it up"
