"""The scheduler of a shared line: one owner, one transaction at a time, commands before polls.

Promises:
- A command goes at the next turn: besides earlier commands, at most the one transaction under way is ahead of it.
- A command past its deadline, or for a line that is down, is refused; it never waits for the line to return.
- After a command without a proven answer the line is reset, so that no byte of it arrives later. The reset also drops
  what others wrote on the line.
- A connection that was reset, or that the far end closed after an answer, is opened again at once. Polls wait for it.
- A command is written only when everything before it was acknowledged, and taken back before the kernel would send it
  again (`drivers.delivery`).
- After a time-out the line is drained until it is quiet, and a late answer never counts for the next request. Where
  answers bear no numbers, one counts only when it is proven to belong to its request (`drivers.bus.late_answers`).
- An echo of the line, which nobody set, is no answer (`drivers.bus.wire`).
- A silent unit gets a bounded share of the line, in the pauses of the others (`drivers.bus.unit_states`). Between its
  turns it rests: its polls are refused.
- A line that is open while no unit answers is closed and opened again, since a converter or an adapter may hang.
- Where the far end hangs up after each answer or after a few, each request gets a connection of its own. The line
  counts as open between them, and is down when it does not open.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace

from drivers.backoff import Reconnects
from drivers.bus.late_answers import LineUnits
from drivers.bus.line_quality import LineQuality
from drivers.bus.recent import Turn
from drivers.bus.transactions import Exchange, Priority, Reply, TimedAnswer, Transaction, TransactionQueue, next_turn
from drivers.bus.wire import Trace, Wire
from drivers.contract import (
    Cause,
    DeadlinePassed,
    Forbidden,
    LineDown,
    LinkError,
    MonotonicSeconds,
    NotPermitted,
    ProtocolViolation,
)
from drivers.link import Connection, LinkSpec, open_link

OPEN_SECONDS = 3.0
"""The longest time for opening a line, in seconds; after that the line is down, with the reason."""
_PAUSE_LOOK = 0.02
_SCAN_LOOK = 0.005
_SETTLE_SECONDS = 0.3
"""The longest wait, in seconds, of a command until earlier bytes are acknowledged: time to send one packet again."""
_HANGS_UP_AFTER = 2
"""Connections in a row, each ended by the far end after few answers, that show that it keeps none open for long."""
_FEW_ANSWERS = 10
_SILENT_LIMIT = 10
_SILENT_LIMIT_SERIAL = 30
_TAGS = 0xFFFF


class Bus:
    """The owner of one line. Drivers hand it exchanges; only `run` reads and writes the line.

    Args:
        name: the link's id, for messages to people.
        spec: the line's address and settings.
        monotonic: the clock of deadlines and stamps.
        trace: called with every byte of the line.
        queue_limit: how many transactions of each priority may wait.
        silent_limit: the line is opened again after this many time-outs in a row; None for the default of its kind (30
            for serial lines, 10 for others).
    """

    def __init__(
        self,
        *,
        name: str,
        spec: LinkSpec,
        monotonic: Callable[[], float] = time.monotonic,
        trace: Trace | None = None,
        queue_limit: int = 32,
        silent_limit: int | None = None,
    ) -> None:
        self._name = name
        self._spec = spec
        self._monotonic = monotonic
        self._queue = TransactionQueue(limit=queue_limit)
        self._units = LineUnits(line=name)
        self._silent_limit = silent_limit or (_SILENT_LIMIT_SERIAL if spec.is_serial else _SILENT_LIMIT)
        self.wire = Wire(name=name, spec=spec, monotonic=monotonic, trace=trace, dropped=self._take_beside)
        self._wake = asyncio.Event()
        self._connection: Connection | None = None
        self._down_reason = f"line {name} is not open yet"
        self._down_cause: Cause | None = None
        self._silent = 0
        self._opens_at_once = False
        self._hung_up = 0
        self._is_between = False
        self._last_tag = 0
        self._busy_since: MonotonicSeconds | None = None
        self._interrupted: set[Callable[[], None]] = set()

    @property
    def name(self) -> str:
        """The link's id."""
        return self._name

    @property
    def down_reason(self) -> str | None:
        """The reason why the line is down, None while it is open. Units on an open line may still be silent."""
        if self._is_between:
            return None
        return self._down_reason if self._connection is None else self._connection.lost

    @property
    def busy_since(self) -> MonotonicSeconds | None:
        """The instant at which the transaction under way began, None between transactions."""
        return self._busy_since

    @property
    def spec(self) -> LinkSpec:
        """The line's address and settings."""
        return self._spec

    @property
    def silent_units(self) -> frozenset[int]:
        """The addresses of the units that were polled and do not answer."""
        return self._units.states.silent

    def quality(self) -> LineQuality:
        """Return the line's state and statistics of how each unit on it answers."""
        quality = self._units.quality(down_reason=self.down_reason or "", now=self._monotonic())
        return replace(
            quality,
            echoes=self.wire.has_untold_echo,
            down_cause=self._down_cause if quality.down_reason else None,
            is_serial=self._spec.is_serial,
        )

    def turns_since(self, number: int) -> tuple[Turn, ...]:
        """Return those of the last 300 transactions whose number is greater than `number`, oldest first."""
        return self._units.recent.since(number)

    def tag(self) -> int:
        """Return a transaction number from 1 to 65535 for the next request. It repeats only after 65,535 requests."""
        self._last_tag = self._last_tag % _TAGS + 1
        return self._last_tag

    @contextmanager
    def telling_interruptions(self, told: Callable[[], None]) -> Iterator[None]:
        """Inside this context, call `told` whenever an open line is lost, before it is opened again."""
        self._interrupted.add(told)
        try:
            yield
        finally:
            self._interrupted.discard(told)

    async def run(self) -> None:
        """Keep the line open and serve the queue until cancelled; waiting callers then get LinkError."""
        reconnects = Reconnects()
        while True:
            was_open = False
            try:
                self._connection = await open_link(
                    self._spec, timeout=OPEN_SECONDS, monotonic=self._monotonic, on_change=self._wake.set
                )
                self._is_between = self._opens_at_once = False
                answered = await self._serve_until_lost(self._connection)
                reconnects.failed(was_good=answered)
            except LinkError as error:
                self._opens_at_once = self._opens_at_once and self._connection is not None
                was_open, self._is_between = self._is_between, False
                self._down_reason, self._down_cause = str(error), error.cause
                reconnects.failed()
            except asyncio.CancelledError:
                self._is_between = False
                raise
            finally:
                was_open, self._connection = was_open or self._connection is not None, None
                if not self._is_between:
                    self._lose(was_open=was_open)
            if self._is_between:
                await self._await_request()
            elif not self._opens_at_once:
                await asyncio.sleep(reconnects.wait())

    async def transact(
        self,
        exchange: Exchange[Reply],
        *,
        priority: Priority,
        deadline: MonotonicSeconds,
        timeout: float = 0.3,
        forbidden: Forbidden | None = None,
        shortest: float = 0.0,
    ) -> TimedAnswer[Reply]:
        """Send the request and wait for its answer.

        If the caller is cancelled while its request is on the wire, the line stays in order: the bus still waits for
        the answer and drops it.

        Args:
            exchange: the request, and the function that recognises its answer.
            priority: commands go before polls, and scans behind everything.
            deadline: the request is not sent after this instant.
            timeout: seconds from the request to the whole answer; a poll may be given up earlier when the unit's recent
                answers came much faster.
            forbidden: called right before the first byte is written, when the caller of the transaction before has
                handled its answer; a reason from it stops the request.
            shortest: the shortest time-out, in seconds, to which the line may cut a scan.

        Raises:
            LineDown: the line is down or its queue is full; nothing was sent.
            LinkError: the unit did not answer in time; TooLate when it was seen to answer later.
            NotPermitted: `forbidden` gave a reason; nothing was sent.
            UnitRests: a poll was not sent because the unit rests, or its answer may belong to an earlier request.
            DeadlinePassed: the line was not free in time; nothing was sent.
            ProtocolViolation: the bytes that came are no valid answer; the line was drained.
        """
        self._refuse_hopeless(exchange.unit, priority, deadline)
        now = self._monotonic()
        if priority is Priority.POLL:
            priority = self._units.polled(exchange.unit, allowed=timeout, now=now)
        loop = asyncio.get_running_loop()
        transaction = Transaction(
            exchange,  # type: ignore[arg-type]  # the line never looks at the reply
            priority,
            deadline,
            timeout,
            loop.create_future(),
            forbidden,
            added_at=now,
            shortest=shortest,
        )
        self._queue.add(transaction)
        expiry = loop.call_later(max(0.0, deadline - now), transaction.expire)
        self._wake.set()
        try:
            answer = await transaction.answer
        finally:
            expiry.cancel()
        return answer  # type: ignore[return-value]  # made by this exchange's own parse

    def _refuse_hopeless(self, unit: int, priority: Priority, deadline: MonotonicSeconds) -> None:
        down = self.down_reason
        if down is not None and not (self._opens_at_once and priority is Priority.POLL):
            raise LineDown(down)
        now = self._monotonic()
        if now >= deadline:
            raise DeadlinePassed(f"the deadline passed before line {self._name} was asked")
        if priority is Priority.POLL:
            self._units.refuse_resting(unit, now=now)

    @property
    def _has_one_each(self) -> bool:
        """True when each request gets a connection of its own, since the far end hangs up after a few answers."""
        return self._hung_up >= _HANGS_UP_AFTER

    def _lose(self, *, was_open: bool) -> None:
        self._queue.refuse_all(self._down_reason)
        for told in tuple(self._interrupted) if was_open else ():
            told()

    async def _await_request(self) -> None:
        """Wait until a request wants a connection. If cancelled, refuse all requests: the line is not opened again."""
        try:
            while not self._queue:
                self._wake.clear()
                await self._wake.wait()
        except asyncio.CancelledError:
            self._is_between, self._down_reason = False, f"line {self._name} is closed"
            self._lose(was_open=True)
            raise

    async def _serve_until_lost(self, connection: Connection) -> bool:
        """Serve until the line is lost, or has its one answer; return whether any unit answered meanwhile."""
        answers = 0
        self._silent = 0
        try:
            while connection.lost is None and not self._is_dead_session() and not self._is_between:
                transaction = await self._next(connection)
                if transaction is not None:
                    self._busy_since = self._monotonic()
                    answers += await self._serve(connection, transaction)
                    self._busy_since = None
                    self._is_between = self._has_one_each and answers > 0
            if connection.lost and self._spec.is_serial:
                # a serial port, unlike a converter on the network, holds no late bytes for the next connection
                self._units.forget_late_answers()
            if connection.has_hung_up:
                self._hung_up = self._hung_up + 1 if 0 < answers <= _FEW_ANSWERS else 0
                self._opens_at_once = answers > 0
            self._down_reason = connection.lost or f"{self._spec.url} is open but nobody answers"
            self._down_cause = None
        finally:
            self._busy_since = None
            await connection.close()
        return answers > 0

    async def _next(self, connection: Connection) -> Transaction | None:
        """Wait until the line is quiet and a transaction may go, and return it; None when the line is lost first."""
        while connection.lost is None:
            self._wake.clear()
            self.wire.drop(connection.discard())
            if not self._queue:
                await self._wake.wait()
                continue
            gap = self.wire.gap_left()
            if gap > 0 and (self._spec.is_serial or self._spec.pause or self._queue.has_untagged):
                await asyncio.sleep(gap)
                if connection.has_arrivals:
                    continue
            quiet, idle = self.wire.quiet, self.wire.idle
            transaction = next_turn(self._queue, self._units.states, quiet=quiet, idle=idle, now=self._monotonic())
            if transaction is not None:
                return transaction
            if self._queue:
                await self._await_pause()
        return None

    async def _await_pause(self) -> None:
        """Wait shortly, or until another request comes, when only probes or scans wait and the pause is too short."""
        try:
            async with asyncio.timeout(_SCAN_LOOK if self._queue.has_scan else _PAUSE_LOOK):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _serve(self, connection: Connection, transaction: Transaction) -> bool:
        """Make one transaction; return whether it was answered. Raises LinkError when the line is lost in a drain."""
        exchange = transaction.exchange
        received = bytearray()
        written_at = self._monotonic()
        try:
            if not await self._is_ready(connection, transaction):
                return False
            self.wire.drop(connection.discard())
            written_at = self._monotonic()
            transaction.sent = True
            self.wire.send(connection, exchange.request, at=written_at)
            with connection.guarding_delivery() if transaction.priority is Priority.COMMAND else nullcontext():
                async with asyncio.timeout(transaction.timeout):
                    is_command = transaction.priority is Priority.COMMAND
                    reply, at = await self.wire.reply(connection, exchange, received, is_command=is_command)
        except (TimeoutError, ProtocolViolation, LinkError) as error:
            self._take_back(connection, transaction)
            if isinstance(error, TimeoutError):
                self._silent += transaction.is_of_site
                transaction.fail(self._units.timed_out(transaction, bytes(received), now=self._monotonic()))
            else:
                transaction.fail(error)
            self._units.failed(transaction, bytes(received), error, asked_at=written_at, now=self._monotonic())
            if connection.lost is None:
                await self.wire.quieten(connection)
            return False
        except BaseException:  # cancelled, or a bug in a parser: end the caller's wait before the error goes on
            self._take_back(connection, transaction)
            transaction.fail(LinkError(f"line {self._name} closes"))
            raise
        if not exchange.answered:
            self._units.answered(transaction, b"", asked_at=written_at, at=at)
            transaction.succeed(TimedAnswer(reply, written_at, at))
            return False
        self._silent = 0
        doubt = None
        if not exchange.tagged:
            doubt = self._units.unproven(transaction, bytes(received), asked_at=written_at, at=at)
        if doubt is None:
            self._units.answered(transaction, bytes(received), asked_at=written_at, at=at)
            transaction.succeed(TimedAnswer(reply, written_at, at))
        else:
            self._take_back(connection, transaction)
            transaction.fail(doubt)
        return True

    def _take_back(self, connection: Connection, transaction: Transaction) -> None:
        """Reset the line if a command was sent without an answer, so that none of its bytes arrives later."""
        if transaction.priority is Priority.COMMAND and transaction.sent and connection.lost is None:
            connection.reset(f"line {self._name} was reset: a command was not answered in time")
            self._opens_at_once = connection.lost is not None  # a serial port stays open

    async def _is_ready(self, connection: Connection, transaction: Transaction) -> bool:
        """Prepare the line for a request; return whether the request may be sent now. If not, fail it."""
        is_command = transaction.priority is Priority.COMMAND
        if is_command and not await self._is_settled(connection):
            self._refuse(connection, transaction, f"{self._spec.url} has not taken what was sent before")
            return False
        prelude = transaction.exchange.prelude
        if prelude is not None:
            await self.wire.prepare(connection, prelude)
        if transaction.forbidden is not None:
            await self._ask_permission(transaction, transaction.forbidden)
        if not self._is_wanted(transaction):
            return False
        if is_command and (reason := connection.why_not_write):
            self._refuse(connection, transaction, f"{self._spec.url}: {reason}")
        return not transaction.answer.done()

    async def _is_settled(self, connection: Connection) -> bool:
        """Wait up to 0.3 s until everything sent before is acknowledged; return whether it is.

        If earlier bytes were lost, the kernel would send them again, and the command with them, within milliseconds.
        """
        try:
            async with asyncio.timeout(_SETTLE_SECONDS):
                await connection.sent()
        except (TimeoutError, LinkError):
            return False
        return True

    def _refuse(self, connection: Connection, transaction: Transaction, reason: str) -> None:
        """Refuse a command of which no byte was sent, and reset the line."""
        connection.reset(reason)
        transaction.fail(LineDown(connection.lost or reason))

    async def _ask_permission(self, transaction: Transaction, forbidden: Forbidden) -> None:
        """Fail the transaction if it is forbidden.

        First let the event loop run once, so that the driver reports the last answer before `forbidden` is called. In
        that turn the caller or the deadline may end the transaction; `_is_wanted` checks that afterwards.
        """
        await asyncio.sleep(0)
        reason = forbidden()
        if reason:
            transaction.fail(NotPermitted(reason))

    def _is_wanted(self, transaction: Transaction) -> bool:
        """Return whether the transaction still waits: its deadline has not passed and its caller has not gone."""
        if self._monotonic() >= transaction.deadline:
            transaction.expire()
        return not transaction.answer.done()

    def _is_dead_session(self) -> bool:
        """Return whether so many time-outs came in a row that the line should be closed and opened again."""
        return self._silent >= self._silent_limit

    def _take_beside(self, data: bytes, at: MonotonicSeconds) -> None:
        if self._units.take(data, now=at):
            self._silent = 0  # a unit answers, if too late: opening the line again would not make it faster


class UnitRequests:
    """The base of each family's requests to one unit. Each is a single transaction, which is never repeated.

    Args:
        bus: the line.
        unit: the unit's address.
        timeout: how long an answer may take, in seconds.
        shortest: the seconds to which the line may cut the time-out of a scan.
    """

    def __init__(self, *, bus: Bus, unit: int, timeout: float, shortest: float = 0.0) -> None:
        self._bus = bus
        self._unit = unit
        self._timeout = timeout
        self._shortest = shortest

    @property
    def down_reason(self) -> str | None:
        """The reason why the line is down, None while it is open."""
        return self._bus.down_reason

    def telling_interruptions(self, told: Callable[[], None]) -> AbstractContextManager[None]:
        """Inside this context, call `told` whenever an open line is lost, before it is opened again."""
        return self._bus.telling_interruptions(told)

    async def _transact(
        self,
        exchange: Exchange[Reply],
        priority: Priority,
        deadline: MonotonicSeconds,
        forbidden: Forbidden | None = None,
    ) -> TimedAnswer[Reply]:
        """Send a request and return its answer. For a command, garbage is a LinkError: the device may have obeyed."""
        try:
            return await self._bus.transact(
                exchange,
                priority=priority,
                deadline=deadline,
                timeout=self._timeout,
                forbidden=forbidden,
                shortest=self._shortest,
            )
        except ProtocolViolation as violation:
            if priority is not Priority.COMMAND:
                raise
            raise LinkError(f"unit {self._unit} answered a command with garbage: {violation}") from violation
