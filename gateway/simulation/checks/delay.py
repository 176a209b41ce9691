"""Promise 6: central, a hanging disk, a wrong clock or another lane's trouble delays no lane."""

from __future__ import annotations

from gateway.domain.commands import GateAction
from gateway.simulation import observations as seen

_AT_MOST = 0.25
_OF_A_PERSON = 1.5


class DelayCheck:
    """Check that a valid card at a working lane reaches the gate's driver at once, whatever else is broken.

    A person's open waits a moment for the disk, and no longer.
    """

    promise = "6 no lane is delayed"
    wants = (seen.Presented, seen.Asked, seen.Called, seen.Drove, seen.Acknowledged, seen.ClockJudged, seen.Ended)

    def __init__(self, *, sure_time_lanes: frozenset[str] = frozenset()) -> None:
        """`sure_time_lanes` refuse cards with days while the clock is not trusted, also one read right before."""
        self._sure_time_lanes = sure_time_lanes
        self._waiting: dict[str, tuple[float, str]] = {}

    def see(self, observation: seen.Observation) -> str:
        """See `Check`."""
        fault = self._overdue(observation.at)
        match observation:
            case seen.Presented(good=True, calm=True):
                self._waiting[observation.lane] = observation.at + _AT_MOST, f"good card {observation.card} was read"
            case seen.Asked(action=GateAction.OPEN, calm=True):
                self._waiting.setdefault(
                    observation.lane, (observation.at + _OF_A_PERSON, "a person asked for an open")
                )
            case seen.Asked():
                self._waiting.pop(observation.lane, None)
            case seen.Called(action=GateAction.OPEN):
                self._waiting.pop(observation.lane, None)
            case seen.ClockJudged(trusted=False):
                for lane in self._sure_time_lanes:
                    self._waiting.pop(lane, None)
            case seen.Ended():
                self._waiting.clear()
            case _:
                pass
        return fault

    def _overdue(self, now: float) -> str:
        for lane, (due, what) in self._waiting.items():
            if now > due:
                del self._waiting[lane]
                return f"{what} in {lane}, and its gate was not commanded by {due:.3f}, though nothing was wrong there"
        return ""
