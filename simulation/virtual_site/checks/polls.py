"""The check that the gate of an idle lane is polled at its usual pace."""

from __future__ import annotations

from collections import deque

from simulation.virtual_site import observations as seen

_WINDOW_SECONDS = 5.0
_MARGIN = 1.5


class PollsCheck:
    """The rule that no history makes a driver poll an idle lane without a pause: lines and processors are shared.

    Time that is jumped over has no polls, so only stretches count in which something happens at other lanes.
    """

    promise = "an idle lane is polled at its pace"
    wants = (seen.Polled,)

    def __init__(self, *, poll: float) -> None:
        """Make the check. `poll` is the seconds between two polls."""
        self._most = int(_MARGIN * _WINDOW_SECONDS / poll)
        self._polls: dict[str, deque[float]] = {}

    def see(self, observation: seen.Observation) -> str:
        """Judge an observation; return a sentence when it breaks the promise, otherwise ""."""
        if not isinstance(observation, seen.Polled):
            return ""
        polls = self._polls.setdefault(observation.lane, deque())
        if not observation.idle:
            polls.clear()
            return ""
        polls.append(observation.at)
        while polls[0] < observation.at - _WINDOW_SECONDS:
            polls.popleft()
        if len(polls) <= self._most:
            return ""
        polls.clear()
        return f"{observation.lane} was polled more than {self._most} times within {_WINDOW_SECONDS:g} s while idle"
