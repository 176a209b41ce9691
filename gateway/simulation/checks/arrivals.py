"""Promises 1 and 2 at the far end: what the driver gave up never arrives later, whatever the network keeps."""

from __future__ import annotations

from gateway.domain.commands import GateAction
from gateway.simulation import observations as seen


class ArrivalsCheck:
    """A command arrives at the gate's controller while its driver waits for the answer, or not at all."""

    promise = "2 no command arrives after it was given up"
    wants = (seen.Called, seen.Answered, seen.Arrived, seen.Ended)

    def __init__(self) -> None:
        self._under_way: dict[tuple[str, GateAction], int] = {}
        self._given_up: dict[tuple[str, GateAction], float] = {}

    def see(self, observation: seen.Observation) -> str:
        """See `Check`."""
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
