"""The scheduler of a shared line: one owner, one transaction at a time, commands before polls.

What it keeps:
- A command is on the wire at the next turn: at most one transaction is ahead of it, besides earlier commands.
- A command past its deadline, or for a line that is down, is refused; it is never kept for later.
- After a time-out the line is drained to quiet, and an answer that comes late never answers the next request.
- A unit that does not answer gets a bounded share of the line: its polls are refused while it rests.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Generic, TypeVar

from drivers.contract import DeadlinePassed, LinkError, MonotonicSeconds, ProtocolViolation
from drivers.link import Connection, LinkSpec, open_link, reconnect_wait

Reply = TypeVar("Reply")

_OPEN_SECONDS = 3.0
_LONGEST_REPLY = 1024
_LONGEST_DRAIN = 0.25
_QUIET_FLOOR = 0.005
_LATE_GUARD = 1.0
_REST_SHARE = 4.0
_SILENT_LIMIT = 10
_TAGS = 0xFFFF


class UnitRests(LinkError):
    """The poll was not sent: the unit did not answer lately, and its share of the line is used up for now."""


class Priority(IntEnum):
    """Who goes first. Commands are tried while a unit rests; polls are not."""

    COMMAND = 0
    POLL = 1


class Direction(StrEnum):
    """Which way traced bytes went, as seen from here."""

    SENT = "sent"
    RECEIVED = "received"
    DROPPED = "dropped"


Trace = Callable[[Direction, bytes, MonotonicSeconds], None]
"""Where a technician's trace of the line goes. Called on the loop's thread; never blocks, never raises."""


@dataclass(frozen=True, slots=True)
class Exchange(Generic[Reply]):
    """One request and how its answer is recognised.

    Attributes:
        unit: the address on the line.
        request: the bytes to send.
        parse: pure; given all bytes that came since the request, the answer, or None while more are needed. Whole
            frames that belong to somebody else are passed over. Raises ProtocolViolation for what can become nothing.
        tagged: whether answers carry the request's number. If not, a late answer looks like a fresh one, so the unit
            rests after a time-out until a late answer must have come.
    """

    unit: int
    request: bytes
    parse: Callable[[bytes], Reply | None]
    tagged: bool


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


@dataclass(slots=True)
class _Rest:
    """What is held against a unit that did not answer."""

    failures: int = 0
    until: MonotonicSeconds = float("-inf")


@dataclass(slots=True)
class _Waiting:
    """A transaction in the queue. Its future is done when its caller or its deadline has given it up."""

    exchange: Exchange[object]
    priority: Priority
    deadline: MonotonicSeconds
    timeout: float
    future: asyncio.Future[Answer[object]] = field(repr=False)
    sent: bool = False


def rest_after(*, failures: int, timeout: float, tagged: bool, silent_units: int = 1) -> float:
    """Seconds for which the polls of a unit rest after that many time-outs in a row.

    One lost answer costs nothing where answers are numbered. From the second on, all silent units together take about a
    fifth of the line. Where answers are not numbered, a unit always rests until 1 s after its request, so that its late
    answer cannot be taken for the answer to the next.
    """
    share = 0.0 if failures < 2 else _REST_SHARE * timeout * silent_units
    return share if tagged else max(share, _LATE_GUARD - timeout)


class Bus:
    """The owner of one line. Drivers hand it exchanges; `run` alone reads and writes.

    Args:
        name: for people: the link's id.
        spec: where the line is.
        monotonic: the clock of deadlines and stamps.
        trace: hears every byte of the line.
        queue_limit: how many transactions may wait, of each priority.
    """

    def __init__(
        self,
        *,
        name: str,
        spec: LinkSpec,
        monotonic: Callable[[], float] = time.monotonic,
        trace: Trace | None = None,
        queue_limit: int = 32,
    ) -> None:
        self._name = name
        self._spec = spec
        self._monotonic = monotonic
        self._trace = trace
        self._queue_limit = queue_limit
        self._queues: dict[Priority, deque[_Waiting]] = {priority: deque() for priority in Priority}
        self._wake = asyncio.Event()
        self._connection: Connection | None = None
        self._down_reason = f"line {name} is not open yet"
        self._rests: dict[int, _Rest] = {}
        self._silent = 0
        self._last_byte_at = float("-inf")
        self._last_tag = 0
        self._command_written_at: MonotonicSeconds | None = None

    @property
    def name(self) -> str:
        """The link's id."""
        return self._name

    @property
    def is_open(self) -> bool:
        """Whether the line is open. That says nothing of the units on it."""
        return self._connection is not None

    @property
    def down_reason(self) -> str | None:
        """Why the line is not open, or None when it is."""
        return None if self.is_open else self._down_reason

    @property
    def last_command_written_at(self) -> MonotonicSeconds | None:
        """When the first byte of the last command was handed to the system."""
        return self._command_written_at

    def tag(self) -> int:
        """A number for the next request, 1 to 65535, unlike those of the 65,534 requests before."""
        self._last_tag = self._last_tag % _TAGS + 1
        return self._last_tag

    async def run(self) -> None:
        """Keep the line open and serve it. Returns only by cancellation; whoever waits then gets LinkError."""
        failures = 0
        while True:
            try:
                self._connection = await open_link(
                    self._spec, timeout=_OPEN_SECONDS, monotonic=self._monotonic, on_change=self._wake.set
                )
                answered = await self._serve_until_lost(self._connection)
                failures = 1 if answered else failures + 1
            except LinkError as error:
                self._down_reason = str(error)
                failures += 1
            finally:
                self._connection = None
                self._refuse_waiting()
            await asyncio.sleep(reconnect_wait(failures))

    async def transact(
        self,
        exchange: Exchange[Reply],
        *,
        priority: Priority,
        deadline: MonotonicSeconds,
        timeout: float = 0.3,
    ) -> Answer[Reply]:
        """Send the request and wait for its answer.

        Args:
            exchange: what to send, and how to know the answer.
            priority: commands go before polls.
            deadline: past it the request is not sent any more.
            timeout: seconds from the request to the whole answer.

        Raises:
            LinkError: the line is down, its queue is full, or the unit did not answer in time.
            UnitRests: a poll was not sent because the unit did not answer lately.
            DeadlinePassed: the line was not free in time; nothing was sent.
            ProtocolViolation: the answer is none; the line was drained.
        """
        self._refuse_hopeless(exchange.unit, priority, deadline)
        loop = asyncio.get_running_loop()
        waiting = _Waiting(exchange, priority, deadline, timeout, loop.create_future())  # type: ignore[arg-type]  # the queue does not care which reply
        expiry = loop.call_later(max(0.0, deadline - self._monotonic()), _expire, waiting)
        self._queues[priority].append(waiting)
        self._wake.set()
        try:
            answer = await waiting.future
        finally:
            expiry.cancel()
        return answer  # type: ignore[return-value]  # made by this exchange's own parse

    def _refuse_hopeless(self, unit: int, priority: Priority, deadline: MonotonicSeconds) -> None:
        if self._connection is None or self._connection.lost is not None:
            raise LinkError(self._down_reason if self._connection is None else str(self._connection.lost))
        now = self._monotonic()
        if now >= deadline:
            raise DeadlinePassed(f"the deadline passed before line {self._name} was asked")
        rest = self._rests.get(unit)
        if priority is Priority.POLL and rest is not None and now < rest.until:
            raise UnitRests(f"unit {unit} on {self._name} does not answer; asked again in {rest.until - now:.1f} s")
        if len(self._queues[priority]) >= self._queue_limit:
            raise LinkError(f"line {self._name} is overloaded: {self._queue_limit} requests wait")

    async def _serve_until_lost(self, connection: Connection) -> bool:
        """Serve until the line is lost; whether any unit answered meanwhile."""
        answered = False
        self._silent = 0
        try:
            while connection.lost is None and not self._is_dead_session():
                waiting = await self._next(connection)
                if waiting is not None:
                    answered = await self._serve(connection, waiting) or answered
            self._down_reason = connection.lost or f"{self._spec.url} is open but nobody answers"
        finally:
            await connection.close()
        return answered

    async def _next(self, connection: Connection) -> _Waiting | None:
        """The next transaction, its line quiet; None when the line is lost first."""
        while connection.lost is None:
            self._wake.clear()
            self._drop(connection.discard())
            if any(self._queues.values()):
                gap = self._last_byte_at + self._spec.frame_gap - self._monotonic()
                if self._needs_gap() and gap > 0:
                    await asyncio.sleep(gap)
                    if connection.has_arrivals:
                        continue
                waiting = self._pop()
                if waiting is not None:
                    return waiting
                continue
            await self._wake.wait()
        return None

    def _is_dead_session(self) -> bool:
        """Whether nobody answers on a TCP line that looks open: a new session is what may help."""
        return not self._spec.is_serial and self._silent >= _SILENT_LIMIT

    def _needs_gap(self) -> bool:
        """Whether frames of this line are parted by silence: on serial lines, and where answers have no number."""
        return self._spec.is_serial or any(not w.exchange.tagged for queue in self._queues.values() for w in queue)

    def _pop(self) -> _Waiting | None:
        for priority in Priority:
            queue = self._queues[priority]
            while queue:
                waiting = queue.popleft()
                if waiting.future.done():
                    continue
                if self._monotonic() >= waiting.deadline:
                    _expire(waiting)
                    continue
                return waiting
        return None

    async def _serve(self, connection: Connection, waiting: _Waiting) -> bool:
        """Make one transaction; whether it was answered. Only the loss of the line ends the service."""
        exchange, future = waiting.exchange, waiting.future
        self._drop(connection.discard())
        written_at = self._monotonic()
        try:
            waiting.sent = True
            connection.write(exchange.request)
            self._sent(exchange.request, written_at, waiting.priority)
            async with asyncio.timeout(waiting.timeout):
                reply, at = await self._await_reply(connection, exchange)
        except TimeoutError:
            self._blame(exchange, waiting.timeout)
            _fail(future, LinkError(_no_answer(exchange.unit, self._name, waiting.timeout)))
            await self._quieten(connection)
            return False
        except ProtocolViolation as violation:
            _fail(future, violation)
            await self._quieten(connection)
            return False
        except LinkError as error:
            _fail(future, error)
            return False
        except BaseException as error:
            # Cancelled in the middle, or a parser's own fault: the caller must hear of it before it goes on.
            _fail(future, LinkError(f"line {self._name} closed: {error!r}"))
            raise
        self._silent = 0
        self._rests.pop(exchange.unit, None)
        if not future.done():
            future.set_result(Answer(reply, written_at, at))
        return True

    async def _await_reply(self, connection: Connection, exchange: Exchange[object]) -> tuple[object, MonotonicSeconds]:
        received = bytearray()
        while True:
            arrival = await connection.read()
            received += arrival.data
            self._last_byte_at = arrival.at
            self._tell(Direction.RECEIVED, arrival.data, arrival.at)
            reply = exchange.parse(bytes(received))
            if reply is not None:
                return reply, arrival.at
            if len(received) > _LONGEST_REPLY:
                raise ProtocolViolation(f"{self._name} babbles: {len(received)} bytes and no answer among them")

    async def _quieten(self, connection: Connection) -> None:
        quiet = max(self._spec.frame_gap, _QUIET_FLOOR)
        self._drop(await connection.drain_to_quiet(quiet=quiet, longest=_LONGEST_DRAIN))

    def _sent(self, request: bytes, at: MonotonicSeconds, priority: Priority) -> None:
        if priority is Priority.COMMAND:
            self._command_written_at = at
        self._last_byte_at = at
        self._tell(Direction.SENT, request, at)

    def _blame(self, exchange: Exchange[object], timeout: float) -> None:
        self._silent += 1
        rest = self._rests.setdefault(exchange.unit, _Rest())
        rest.failures += 1
        rest.until = self._monotonic() + rest_after(
            failures=rest.failures, timeout=timeout, tagged=exchange.tagged, silent_units=len(self._rests)
        )

    def _drop(self, data: bytes) -> None:
        if data:
            self._last_byte_at = self._monotonic()
            self._tell(Direction.DROPPED, data, self._last_byte_at)

    def _tell(self, direction: Direction, data: bytes, at: MonotonicSeconds) -> None:
        if self._trace is not None:
            self._trace(direction, data, at)

    def _refuse_waiting(self) -> None:
        for queue in self._queues.values():
            while queue:
                _fail(queue.popleft().future, LinkError(self._down_reason))


def _expire(waiting: _Waiting) -> None:
    """Give up a transaction at its deadline, unless it is on the wire already."""
    if not waiting.sent:
        _fail(waiting.future, DeadlinePassed("the line was not free before the deadline; nothing was sent"))


def _fail(future: asyncio.Future[Answer[object]], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


def _no_answer(unit: int, name: str, timeout: float) -> str:
    return f"unit {unit} on {name} did not answer within {timeout * 1000:.0f} ms"
