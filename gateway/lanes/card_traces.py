"""The trace of each card or plate at a lane: read, decided, gate commanded, acknowledged and moved, event committed.

Traces are for the person who wants to know where the time goes. They name no card and no person.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from gateway.domain.access import Decision
from gateway.domain.commands import FINAL_STATES, Command, CommandState, GateAction
from gateway.lanes.machine import messages as m
from gateway.runtime.clock import Clock
from gateway.store import Entry

_MOST_UNDER_WAY = 16
_LONGEST_SECONDS = 90.0
"""A trace that lacks its end by then, such as of a record that was lost, ends without it."""


@dataclass(frozen=True, slots=True)
class Span:
    """One part of a trace. Times are wall micros, all by the clock as it was at the end.

    Attributes:
        data: what is known of it, for people.
        error: why it failed, "" if it did not.
    """

    name: str
    began: int
    ended: int
    data: Mapping[str, str | bool] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True)
class CardTrace:
    """The trace of one reading: the whole of it, and its parts."""

    whole: Span
    parts: tuple[Span, ...]


@dataclass(slots=True)
class TraceFigures:
    """The number of traces that a collector took, and of those that were dropped."""

    sent: int = 0
    dropped: int = 0


@dataclass(slots=True)
class _Way:
    """A trace under way. Instants are monotonic seconds.

    Attributes:
        command_id: the open command to the gate, "" for none.
        moves: whether that command has not ended yet.
        commits: whether its event is not on disk yet.
    """

    read_at: float
    posted_at: float
    decided_at: float | None = None
    decision: Decision | None = None
    command_id: str = ""
    sent_at: float = 0.0
    acknowledged_at: float | None = None
    ended_at: float | None = None
    outcome: Command | None = None
    recorded_at: float | None = None
    committed_at: float | None = None
    moves: bool = False
    commits: bool = False

    def is_over(self, now: float) -> bool:
        has_all = self.recorded_at is not None and not self.moves and not self.commits
        return has_all or now > self.posted_at + _LONGEST_SECONDS


class CardTraces:
    """The traces of one lane. `tell` gets each trace once it is over."""

    def __init__(self, *, lane_id: str, clock: Clock, tell: Callable[[CardTrace], None]) -> None:
        self._lane_id = lane_id
        self._clock = clock
        self._tell = tell
        self._ways: dict[int, _Way] = {}
        self._written: dict[int, Callable[[], None]] = {}

    def stepped(self, event: m.LaneEvent, commands: Iterable[m.LaneCommand], *, posted_at: float) -> None:
        """Take in a step of the machine, before its commands are carried out."""
        now = self._clock.monotonic()
        self._written.clear()
        way = self._ways.get(event.number) if isinstance(event, m.Decided) else None
        for command in commands:
            if isinstance(command, m.Decide):
                self._begin(command.number, event, posted_at)
            elif isinstance(command, m.Record):
                if way is not None and command.entry.events and way.recorded_at is None:
                    way.recorded_at, way.commits = now, True
                    self._written[id(command.entry)] = partial(self._committed, way)
                self._follow(command.entry, now)
            elif isinstance(command, m.SendCommand) and way is not None and command.command.action is GateAction.OPEN:
                way.command_id, way.sent_at, way.moves = command.command.command_id, now, True
        self._end_those_over(now)

    def decided(self, wish: m.Decide, decision: Decision) -> None:
        """Note the decision."""
        if (way := self._ways.get(wish.number)) is not None:
            way.decided_at, way.decision = self._clock.monotonic(), decision

    def written(self, entry: Entry) -> Callable[[], None] | None:
        """Return what to call once this entry of the step is on disk, None if nobody waits for it."""
        return self._written.pop(id(entry), None)

    def _begin(self, number: int, event: m.LaneEvent, posted_at: float) -> None:
        if len(self._ways) >= _MOST_UNDER_WAY:
            self._end(next(iter(self._ways)))
        read_at = event.at if isinstance(event, m.CardRead | m.PlateRead | m.KeysTyped) else posted_at
        self._ways[number] = _Way(min(read_at, posted_at), posted_at)

    def _follow(self, entry: Entry, now: float) -> None:
        """Note how far the commands in an entry have come."""
        for reached in entry.commands:
            for way in self._ways.values():
                if way.command_id != reached.command_id:
                    continue
                if reached.state is CommandState.ACKNOWLEDGED:
                    way.acknowledged_at = now
                elif reached.state in FINAL_STATES:
                    way.ended_at, way.outcome, way.moves = now, reached, False

    def _committed(self, way: _Way) -> None:
        way.committed_at, way.commits = self._clock.monotonic(), False
        self._end_those_over(way.committed_at)

    def _end_those_over(self, now: float) -> None:
        over = [number for number, way in self._ways.items() if way.is_over(now)]
        for number in over:
            self._end(number)

    def _end(self, number: int) -> None:
        now, wall = self._clock.monotonic(), self._clock.wall().micros
        self._tell(_trace(self._ways.pop(number), lane_id=self._lane_id, now=now, wall=wall))


def _trace(way: _Way, *, lane_id: str, now: float, wall: int) -> CardTrace:
    def span(name: str, began: float, ended: float | None, error: str = "", **data: str | bool) -> Span:
        until = now if ended is None else ended
        return Span(name, wall - round((now - began) * 1e6), wall - round((now - until) * 1e6), data, error)

    parts = []
    if way.decision is not None:
        granted, reason = way.decision.granted, way.decision.reason.value
        parts.append(span("decide", way.posted_at, way.decided_at, granted=granted, reason=reason))
    if way.command_id:
        moved = way.outcome is not None and way.outcome.state is CommandState.DONE
        error = "" if moved else "its outcome is not known" if way.outcome is None else way.outcome.detail
        if way.acknowledged_at is None:
            parts.append(span("acknowledge", way.sent_at, way.ended_at, error or "no answer, but the gate moved"))
        else:
            parts.append(span("acknowledge", way.sent_at, way.acknowledged_at))
            parts.append(span("move", way.acknowledged_at, way.ended_at, error))
    if way.recorded_at is not None:
        lost = "it is not known to be on disk" if way.committed_at is None else ""
        parts.append(span("commit", way.recorded_at, way.committed_at, lost))
    last = max((part.ended for part in parts), default=wall)
    return CardTrace(replace(span("card", way.read_at, None, lane=lane_id), ended=last), tuple(parts))
