"""Figures of a lane since the start: its decisions, the commands to its gate, and the passages."""

from __future__ import annotations

from collections import Counter

from gateway.domain.commands import FINAL_STATES, Command, CommandState, GateAction
from gateway.domain.passages import PassageOutcome
from gateway.runtime.timings import SLOW_BOUNDS, Timings
from gateway.store import Entry

_MOST_UNDER_WAY = 16


class LaneFigures:
    """Counters and timings of one lane.

    Attributes:
        decisions: number of decisions, by whether they granted.
        decision_seconds: time from a reading's arrival in the lane's inbox to its decision.
        commands: number of commands to the gate that have ended, by action and final state.
        moved_seconds: time from sending a command to seeing the gate obey, by action.
        passages: number of passages, by outcome.
        overflowed: number of events dropped because the inbox was full.
    """

    def __init__(self) -> None:
        self.decisions: Counter[bool] = Counter()
        self.decision_seconds = Timings()
        self.commands: Counter[tuple[GateAction, CommandState]] = Counter()
        self.moved_seconds = {action: Timings(SLOW_BOUNDS) for action in GateAction}
        self.passages: Counter[PassageOutcome] = Counter()
        self.overflowed = 0
        self._sent_at: dict[str, float] = {}

    def decided(self, *, granted: bool, seconds: float) -> None:
        """Count a decision."""
        self.decisions[granted] += 1
        self.decision_seconds.add(seconds)

    def recorded(self, entry: Entry, *, now: float) -> None:
        """Count what the lane records at this monotonic instant."""
        for command in entry.commands:
            self._command(command, now)
        if entry.passage is not None:
            self.passages[entry.passage.outcome] += 1

    def _command(self, command: Command, now: float) -> None:
        if command.state is CommandState.SENT:
            if len(self._sent_at) >= _MOST_UNDER_WAY:  # the oldest cannot be under way any more
                self._sent_at.pop(next(iter(self._sent_at)))
            self._sent_at[command.command_id] = now
        if command.state not in FINAL_STATES:
            return
        self.commands[command.action, command.state] += 1
        sent_at = self._sent_at.pop(command.command_id, None)
        if command.state is CommandState.DONE and sent_at is not None:
            self.moved_seconds[command.action].add(now - sent_at)
