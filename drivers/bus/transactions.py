"""Transactions on a shared line, and their order: exchanges, the queue, and the next turn.

Commands go first, then polls, then probes of silent units in the others' pauses. Scans go last: only while nothing
else waits, and no unit that answers is about to be polled.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Generic, TypeVar

from drivers.bus.occupancy import LONGEST_PROBE_WAIT, Occupancy
from drivers.contract import DeadlinePassed, Forbidden, LineDown, LinkError, MonotonicSeconds

Reply = TypeVar("Reply")
_SCAN_IDLE = 0.003
"""Whoever got the last answer has had its turn by then, to ask for more."""
_SCAN_MARGIN = 0.01
LONGEST_SCAN_WAIT = 1.0
_LATE_SCAN_SHARE = 3.0


class UnitRests(LinkError):
    """The poll was not sent, or its answer does not count: the unit did not answer lately, and rests for now."""


class Priority(IntEnum):
    """The priority of a transaction. Commands are tried while a unit rests; polls are not.

    The line itself makes a poll of a silent unit a probe, which goes in the pauses of the others. A scan asks a unit
    that the site does not use: it says nothing of the line's quality.
    """

    COMMAND = 0
    POLL = 1
    PROBE = 2
    SCAN = 3


@dataclass(frozen=True, slots=True)
class Prelude:
    """The conditions of some lines before a frame.

    Attributes:
        silence: seconds for which nothing may have been on the line.
        break_seconds: for how long the line is held in its break condition right before the first byte.
    """

    silence: float = 0.0
    break_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Exchange(Generic[Reply]):
    """One request and how its answer is recognised.

    Attributes:
        unit: the address on the line.
        request: the bytes to send.
        parse: pure; given all bytes that came since the request, the answer, or None while more are needed. Whole
            frames that belong to somebody else are passed over. Raises ProtocolViolation for what can become nothing.
        tagged: whether answers carry the request's number. If not, a late answer looks like a fresh one: see
            `drivers.bus.late_answers`.
        answered: False for a device that says nothing: the exchange is over once it is written, and `parse` is given no
            bytes to make the answer of.
        prelude: what goes before the request.
    """

    unit: int
    request: bytes
    parse: Callable[[bytes], Reply | None]
    tagged: bool
    answered: bool = True
    prelude: Prelude | None = None


@dataclass(frozen=True, slots=True)
class Answer(Generic[Reply]):
    """An answer with its instants.

    Attributes:
        reply: what `parse` made of it.
        written_at: when the first byte of the request was handed to the system.
        at: when the last byte of the answer arrived.
    """

    reply: Reply
    written_at: MonotonicSeconds
    at: MonotonicSeconds


@dataclass(slots=True, eq=False)
class Transaction:
    """An exchange on its way. It is done when it was answered, refused, or given up by its caller or its deadline.

    `shortest` is the shortest time-out of a scan; see `next_turn`.
    """

    exchange: Exchange[object]
    priority: Priority
    deadline: MonotonicSeconds
    timeout: float
    answer: asyncio.Future[Answer[object]] = field(repr=False)
    forbidden: Forbidden | None = None
    sent: bool = False
    added_at: MonotonicSeconds = 0.0
    shortest: float = 0.0

    @property
    def is_of_site(self) -> bool:
        """True unless it is a scan: whether its unit answers says something of the site's line."""
        return self.priority is not Priority.SCAN

    def expire(self) -> None:
        """End the wait at the deadline. A request on the wire stays there."""
        if not self.sent:
            self.fail(DeadlinePassed("the line was not free before the deadline; nothing was sent"))

    def fail(self, error: Exception) -> None:
        """End it with an error, unless it is done."""
        if not self.answer.done():
            self.answer.set_exception(error)

    def succeed(self, answer: Answer[object]) -> None:
        """End it with its answer, unless its caller is gone."""
        if not self.answer.done():
            self.answer.set_result(answer)


class TransactionQueue:
    """Transactions in the order in which they go: commands first, each kind by age; at most `limit` of each kind."""

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._waiting: dict[Priority, deque[Transaction]] = {priority: deque() for priority in Priority}

    def __bool__(self) -> bool:
        return any(self._waiting.values())

    @property
    def has_untagged(self) -> bool:
        """True when a transaction waits whose frames are separated by silence alone."""
        return any(not waiting.exchange.tagged for queue in self._waiting.values() for waiting in queue)

    @property
    def has_scan(self) -> bool:
        """True when a scan waits: pauses that are long enough for one are short."""
        return bool(self._waiting[Priority.SCAN])

    def add(self, transaction: Transaction) -> None:
        """Put it at the end of its kind, or raise LineDown when too many wait."""
        queue = self._waiting[transaction.priority]
        if len(queue) >= self._limit:
            raise LineDown(f"the line is overloaded: {self._limit} requests wait")
        queue.append(transaction)

    def first(self, priority: Priority, *, now: MonotonicSeconds) -> Transaction | None:
        """Return the first of that kind that is still wanted and in time; it stays in the queue."""
        queue = self._waiting[priority]
        while queue:
            transaction = queue[0]
            if now >= transaction.deadline:
                transaction.expire()
            if not transaction.answer.done():
                return transaction
            queue.popleft()
        return None

    def take(self, transaction: Transaction) -> Transaction:
        """Remove the transaction that `first` returned."""
        self._waiting[transaction.priority].remove(transaction)
        return transaction

    def refuse_all(self, reason: str) -> None:
        """Fail all that waits for a line that is down."""
        for queue in self._waiting.values():
            while queue:
                queue.popleft().fail(LineDown(reason))


def next_turn(
    queue: TransactionQueue, occupancy: Occupancy, *, quiet: float, idle: float, now: MonotonicSeconds
) -> Transaction | None:
    """Take the next transaction out of the queue and set its time-out; None when only probes or scans wait, or nothing.

    A probe that waited long goes before polls, but no second one before a poll that waits. A scan never goes while
    anything else waits, however long it does. `quiet` is what the line needs to fall silent after a time-out, `idle`
    for how long nothing was on it.
    """
    command = queue.first(Priority.COMMAND, now=now)
    if command is not None:
        return queue.take(command)
    poll, probe = queue.first(Priority.POLL, now=now), queue.first(Priority.PROBE, now=now)
    if probe is not None:
        timeout = _probe_timeout(probe, occupancy, is_alone=poll is None, quiet=quiet, now=now)
        if timeout is not None:
            probe.timeout = timeout
            occupancy.poll_is_owed = poll is not None
            return queue.take(probe)
    if poll is None:
        return None if probe is not None or idle < _SCAN_IDLE else _scan(queue, occupancy, quiet=quiet, now=now)
    occupancy.poll_is_owed = False
    if occupancy.is_live(poll.exchange.unit):
        poll.timeout = occupancy.live_timeout(poll.exchange.unit, poll.timeout)
    return queue.take(poll)


def _scan(queue: TransactionQueue, occupancy: Occupancy, *, quiet: float, now: MonotonicSeconds) -> Transaction | None:
    """Take a scan if the line stays free for it: its time-out is cut to the pause.

    One that waited long is content with a shorter pause, and may delay the next poll by the rest of its own time-out.
    """
    scan = queue.first(Priority.SCAN, now=now)
    if scan is None:
        return None
    pause = occupancy.free(now=now)
    free = pause - quiet - _SCAN_MARGIN
    is_late = now - scan.added_at >= LONGEST_SCAN_WAIT
    if free < scan.shortest and not (is_late and pause >= scan.shortest / _LATE_SCAN_SHARE):
        return None
    scan.timeout = max(scan.shortest, min(scan.timeout, free))
    return queue.take(scan)


def _probe_timeout(
    probe: Transaction, occupancy: Occupancy, *, is_alone: bool, quiet: float, now: MonotonicSeconds
) -> float | None:
    unit, allowed = probe.exchange.unit, probe.timeout
    if now - probe.added_at >= LONGEST_PROBE_WAIT and (is_alone or not occupancy.poll_is_owed):
        return occupancy.late_probe_timeout(unit, allowed, now=now)
    if not is_alone:
        return None
    return occupancy.probe_timeout(unit, allowed, pause=occupancy.pause(now=now) - quiet, now=now)
