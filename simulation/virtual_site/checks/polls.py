"""The check that the gate of an idle lane is polled at its usual pace."""

from __future__ import annotations

from collections import Counter, deque

from simulation.virtual_site import observations as seen
from simulation.virtual_site.lane_field import SETTLE

_WINDOW_SECONDS = 5.0
_MARGIN = 1.5


class PollsCheck:
    """The rule that no history makes a driver poll an idle lane without a pause: lines and processors are shared.

    A still lane is not idle while a command is under way: a person may close a closed gate on a busy line. Nor is it
    idle shortly after the command, while a close is watched. Time that is jumped over has no polls, so only stretches
    count in which something happens at other lanes.
    """

    promise = "an idle lane is polled at its pace"
    wants = (seen.Polled, seen.Called, seen.Answered, seen.Ended)

    def __init__(self, *, poll: float) -> None:
        """Make the check. `poll` is the seconds between two polls."""
        self._most = int(_MARGIN * _WINDOW_SECONDS / poll)
        self._polls: dict[str, deque[float]] = {}
        self._commands: Counter[str] = Counter()
        self._answered_at: dict[str, float] = {}

    def see(self, observation: seen.Observation) -> str:
        """Judge an observation; return a sentence when it breaks the promise, otherwise ""."""
        match observation:
            case seen.Called(lane=lane):
                self._commands[lane] += 1
            case seen.Answered(at=at, lane=lane):
                self._commands[lane] -= 1
                self._answered_at[lane] = at
            case seen.Ended():
                self._commands.clear()  # nobody reports their answers any more
            case seen.Polled():
                return self._judge(observation)
            case _:
                pass
        return ""

    def _judge(self, poll: seen.Polled) -> str:
        polls = self._polls.setdefault(poll.lane, deque())
        is_settled = poll.at - self._answered_at.get(poll.lane, float("-inf")) >= SETTLE
        if not poll.idle or self._commands[poll.lane] or not is_settled:
            polls.clear()
            return ""
        polls.append(poll.at)
        while polls[0] < poll.at - _WINDOW_SECONDS:
            polls.popleft()
        if len(polls) <= self._most:
            return ""
        polls.clear()
        return f"{poll.lane} was polled more than {self._most} times within {_WINDOW_SECONDS:g} s while idle"
