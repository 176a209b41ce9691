"""Promise 6: central, a hanging disk, a wrong clock or another lane's trouble delays no lane."""

from __future__ import annotations

from gateway.domain.commands import GateAction
from gateway.simulation import observations as seen

_AT_MOST = 0.25


class DelayCheck:
    """From a good card at a lane without trouble of its own to the gate's driver: at once, whatever else is wrong."""

    promise = "6 no lane is delayed"
    wants = (seen.Presented, seen.Called, seen.Drove, seen.Acknowledged, seen.Ended)

    def __init__(self) -> None:
        self._waiting: dict[str, seen.Presented] = {}

    def see(self, observation: seen.Observation) -> str:
        """See `Check`."""
        fault = self._overdue(observation.at)
        match observation:
            case seen.Presented(good=True, calm=True):
                self._waiting[observation.lane] = observation
            case seen.Called(action=GateAction.OPEN):
                self._waiting.pop(observation.lane, None)
            case seen.Ended():
                self._waiting.clear()
            case _:
                pass
        return fault

    def _overdue(self, now: float) -> str:
        for lane, presented in self._waiting.items():
            if now - presented.at > _AT_MOST:
                del self._waiting[lane]
                return (
                    f"good card {presented.card} was read in {lane} at {presented.at:.3f} and its gate was not "
                    f"commanded within {_AT_MOST:g} s, though nothing was wrong there"
                )
        return ""
