"""Writes of records that central also keeps: each enters the outbox, and its caller waits while central answers."""

from __future__ import annotations

import asyncio
from enum import Enum
from weakref import WeakValueDictionary

import structlog

from gateway.central.push.events import EventLimit
from gateway.central.push.outbox import OutboxSender
from gateway.central.site_cards import KIND as CARD
from gateway.central.site_cards import SiteCards
from gateway.domain.errors import CentralRefused, CommandRefused, QuotaExceeded, StoreError
from gateway.domain.events import Event, EventKind
from gateway.domain.writes import Effect, JsonObject, WriteOperation, WriteResult
from gateway.store import Entry, OutboxRow, PendingWrite
from gateway.texts import text

log = structlog.get_logger(__name__)

_CONFLICT = 409
_PULLED = frozenset({"access_card", "device", "camera"})


class _Way(Enum):
    THROUGH = "to central, now"
    WAITS = "held, and goes up later"
    ALONE = "kept at the site; central never had the record"


class CentralWrites:
    """Writer of records. A site without a central keeps them itself.

    Writes of one record are sent in order, and never before an earlier one that still waits.
    """

    def __init__(self, cards: SiteCards, *, sender: OutboxSender | None) -> None:
        """Take what writes need. `sender` is None for a site without a central."""
        self._sender = sender
        self._store = cards.store
        self._pending_writes = cards.store.pending_writes
        self._cards = cards
        self._clock = cards.clock
        self._refused_events = EventLimit(monotonic=cards.clock.monotonic, most=1)
        self._locks: WeakValueDictionary[tuple[str, int], asyncio.Lock] = WeakValueDictionary()

    @property
    def alone(self) -> bool:
        """True if the site has no central, so that records stay at the site."""
        return self._sender is None

    async def recall(self) -> None:
        """After a start, bring the cards up to date with writes that a crash left unfinished. Raises StoreError."""
        async with self._cards.turn:
            await self._cards.recall()

    async def write(self, operation: WriteOperation, body: JsonObject) -> WriteResult:
        """Send a write to central if central is online, otherwise queue it, and return the record as it is now.

        Args:
            operation: one of `gateway.domain.writes`.
            body: the fields of the interface; unless the record is new, with its `id`, which may be any id that it ever
                had.

        Raises:
            CentralRefused: central refused; nothing has changed.
            CommandRefused: another card has the number, and central cannot be asked; nothing has changed.
            StoreError: the record cannot be stored. A write that is in the outbox by then goes up by itself.
            QuotaExceeded: the backlog is full; nothing has changed.
        """
        try:
            return await self._write_in_order(operation, body)
        except QuotaExceeded as error:
            await self._report_refused(error)
            raise

    async def admit(self) -> None:
        """Raise QuotaExceeded when the backlog is full, for writes that do not pass through `write`."""
        if self.alone:
            return
        try:
            await self._store.backlog.admit()
        except QuotaExceeded as error:
            await self._report_refused(error)
            raise

    async def _write_in_order(self, operation: WriteOperation, body: JsonObject) -> WriteResult:
        if operation.effect is Effect.CREATE:
            return await self._write(operation, None, body)
        asked = body.get("id")
        if not isinstance(asked, int):
            raise TypeError(f"{operation.path} needs the id of a record")
        known = await self._pending_writes.site_id(operation.kind, asked)
        lock = self._locks.setdefault((operation.kind, known), asyncio.Lock())
        async with lock:
            return await self._write(operation, known, body)

    async def _write(self, operation: WriteOperation, record_id: int | None, body: JsonObject) -> WriteResult:
        if record_id is not None:  # it may have changed meanwhile
            record_id = await self._pending_writes.site_id(operation.kind, record_id)
        way = await self._way(operation, record_id)
        if self._sender is None or way is not _Way.THROUGH:
            return await self._hold(operation, record_id, body, sends=way is not _Way.ALONE)
        resolved = await self._store.references.resolve(body)
        if resolved.waits_for is not None:
            return await self._hold(operation, record_id, body)
        if resolved.reason:
            raise CentralRefused(resolved.reason, status=_CONFLICT)
        return await self._send(self._sender, operation, record_id, body)

    async def _send(
        self, sender: OutboxSender, operation: WriteOperation, record_id: int | None, body: JsonObject
    ) -> WriteResult:
        """Send a write through the outbox and wait for central's answer; hold it if the outcome stays unknown."""
        try:
            return await self._send_and_wait(sender, operation, record_id, body)
        except (
            StoreError,
            asyncio.CancelledError,
        ):  # a row that is queued goes up by itself, so the card has to follow
            self._cards.cards.behind = True
            raise

    async def _send_and_wait(
        self, sender: OutboxSender, operation: WriteOperation, record_id: int | None, body: JsonObject
    ) -> WriteResult:
        before = None if record_id is None else await self._at_site(operation, record_id)
        row = await self._pending_writes.ask(operation, record_id, body, now=self._clock.wall().micros)
        try:
            caller = await sender.send_for_caller(row)
            if caller.record_id is None:
                return await self._hold(operation, record_id, body, asked=row)
        except (CentralRefused, CommandRefused, QuotaExceeded):
            await self._pending_writes.withdraw(row)
            raise
        finally:
            self._pending_writes.let_go(row)
        if operation.effect is Effect.DELETE:
            return WriteResult(record_id, before or {"id": record_id}, waits=False)
        shown = await self._at_site(operation, caller.record_id) or {**body, "id": caller.record_id}
        if record_id is None and caller.central_id is None and not caller.waits and operation.kind in _PULLED:
            await self._leave_to_pull(row)
            return WriteResult(None, {name: value for name, value in shown.items() if name != "id"}, waits=False)
        known = caller.record_id if caller.central_id is None else caller.central_id
        return WriteResult(known if record_id is None else caller.record_id, shown, waits=caller.waits)

    async def _leave_to_pull(self, row: OutboxRow) -> None:
        """Remove a new record of which central does not say the id: the next pull brings it under its id."""
        await self._pending_writes.withdraw(row)
        if row.kind == CARD:
            async with self._cards.turn:
                await self._cards.forget(row.record_id)

    async def _way(self, operation: WriteOperation, record_id: int | None) -> _Way:
        """Return the way that a write of the record goes."""
        if self._sender is None:
            return _Way.ALONE
        away = self._sender.is_away()
        if record_id is None:
            return _Way.WAITS if away else _Way.THROUGH
        waiting = await self._pending_writes.waiting(operation.kind, record_id)
        if not all(write.holds_up_nothing for write in waiting):
            return _Way.WAITS
        if await self._pending_writes.central_id(operation.kind, record_id) is None:
            return _Way.ALONE
        return _Way.WAITS if away else _Way.THROUGH

    async def _hold(
        self,
        operation: WriteOperation,
        record_id: int | None,
        body: JsonObject,
        *,
        sends: bool = True,
        asked: OutboxRow | None = None,
    ) -> WriteResult:
        now = self._clock.wall().micros
        begun = asked is not None and await self._pending_writes.is_begun(asked)
        async with self._cards.turn:
            if operation.kind == CARD and not begun:
                await self._cards.refuse_duplicate_number(operation, record_id, body)
            before = await self._cards.record(record_id) if operation.kind == CARD and record_id is not None else None
            pending = await self._pending_writes.hold(
                operation, record_id, body, now=now, sends=sends, asked=asked, before=before
            )
            record = pending.record
            if operation.kind == CARD:
                record = await self._follow(operation, pending, body)
        shown = record or {**body, "id": pending.record_id}
        return WriteResult(pending.record_id, shown, waits=pending.waits, taken_back=pending.taken_back)

    async def _follow(self, operation: WriteOperation, pending: PendingWrite, body: JsonObject) -> JsonObject | None:
        """Update the card. If it cannot be written, a queued write stays accepted, so that nobody repeats it."""
        try:
            return await self._cards.follow(operation, pending, body)
        except StoreError as error:
            if not pending.waits:
                raise
            log.warning("card_follows_later", record_id=pending.record_id, error=str(error))
            return None

    async def _report_refused(self, error: QuotaExceeded) -> None:
        """Record one event an hour, however many writes the full backlog refuses."""
        suppressed = self._refused_events.admit()
        if suppressed is None:
            return
        stamp = self._clock.wall()
        event = Event(
            kind=EventKind.WRITES_REFUSED,
            date_at=stamp.micros,
            clock_trusted=stamp.trusted,
            text=text("event.writes_refused", why=error.words),
            data={"refused_since_last_told": suppressed + 1},
        )
        try:
            await self._store.journal.record(Entry(events=(event,)))
        except StoreError as failed:
            log.warning("refused_writes_not_recorded", error=str(failed))  # the caller still gets the refusal

    async def _at_site(self, operation: WriteOperation, record_id: int) -> JsonObject | None:
        if operation.kind == CARD:
            return await self._cards.record(record_id)
        return await self._pending_writes.record(operation.kind, record_id)
