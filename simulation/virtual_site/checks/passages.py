"""Promise 10: a vehicle that drove through a lane without any fault is recorded as a passage, once."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.domain.commands import GateAction
from gateway.domain.passages import Passage, PassageOutcome
from simulation.virtual_site import observations as seen

_RECORDED_WITHIN = 60.0
_REMEMBERED = 600.0
_MICROS = 1_000_000


@dataclass(frozen=True, slots=True)
class _Recorded:
    """A passage on disk: its card, and when it ended."""

    card: str
    ended: float

    def is_of(self, drove: seen.Drove) -> bool:
        """Return whether the passage belongs to this vehicle."""
        return self.card == drove.card and drove.began < self.ended < drove.at + _RECORDED_WITHIN


class PassagesCheck:
    """The comparison of vehicles that really passed, while nothing was wrong, with the recorded passages.

    A passage belongs to the vehicle with its card that was at the gate when the passage ended, or had just left. A
    person's close that goes out takes the vehicle's right of way, and no passage is owed; one that does not changes
    nothing.
    """

    promise = "10 each passage is recorded"
    wants = (seen.Drove, seen.Acknowledged, seen.Refreshed, seen.Presented, seen.Asked, seen.Wrote, seen.Ended)

    def __init__(self, *, command_life: float) -> None:
        self._life = command_life
        self._close_asked_at: dict[str, float] = {}
        self._closed_at: dict[str, float] = {}
        self._owed: dict[str, list[seen.Drove]] = {}
        self._recorded: dict[str, list[_Recorded]] = {}

    def see(self, observation: seen.Observation) -> str:
        """Judge an observation; return a sentence when it breaks the promise, otherwise ""."""
        match observation:
            case seen.Drove(outcome="passed", calm=True):
                if self._closed_at.get(observation.lane, float("-inf")) < observation.began:
                    self._owe(observation)
            case seen.Asked(action=GateAction.CLOSE):
                self._close_asked_at[observation.lane] = observation.at
            case seen.Wrote(action=GateAction.CLOSE):
                if observation.at <= self._close_asked_at.get(observation.lane, float("-inf")) + self._life:
                    self._closed_at[observation.lane] = observation.at
            case seen.Acknowledged():
                if observation.entry.passage is not None:
                    self._note(observation.entry.passage, observation)
            case seen.Ended():  # a passage may be lost that was not on disk by then
                self._owed.clear()
                self._recorded.clear()
            case _:
                pass
        return self._overdue(observation.at)

    def _owe(self, drove: seen.Drove) -> None:
        recorded = [one for one in self._recorded.get(drove.lane, []) if drove.at - one.ended < _REMEMBERED]
        self._recorded[drove.lane] = recorded
        of_this = next((one for one in recorded if one.is_of(drove)), None)
        if of_this is None:
            self._owed.setdefault(drove.lane, []).append(drove)
        else:
            recorded.remove(of_this)

    def _note(self, passage: Passage, acknowledged: seen.Acknowledged) -> None:
        if passage.outcome is not PassageOutcome.PASSED:
            return
        ended = acknowledged.at - (acknowledged.true_micros - passage.ended_at) / _MICROS
        recorded = _Recorded(passage.credential, ended)
        owed = self._owed.get(passage.lane_id, [])
        of_this = next((drove for drove in owed if recorded.is_of(drove)), None)
        if of_this is None:
            self._recorded.setdefault(passage.lane_id, []).append(recorded)
        else:
            owed.remove(of_this)

    def _overdue(self, now: float) -> str:
        for lane, owed in self._owed.items():
            if owed and now - owed[0].at > _RECORDED_WITHIN:
                drove = owed.pop(0)
                return f"a vehicle passed {lane} in peace at {drove.at:.3f}, and no passage of it was recorded"
        return ""
