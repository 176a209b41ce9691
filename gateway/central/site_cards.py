"""The site's cards in cards.db, updated right after the commit that queues a write in site.db.

After a crash between the two commits, or if cards.db cannot be written, the cards are brought up to date later from the
pending writes and central's ids in site.db.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo

from gateway.central.field_map import CardFieldMap, map_card
from gateway.domain.conflicts import before_waiting, laid_over
from gateway.domain.errors import CommandRefused, StoreError
from gateway.domain.writes import (
    CARD_CREATE,
    CARD_FIELDS,
    FIRST_PROVISIONAL_ID,
    Effect,
    JsonObject,
    WaitingWrite,
    WriteOperation,
    changed_by,
    is_twin,
)
from gateway.runtime.clock import Clock
from gateway.store import PendingWrite, Store, StoredCard
from gateway.store.cards.cards import Cards
from gateway.store.outbox.record_kinds import record_text
from gateway.texts import text

KIND = "access_card"
_CARDS_AT_ONCE = 500
_CARDS_BETWEEN_YIELDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteCards:
    """Cards at the site, kept up to date with writes. Callers must hold `turn`."""

    store: Store
    clock: Clock
    zone: tzinfo = UTC
    fields: CardFieldMap = field(default_factory=CardFieldMap)

    @property
    def cards(self) -> Cards:
        """The card list on disk."""
        return self.store.cards

    @property
    def turn(self) -> asyncio.Lock:
        """Lock of the cards. Hold it from reading pending writes until the cards are changed by them."""
        return self.cards.turn

    async def record(self, card_id: int) -> JsonObject | None:
        """Return a card's record as the site has it."""
        known = await self.cards.get(card_id)
        return None if known is None else _object(known.record)

    async def refuse_duplicate_number(self, operation: WriteOperation, card_id: int | None, body: JsonObject) -> None:
        """Raise CommandRefused if the write gives a card a number that another card of the site has."""
        if operation.effect is Effect.DELETE:
            return
        before = None if card_id is None else await self.record(card_id)
        record = body if before is None else changed_by(before, body)
        number = map_card(card_id or 0, record, self.fields, self.zone).number
        if before is not None and number == map_card(card_id or 0, before, self.fields, self.zone).number:
            return
        if number and any(one != card_id for one in await self.cards.ids_of_number(number)):
            raise CommandRefused(text("refused.card_number_used", number=number))

    async def follow(self, operation: WriteOperation, pending: PendingWrite, body: JsonObject) -> JsonObject:
        """Apply a pending write to the card; return its record now, or for a deletion its record before."""
        card_id = pending.record_id
        before = await self.record(card_id)
        if operation.effect is Effect.DELETE:
            await self._apply(remove=(card_id,))
            return before or {"id": card_id}
        record: JsonObject = {**body, "id": card_id}
        if operation.effect is Effect.CHANGE:
            if before is None:
                return record  # the card was removed meanwhile
            record = changed_by(before, body)
        await self._put(card_id, record)
        return record

    async def settle(
        self, operation: WriteOperation, card_id: int, record: JsonObject | None, *, sent: JsonObject, formerly: int
    ) -> None:
        """Store the record of a write that central carried out, with the pending writes applied.

        Args:
            operation: the write.
            card_id: the card's id from now on.
            record: the record in central's answer, None if it has none.
            sent: the write's body. The site may not have it yet, if its caller waits for the answer.
            formerly: the id that the card had before the write.
        """
        if operation.effect is Effect.DELETE:
            await self._apply(remove=(card_id,))
            return
        at_site = await self.record(formerly)
        shown: JsonObject | None = None
        if at_site is not None or record is not None or operation.effect is Effect.CREATE:
            waiting = await self.store.pending_writes.waiting(KIND, card_id)
            known = before_waiting(at_site or {}, waiting)  # an answer may hold less than the whole record
            shown = laid_over({**changed_by(known, sent), **(record or {}), "id": card_id}, waiting)
        if shown is None:
            await self._apply(remove=(card_id, formerly))
        else:
            await self._put(card_id, shown, instead_of=None if formerly == card_id else formerly)

    async def make_again(self, records: Mapping[int, JsonObject], *, given_to: int | None = None) -> Mapping[int, int]:
        """Queue creates for cards that central has lost; return their new provisional ids by central's old ids.

        `records` are by central's ids; only cards that were made at this site are taken. `given_to`: the card to which
        central has now given such an id.
        """
        bodies: dict[int, JsonObject] = {
            central_id: {name: value for name, value in record.items() if name in CARD_FIELDS and value is not None}
            for central_id, record in records.items()
        }
        now = self.clock.wall().micros
        made = await self.store.delivered_records.make_cards_again(bodies, now=now, given_to=given_to)
        for central_id, number in made.items():
            await self.forget(central_id)
            await self.follow(CARD_CREATE, PendingWrite(number, None, waits=True), bodies[central_id])
        return made

    async def make_one_again(self, card_id: int, *, change: JsonObject) -> int | None:
        """Queue a create for a card that central has lost, with a change that is still to be sent.

        Return its new id, None if it was not made at this site.
        """
        record = await self.record(card_id)
        if record is None:
            return None
        return (await self.make_again({card_id: changed_by(record, change)})).get(card_id)

    async def make_way(self, central_id: int, created: JsonObject, *, card_id: int) -> None:
        """Queue a create for the card that has `central_id`, because central has now given that id to `card_id`.

        A central that was restored from a backup gives ids a second time. `created`: the body of the new card's create.
        """
        record = await self.record(central_id)
        if record is not None and not is_twin(created, record):
            await self.make_again({central_id: record}, given_to=card_id)

    async def forget(self, card_id: int) -> None:
        """Remove a card that central no longer has."""
        await self._apply(remove=(card_id,))

    async def catch_up(self) -> None:
        """Bring the cards up to date if an earlier write to them failed. Takes the lock itself."""
        if self.cards.behind:
            async with self.turn:
                await self.recall()

    async def recall(self) -> None:
        """Bring the cards up to date with the pending writes and central's ids in site.db."""
        for card_id in await self.cards.made_here():
            known = await self.store.pending_writes.site_id(KIND, card_id)
            if known >= FIRST_PROVISIONAL_ID or (record := await self.record(card_id)) is None:
                continue
            if await self.record(known) is not None:  # a pull brought it since, and is newer
                await self._apply(remove=(card_id,))
            else:
                await self._put(known, {**record, "id": known}, instead_of=card_id)
        after = 0
        while ids := await self.store.pending_writes.waiting_records(KIND, after=after, limit=_CARDS_AT_ONCE):
            waiting = (await self.store.pending_writes.arriving(KIND, ids)).waiting
            await self._lay_over(waiting, await self.cards.records_of(ids))
            after = ids[-1]
        self.cards.behind = False

    async def _lay_over(self, waiting: Mapping[int, Sequence[WaitingWrite]], known: Mapping[int, str]) -> None:
        """Apply pending writes to some cards, in one commit."""
        put: list[StoredCard] = []
        remove: list[int] = []
        for place, (card_id, writes) in enumerate(waiting.items()):
            if place % _CARDS_BETWEEN_YIELDS == 0:
                await asyncio.sleep(0)  # lanes come first
            created = next((write.body for write in writes if write.operation.effect is Effect.CREATE), None)
            record = _object(known[card_id]) if card_id in known else None
            if created is not None:
                record = {**created, "id": card_id}
            shown = None if record is None else laid_over(before_waiting(record, writes), writes)
            if shown is None:
                remove.append(card_id)
            else:
                put.append(self._mapped(card_id, shown))
        await self._apply(put=put, remove=remove)

    def _mapped(self, card_id: int, record: JsonObject) -> StoredCard:
        return StoredCard(map_card(card_id, record, self.fields, self.zone), record_text(record))

    async def _put(self, card_id: int, record: JsonObject, *, instead_of: int | None = None) -> None:
        gone = () if instead_of is None else (instead_of,)
        await self._apply(put=(self._mapped(card_id, record),), remove=gone)

    async def _apply(self, *, put: Sequence[StoredCard] = (), remove: Sequence[int] = ()) -> None:
        try:
            await self.cards.apply(put=put, remove=remove, now=self.clock.wall().micros)
        except StoreError:
            self.cards.behind = True
            raise


def _object(text: str) -> JsonObject | None:
    record = json.loads(text)
    return record if isinstance(record, dict) else None
