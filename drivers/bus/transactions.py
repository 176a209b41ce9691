"""Transactions on a shared line, and their order: exchanges, the queue, and the next turn.

Commands go first, then polls, then probes (polls of silent units, in the pauses of the others). Scans go last: only
while nothing else waits, and no unit that answers is about to be polled.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Generic, TypeVar

from drivers.bus.unit_states import LONGEST_PROBE_WAIT, UnitStates
from drivers.contract import DeadlinePassed, Forbidden, LineDown, LinkError, MonotonicSeconds, ProtocolViolation

Reply = TypeVar("Reply")
_SCAN_IDLE = 0.003
"""Seconds without a byte before a scan, so that the driver that got the last answer can ask again first."""
_SCAN_MARGIN = 0.01
LONGEST_SCAN_WAIT = 1.0
_LATE_SCAN_SHARE = 3.0


class UnitRests(LinkError):
    """The poll was not sent because the unit rests, or its answer may belong to an earlier request."""


class Priority(IntEnum):
    """The priority of a transaction. Commands are sent even while a unit rests; polls are not.

    The bus turns a poll of a silent unit into a probe, which goes in the pauses of the others. A scan asks a unit that
    the site does not use, so its result does not count for the line's quality.
    """

    COMMAND = 0
    POLL = 1
    PROBE = 2
    SCAN = 3


@dataclass(frozen=True, slots=True)
class Prelude:
    """Conditions that some protocols set before a frame.

    Attributes:
        silence: seconds without a byte on the line.
        break_seconds: seconds for which the line is held in its break condition right before the first byte.
    """

    silence: float = 0.0
    break_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Exchange(Generic[Reply]):
    """One request, and the function that recognises its answer.

    Attributes:
        unit: the device's address on the line.
        request: the bytes to send.
        parse: a pure function of all bytes since the request. It returns the answer, or None while more bytes are
            needed. It skips whole frames that belong to other requests, and raises ProtocolViolation for bytes that
            cannot become an answer.
        tagged: whether answers carry the request's number. If not, a late answer looks like a fresh one: see
            `drivers.bus.late_answers`.
        answered: False for a device that never answers: the exchange ends once the request is written, and `parse`
            makes the answer of no bytes.
        prelude: the conditions before the request; None for none.
        is_repeated: whether the device answers by repeating the request, so that an echo of the line looks like its
            answer; None where nobody knows. See `drivers.bus.wire`.
        explain: a pure function of the bytes that came instead of an answer, which says what is wrong with them.
    """

    unit: int
    request: bytes
    parse: Callable[[bytes], Reply | None]
    tagged: bool
    answered: bool = True
    prelude: Prelude | None = None
    is_repeated: bool | None = None
    explain: Callable[[bytes], ProtocolViolation | None] | None = None

    def is_answered_by(self, received: bytes) -> bool:
        """Return whether the answer is among these bytes."""
        try:
            return self.parse(received) is not None
        except ProtocolViolation:
            return False

    def answer_end(self, received: bytes) -> int:
        """Return the shortest length of the bytes' beginning that holds the answer."""
        low, high = 1, len(received)
        while low < high:
            middle = (low + high) // 2
            if self.is_answered_by(received[:middle]):
                high = middle
            else:
                low = middle + 1
        return high


@dataclass(frozen=True, slots=True)
class TimedAnswer(Generic[Reply]):
    """An answer with its instants.

    Attributes:
        reply: what `parse` returned.
        written_at: when the first byte of the request was handed to the system.
        at: when the last byte of the answer arrived.
    """

    reply: Reply
    written_at: MonotonicSeconds
    at: MonotonicSeconds


@dataclass(slots=True, eq=False)
class Transaction:
    """An exchange in the queue or on the wire. It is done once answered, failed, past its deadline, or cancelled.

    `shortest` is the shortest time-out, in seconds, to which the line may cut a scan.
    """

    exchange: Exchange[object]
    priority: Priority
    deadline: MonotonicSeconds
    timeout: float
    answer: asyncio.Future[TimedAnswer[object]] = field(repr=False)
    forbidden: Forbidden | None = None
    sent: bool = False
    added_at: MonotonicSeconds = 0.0
    shortest: float = 0.0

    @property
    def is_of_site(self) -> bool:
        """True unless it is a scan: only then does its result count for the line's quality."""
        return self.priority is not Priority.SCAN

    def expire(self) -> None:
        """Fail it with DeadlinePassed, unless its request was sent already; then its own time-out counts."""
        if not self.sent:
            self.fail(DeadlinePassed("the line was not free before the deadline; nothing was sent"))

    def fail(self, error: Exception) -> None:
        """Pass an error to its caller, unless it is done."""
        if not self.answer.done():
            self.answer.set_exception(error)

    def succeed(self, answer: TimedAnswer[object]) -> None:
        """Pass the answer to its caller, unless it is done."""
        if not self.answer.done():
            self.answer.set_result(answer)


class TransactionQueue:
    """The waiting transactions: one first-in, first-out queue for each priority, of at most `limit` each."""

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._waiting: dict[Priority, deque[Transaction]] = {priority: deque() for priority in Priority}

    def __bool__(self) -> bool:
        return any(self._waiting.values())

    @property
    def has_untagged(self) -> bool:
        """True when a transaction waits whose answers bear no numbers, as where only silence separates frames."""
        return any(not waiting.exchange.tagged for queue in self._waiting.values() for waiting in queue)

    @property
    def has_scan(self) -> bool:
        """True when a scan waits."""
        return bool(self._waiting[Priority.SCAN])

    def add(self, transaction: Transaction) -> None:
        """Put it at the end of its priority's queue. Raises LineDown when that is full."""
        queue = self._waiting[transaction.priority]
        if len(queue) >= self._limit:
            raise LineDown(f"the line is overloaded: {self._limit} requests wait")
        queue.append(transaction)

    def first(self, priority: Priority, *, now: MonotonicSeconds) -> Transaction | None:
        """Return the oldest of that priority that is not done, and leave it in the queue. Drop those before it."""
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
        """Fail all waiting transactions with LineDown and this reason."""
        for queue in self._waiting.values():
            while queue:
                queue.popleft().fail(LineDown(reason))


def next_turn(
    queue: TransactionQueue, states: UnitStates, *, quiet: float, idle: float, now: MonotonicSeconds
) -> Transaction | None:
    """Take the next transaction out of the queue and set its time-out; None when none may go now.

    A probe that waited for `LONGEST_PROBE_WAIT` goes before polls, but then a waiting poll goes before the next such
    probe. A scan never goes while anything else waits, however long it has waited.

    Args:
        queue: the waiting transactions.
        states: the state of the line's units.
        quiet: seconds that the line needs to fall silent after a time-out.
        idle: seconds since the last byte on the line.
        now: the present instant.
    """
    command = queue.first(Priority.COMMAND, now=now)
    if command is not None:
        return queue.take(command)
    poll, probe = queue.first(Priority.POLL, now=now), queue.first(Priority.PROBE, now=now)
    if probe is not None:
        timeout = _probe_timeout(probe, states, is_alone=poll is None, quiet=quiet, now=now)
        if timeout is not None:
            probe.timeout = timeout
            states.poll_is_owed = poll is not None
            return queue.take(probe)
    if poll is None:
        return None if probe is not None or idle < _SCAN_IDLE else _scan(queue, states, quiet=quiet, now=now)
    states.poll_is_owed = False
    if states.is_live(poll.exchange.unit):
        poll.timeout = states.live_timeout(poll.exchange.unit, poll.timeout)
    return queue.take(poll)


def _scan(queue: TransactionQueue, states: UnitStates, *, quiet: float, now: MonotonicSeconds) -> Transaction | None:
    """Take a scan if the line stays free long enough, and cut its time-out to the pause.

    A scan that waited for `LONGEST_SCAN_WAIT` goes in a shorter pause too, and may then delay the next poll.
    """
    scan = queue.first(Priority.SCAN, now=now)
    if scan is None:
        return None
    pause = states.free(now=now)
    free = pause - quiet - _SCAN_MARGIN
    is_late = now - scan.added_at >= LONGEST_SCAN_WAIT
    if free < scan.shortest and not (is_late and pause >= scan.shortest / _LATE_SCAN_SHARE):
        return None
    scan.timeout = max(scan.shortest, min(scan.timeout, free))
    return queue.take(scan)


def _probe_timeout(
    probe: Transaction, states: UnitStates, *, is_alone: bool, quiet: float, now: MonotonicSeconds
) -> float | None:
    unit, allowed = probe.exchange.unit, probe.timeout
    if now - probe.added_at >= LONGEST_PROBE_WAIT and (is_alone or not states.poll_is_owed):
        return states.late_probe_timeout(unit, allowed, now=now)
    if not is_alone:
        return None
    return states.probe_timeout(unit, allowed, pause=states.pause(now=now) - quiet, now=now)
