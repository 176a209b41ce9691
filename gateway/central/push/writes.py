"""Writes of records that central also keeps: sent at once while central answers, otherwise put into the outbox."""

from __future__ import annotations

import asyncio
from enum import Enum
from weakref import WeakValueDictionary

import structlog

from gateway.central.client.not_found import NOT_FOUND, doubt
from gateway.central.push.events import EventLimit
from gateway.central.push.newest_ids import NewestIds
from gateway.central.push.requests import answered_record, given_id
from gateway.central.push.restored_central import RestoreDetector
from gateway.central.push.unknown_outcomes import UnknownCreate
from gateway.central.push.upstream import Upstream
from gateway.central.site_cards import KIND as CARD
from gateway.central.site_cards import SiteCards
from gateway.domain.conflicts import READS
from gateway.domain.errors import CentralRefused, CentralUnavailable, QuotaExceeded, StoreError
from gateway.domain.events import Event, EventKind
from gateway.domain.writes import Effect, JsonObject, WriteOperation, Written
from gateway.runtime.clock import Clock
from gateway.store import Entry, Journal, OutboxRow, PendingWrite, References
from gateway.store.outbox.backlog_quota import BacklogQuota
from gateway.store.outbox.pending_writes import PendingWrites
from gateway.store.outbox.rows import NEVER_TRIED, Attempt, new_key
from gateway.store.outbox.unknown_outcomes import UnknownOutcomes

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

    def __init__(
        self,
        *,
        upstream: Upstream | None,
        pending_writes: PendingWrites,
        references: References,
        unknown_outcomes: UnknownOutcomes,
        backlog: BacklogQuota,
        journal: Journal,
        cards: SiteCards,
        clock: Clock,
    ) -> None:
        """Take what writes need. `upstream` is None for a site without a central."""
        self._upstream = upstream
        self._pending_writes = pending_writes
        self._references = references
        self._unknown_outcomes = unknown_outcomes
        self._backlog = backlog
        self._journal = journal
        self._cards = cards
        self._clock = clock
        self._refused_events = EventLimit(monotonic=clock.monotonic, most=1)
        self._locks: WeakValueDictionary[tuple[str, int], asyncio.Lock] = WeakValueDictionary()

    @property
    def alone(self) -> bool:
        """True if the site has no central, so that records stay at the site."""
        return self._upstream is None

    async def recall(self) -> None:
        """After a start, bring the cards up to date with writes that a crash left unfinished. Raises StoreError."""
        async with self._cards.turn:
            await self._cards.recall()

    async def write(self, operation: WriteOperation, body: JsonObject) -> Written:
        """Send a write to central if central is online, otherwise queue it, and return the record as it is now.

        Args:
            operation: one of `gateway.domain.writes`.
            body: the fields of the interface; unless the record is new, with its `id`, which may be any id that it ever
                had.

        Raises:
            CentralRefused: central refused; nothing has changed.
            CommandRefused: another card has the number, and central cannot be asked; nothing has changed.
            StoreError: the record cannot be stored. If central has carried out the write, the next pull brings it.
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
            await self._backlog.admit()
        except QuotaExceeded as error:
            await self._report_refused(error)
            raise

    async def _write_in_order(self, operation: WriteOperation, body: JsonObject) -> Written:
        if operation.effect is Effect.CREATE:
            return await self._write(operation, None, body)
        asked = body.get("id")
        if not isinstance(asked, int):
            raise TypeError(f"{operation.path} needs the id of a record")
        known = await self._pending_writes.site_id(operation.kind, asked)
        lock = self._locks.setdefault((operation.kind, known), asyncio.Lock())
        async with lock:
            return await self._write(operation, known, body)

    async def _write(self, operation: WriteOperation, record_id: int | None, body: JsonObject) -> Written:
        if record_id is not None:  # it may have changed meanwhile
            record_id = await self._pending_writes.site_id(operation.kind, record_id)
        central_id, way = await self._way(operation, record_id)
        if self._upstream is None or way is not _Way.THROUGH:
            return await self._hold(operation, record_id, body, sends=way is not _Way.ALONE)
        resolved = await self._references.resolve(body)
        if resolved.waits_for is not None:
            return await self._hold(operation, record_id, body)
        if resolved.reason:
            raise CentralRefused(resolved.reason, status=_CONFLICT)
        if record_id is None or central_id is None:
            return await self._send(self._upstream, operation, record_id, body, resolved.body)
        try:
            look = await self._upstream.own_records.look(operation.kind, central_id)
            why = await self._upstream.own_records.doubt(operation.kind, record_id, look)
            if why:
                return await self._keep_from_others(self._upstream, operation, record_id, body, why)
        except CentralUnavailable:
            return await self._hold(operation, record_id, body)
        return await self._send(self._upstream, operation, record_id, body, {**resolved.body, "id": central_id})

    async def _keep_from_others(
        self, upstream: Upstream, operation: WriteOperation, record_id: int, body: JsonObject, why: str
    ) -> Written:
        """Handle a write whose id may belong to another record at central, so that it does not reach that record.

        A card that a restored central has lost is created again with the change; a change of an entry waits. Raises
        CentralUnavailable, and CentralRefused for any other record.
        """
        if operation.kind not in READS:
            return await self._hold(operation, record_id, body)
        if operation.kind != CARD or not await upstream.restore.lacks_newest():
            raise CentralRefused(why, status=_CONFLICT)
        if operation.effect is Effect.DELETE:
            async with self._cards.turn:
                record = await self._cards.record(record_id) or {"id": record_id}
                await self._cards.forget(record_id)
            return Written(record_id, record, waits=False)
        async with self._cards.turn:
            again = await self._cards.make_one_again(record_id)
        if again is None:
            raise CentralRefused(why, status=_CONFLICT)
        return await self._hold(operation, again, body)

    async def _send(
        self, upstream: Upstream, operation: WriteOperation, record_id: int | None, body: JsonObject, sent: JsonObject
    ) -> Written:
        """Send a write to central now, as `sent` with central's ids; queue it if the outcome stays unknown."""
        key, begun_at, before, asked = new_key(), upstream.newest.now(), None, False
        started = self._clock.wall().micros
        try:
            before = await self._newest_before(upstream.newest, operation)
            asked = True
            answer = await upstream.client.call(operation.method, operation.path, sent, key=key)
        except CentralUnavailable as error:
            attempt = Attempt(key=key, begun=asked and error.sent, newest_before=before, begun_at=begun_at)
            return await self._hold(operation, record_id, body, attempt=attempt)
        except CentralRefused as error:
            return await self._on_refusal(upstream, operation, record_id, body, error, key=key, sent=sent)
        row = OutboxRow(
            id=0, key=key, kind=operation.kind, record_id=0, body="", created_at=started, tries=0, next_at=0,
            parked=False, error="", begun=True, newest_before=before, begun_at=begun_at,
        )  # fmt: skip
        async with upstream.outcomes.with_ids([(UnknownCreate(row, operation, sent), answer)]) as (answer,):
            return await self._keep(operation, record_id, sent, answer, body=body)

    async def _on_refusal(
        self,
        upstream: Upstream,
        operation: WriteOperation,
        record_id: int | None,
        body: JsonObject,
        error: CentralRefused,
        *,
        key: str,
        sent: JsonObject,
    ) -> Written:
        """Queue a write whose refusal does not concern the write itself. Raise the refusal if it is central's own."""
        if not error.status:  # central refuses the gateway's account, and has not seen the write
            return await self._hold(operation, record_id, body)
        if await doubt(upstream.client, error, of=operation, sent=sent) is not None:
            return await self._hold(operation, record_id, body, attempt=Attempt(key=key))
        if operation.kind == CARD and record_id is not None and error.status == NOT_FOUND:
            try:
                again = await self._gone_at_central(upstream.restore, operation, record_id)
            except CentralUnavailable:
                return await self._hold(operation, record_id, body, attempt=Attempt(key=key))
            if again is not None:
                return await self._hold(operation, again, body)
        raise error

    async def _newest_before(self, newest: NewestIds, operation: WriteOperation) -> int | None:
        """Return the highest id that central has given to the kind of a record that is about to be created."""
        if operation.effect is not Effect.CREATE:
            return None
        await newest.refresh((operation,))
        given = await self._unknown_outcomes.given(operation.kind, most=1)
        return max([*given, newest.highest.get(operation.kind, 0)]) or None

    async def _way(self, operation: WriteOperation, record_id: int | None) -> tuple[int | None, _Way]:
        """Return central's id of the record, None if it has none, and the way that a write of it goes."""
        if self._upstream is None:
            return None, _Way.ALONE
        away = self._upstream.client.away()
        if record_id is None:
            return None, _Way.WAITS if away else _Way.THROUGH
        central_id = await self._pending_writes.central_id(operation.kind, record_id)
        waiting = await self._pending_writes.waiting(operation.kind, record_id)
        if not all(write.holds_up_nothing for write in waiting):
            return central_id, _Way.WAITS
        if central_id is None:
            return None, _Way.ALONE
        return central_id, _Way.WAITS if away else _Way.THROUGH

    async def _hold(
        self,
        operation: WriteOperation,
        record_id: int | None,
        body: JsonObject,
        *,
        sends: bool = True,
        attempt: Attempt = NEVER_TRIED,
    ) -> Written:
        now = self._clock.wall().micros
        async with self._cards.turn:
            if operation.kind == CARD and not attempt.begun:
                await self._cards.refuse_duplicate_number(operation, record_id, body)
            before = await self._cards.record(record_id) if operation.kind == CARD and record_id is not None else None
            pending = await self._pending_writes.hold(
                operation, record_id, body, now=now, sends=sends, attempt=attempt, before=before
            )
            record = pending.record
            if operation.kind == CARD:
                record = await self._follow(operation, pending, body)
        shown = record or {**body, "id": pending.record_id}
        return Written(pending.record_id, shown, waits=pending.waits, taken_back=pending.taken_back)

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
            description=f"{error}.",
            data={"refused_since_last_told": suppressed + 1},
        )
        try:
            await self._journal.record(Entry(events=(event,)))
        except StoreError as failed:
            log.warning("refused_writes_not_recorded", error=str(failed))  # the caller still gets the refusal

    async def _keep(
        self,
        operation: WriteOperation,
        record_id: int | None,
        sent: JsonObject,
        answer: JsonObject,
        *,
        body: JsonObject,
    ) -> Written:
        """Store a record that central has written. If central's id for it is unknown, give it an id of the site.

        It is not sent again, as central has it. If its kind is pulled, a record of unknown id is left to the next pull.
        """
        said = answered_record(answer, operation.resources)
        known = record_id if record_id is not None else given_id(answer, operation.resources)
        if known is None:
            if operation.kind in _PULLED:
                return Written(None, said or sent, waits=False)
            return await self._hold(operation, None, body, sends=False)
        now = self._clock.wall().micros
        async with self._cards.turn:
            if operation.effect is not Effect.CREATE:
                before = await self._at_site(operation, known)
            else:
                before = sent
                if operation.kind == CARD:
                    await self._cards.make_way(known, sent, card_id=known)
            # An answer may hold less than the whole record; to a deletion it may hold anything.
            record = before if operation.effect is Effect.DELETE else {**before, **(said or sent)}
            shown = await self._pending_writes.written(operation, known, record, sent=sent, now=now)
            if operation.kind == CARD:
                shown = await self._cards.settle(operation, known, record)
        return Written(known, shown or record, waits=False)

    async def _at_site(self, operation: WriteOperation, record_id: int) -> JsonObject:
        if operation.kind == CARD:
            return await self._cards.record(record_id) or {}
        return await self._pending_writes.record(operation.kind, record_id) or {}

    async def _gone_at_central(self, restore: RestoreDetector, operation: WriteOperation, card_id: int) -> int | None:
        """Remove a card that central no longer has, or create it again if a restored central has lost it.

        Return the new id of a card that is created again, else None. Raises CentralUnavailable when central cannot be
        asked whether it has lost more than this card.
        """
        is_lost = operation.effect is Effect.CHANGE and await restore.lacks_newest()
        async with self._cards.turn:
            again = await self._cards.make_one_again(card_id) if is_lost else None
            if again is None:
                await self._cards.forget(card_id)
        return again
