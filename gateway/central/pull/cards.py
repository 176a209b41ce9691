"""Pull of central's access cards into the site's card list."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import NamedTuple, TypeVar

from gateway.central.client.client import CentralClient
from gateway.central.client.list_proof import Page, Tally, read_waiting, waiting_text
from gateway.central.client.page_size import PageSize
from gateway.central.pull.absence_proof import ById, Found
from gateway.central.pull.field_map import CardFieldMap, CardMapper, MappedCard
from gateway.central.pull.paged_walk import OnPage, OnProgress, PagedWalk, PageMemory, ignore_progress
from gateway.central.pull.removed_cards import GoneCards, Missing
from gateway.central.push.restored_central import RestoreDetector
from gateway.central.site_cards import KIND
from gateway.domain.record_marks import is_still, marks_of
from gateway.domain.writes import JsonObject
from gateway.runtime.clock import Clock
from gateway.store import CardRecord
from gateway.store.cards.cards import CardChanges, Cards
from gateway.store.cards.rows import ReadyCard, ready
from gateway.store.outbox.delivered_records import DeliveredRecords
from gateway.store.outbox.pending_writes import PendingWrites
from gateway.store.outbox.record_kinds import record_text

_CARDS_BETWEEN_YIELDS = 20  # less than 1 ms of work where they are mapped
_CARDS_IN_A_COMMIT = 500  # about 20 ms of the writer's time
_PENDING = "pending_removal"
_MAP = "field_map"
_T = TypeVar("_T")


class ListedCard(NamedTuple):
    """Record of central with its text, and the card that it maps to once that is known.

    Attributes:
        card_id: its id.
        record: its record.
        text: its record as text.
        mapped: the card; None while it was not needed.
    """

    card_id: int
    record: JsonObject
    text: str
    mapped: MappedCard | None


def listed(card_id: int, record: JsonObject, mapper: CardMapper | None) -> ListedCard:
    """Make a listed card of a record; map it if there is a mapper."""
    mapped = None if mapper is None else mapper.map(card_id, record)
    return ListedCard(card_id, record, record_text(record), mapped)


@dataclass(frozen=True, slots=True)
class CardsPulled:
    """Result of a pull of the cards.

    Attributes:
        cards: how many cards central listed.
        added: cards that are new at the site.
        changed: cards whose record changed.
        removed: cards that were removed.
        held_back: missing cards that stay until the next complete pull misses them again.
        newly_held_back: whether holding back began with this pull.
        without_credential: listed cards that no reading can match.
        unread: listed cards with a status or date that could not be read; they are suspended.
        problem: why the list could not be believed, "" when it could.
    """

    cards: int = 0
    added: int = 0
    changed: int = 0
    removed: int = 0
    held_back: int = 0
    newly_held_back: bool = False
    without_credential: int = 0
    unread: int = 0
    problem: str = ""

    def unchanged(self) -> CardsPulled:
        """Return the same counts for a pull that changed nothing."""
        return replace(self, added=0, changed=0, removed=0, newly_held_back=False)


class CardPull:
    """Pull of the access cards.

    New and changed cards are stored page by page, so that a suspension takes effect as soon as its page is read.
    `GoneCards` removes cards that the list lacks. A walk that is cut short removes no cards beyond the pages it read.
    """

    def __init__(
        self,
        *,
        client: CentralClient,
        cards: Cards,
        pending_writes: PendingWrites,
        delivered_records: DeliveredRecords,
        clock: Clock,
        zone: tzinfo,
        fields: CardFieldMap,
        restore: RestoreDetector,
    ) -> None:
        """Begin with no page in memory. While `restore` suspects a restored central, cards made at this site stay."""
        self._restore = restore
        self._given = delivered_records
        self._client = client
        self._by_id = ById(client=client, path="/v1/access", names=("access_card", "access", "card"))
        self._pages = PageSize()
        self._memory = PageMemory()
        self._generation = -1
        self._cards = cards
        self._pending_writes = pending_writes
        self._clock = clock
        self._map_mark = fields.fingerprint(zone)
        self._mapper = CardMapper(fields, zone)
        self._judged_all = False
        self._without_credential: set[int] = set()
        self._unread: set[int] = set()

    async def pull(self, on_progress: OnProgress = ignore_progress, *, anew: bool = False) -> CardsPulled:
        """Pull the card list. `on_progress` gets how many cards came, of how many. `anew`: write every card again.

        Raises what the client and the store raise; cards that were stored until then stay.
        """
        anew = anew or await self._cards.remembered(_MAP) != self._map_mark
        written = self._pending_writes.pull_begins(KIND)
        made_here = frozenset(await self._given.cards() if self._restore.suspected else ())
        walk = _Walk(anew=anew, written=written, made_here=made_here)
        gone = await self._gone_cards(walk)
        began = self._cards.generation
        if anew or began != self._generation:
            self._memory.end_walk(keep=False)
        try:
            tally = await self._walk(walk, on_progress, gone.on_page)
        except BaseException:  # also when cancelled: a part of the walk is no memory of the whole
            self._memory.end_walk(keep=False)
            raise
        self._memory.end_walk(keep=True)
        if not tally.problem:
            self._judged_all = True
            if walk.anew:
                await self._cards.remember(_MAP, self._map_mark)
        walk.anew = False
        missing = await self._settle(gone, tally, walk)
        problem = missing.problem
        # If others changed cards meanwhile, the next pull parses all pages again.
        self._generation = began + walk.applied
        if not problem:
            self._without_credential &= tally.ids
            self._unread &= tally.ids
            now = self._clock.wall()
            await self._cards.complete()
            if now.trusted and not missing.waiting:
                await self._cards.listed(now.micros)
        return CardsPulled(
            cards=len(tally.ids),
            added=walk.added,
            changed=walk.changed,
            removed=walk.removed,
            held_back=len(missing.waiting),
            newly_held_back=missing.newly,
            without_credential=len(self._without_credential),
            unread=len(self._unread),
            problem=problem,
        )

    async def fetch(self, card_ids: frozenset[int]) -> CardsPulled | None:
        """Fetch single cards, also while a pull runs; None if only a pull can tell how they are.

        Raises what the client and the store raise.
        """
        if await self._cards.remembered(_MAP) != self._map_mark:
            return None
        walk = _Walk(
            anew=False,
            written=set(),
            made_here=frozenset(await self._given.cards() if self._restore.suspected else ()),
        )
        self._pending_writes.came_apart(KIND, card_ids)
        others = [number for number in await self._cards.central_ids() if number not in card_ids]
        asked = await self._by_id.ask(sorted(card_ids), listed=others)
        await self._take(await self._made(asked.there, walk), walk)
        await self._let_go(asked.gone, walk)
        if asked.unsaid:
            return None
        return CardsPulled(cards=len(asked.there), added=walk.added, changed=walk.changed, removed=walk.removed)

    async def _settle(self, gone: GoneCards, tally: Tally, walk: _Walk) -> Missing:
        async def again() -> Tally:
            second = await self._walk(walk)
            self._memory.end_walk(keep=True)
            return second

        waited = read_waiting(await self._cards.remembered(_PENDING) or "")
        missing = await gone.settle(tally, waited=waited, again=again)
        if missing.pending != waited:
            await self._cards.remember(_PENDING, waiting_text(missing.pending))
        return missing

    async def _gone_cards(self, walk: _Walk) -> GoneCards:
        async def own(of: Collection[int]) -> frozenset[int]:
            return await self._own(walk, of)

        async def let_go(gone: frozenset[int]) -> None:
            await self._let_go(gone, walk)

        async def put(found: Found) -> None:
            await self._take(await self._made(found, walk), walk)

        known = await self._cards.central_ids()
        return GoneCards(by_id=self._by_id, known=known, own=own, let_go=let_go, put=put)

    async def _let_go(self, gone: frozenset[int], walk: _Walk) -> None:
        """Remove cards, except those that were written meanwhile."""
        if not gone:
            return
        async with self._cards.turn:
            done = await self._apply(walk, remove=sorted(gone - await self._own(walk, gone)))
            walk.removed += done.removed

    async def _own(self, walk: _Walk, of: Collection[int]) -> frozenset[int]:
        """Return those cards that were written meanwhile or whose create waits: central need not list them yet.

        A waiting change does not protect a card: central has deleted the card that it would change.
        """
        written = walk.made_here.union(walk.written).intersection(of)
        return written | await self._pending_writes.among_created(KIND, of)

    async def _walk(
        self, walk: _Walk, on_progress: OnProgress = ignore_progress, on_page: OnPage | None = None
    ) -> Tally:
        async def make(page: Page) -> list[ListedCard]:
            return await self._made(page, walk)

        async def take(page: list[ListedCard]) -> bool:
            return await self._take(page, walk)

        pages = PagedWalk(
            self._client,
            path="/v1/access/list",
            resource="access_cards",
            make=make,
            take=take,
            size=self._pages,
            memory=self._memory,
            on_progress=on_progress,
            on_page=on_page,
        )
        return await pages.walk()

    def _wants_all(self, walk: _Walk) -> bool:
        """Return whether all records must be mapped to cards, not only those that differ."""
        return walk.anew or not self._judged_all

    async def _made(self, page: Page, walk: _Walk) -> list[ListedCard]:
        """Make listed cards of a page's records."""
        mapper = self._mapper if self._wants_all(walk) else None
        made: list[ListedCard] = []
        for place, (card_id, record) in enumerate(page):
            if place % _CARDS_BETWEEN_YIELDS == 0:
                await asyncio.sleep(0)  # lanes come first
            made.append(listed(card_id, record, mapper))
        return made

    async def _take(self, page: Sequence[ListedCard], walk: _Walk) -> bool:
        """Store a page; return whether the site now has each of its records exactly as it came.

        The lock on cards keeps writes at the site from being overwritten.
        """
        async with self._cards.turn:
            numbers = [theirs.card_id for theirs in page]
            arriving = await self._pending_writes.arriving(KIND, numbers)
            known = await self._cards.records_of(numbers)
            put: list[ReadyCard] = []
            in_step = True
            for place, theirs in enumerate(page):
                if place % _CARDS_BETWEEN_YIELDS == 0:
                    await asyncio.sleep(0)
                card_id, shown = theirs.card_id, theirs
                if card_id in arriving.waiting:
                    in_step = False
                    record = arriving.shown(card_id, theirs.record)
                    if record is None:
                        continue
                    shown = listed(card_id, record, None)
                is_new = card_id not in known
                if card_id in walk.made_here and not is_new and _is_another(known[card_id], theirs.record):
                    in_step = False
                    continue
                is_own = bool(arriving.created) and arriving.is_own(theirs.record)
                if card_id in walk.written or (is_own and (is_new or _is_another(known[card_id], theirs.record))):
                    in_step = False
                    continue
                differs = walk.anew or known.get(card_id) != shown.text
                if not differs and self._judged_all:
                    continue
                mapped = shown.mapped or self._mapper.map(card_id, shown.record)
                _put_in(self._without_credential, card_id, member=not mapped.has_credential)
                _put_in(self._unread, card_id, member=bool(mapped.unread))
                if differs:
                    put.append(ready(CardRecord(mapped.card, shown.text)))
            for batch in _batches(put, _CARDS_IN_A_COMMIT):
                done = await self._apply(walk, put=batch)
                walk.added += done.added
                walk.changed += done.changed
        return in_step

    async def _apply(self, walk: _Walk, *, put: Sequence[ReadyCard] = (), remove: Sequence[int] = ()) -> CardChanges:
        done = await self._cards.apply(put=put, remove=remove, now=self._clock.wall().micros)
        walk.applied += 1
        return done


@dataclass(slots=True)
class _Walk:
    """A pull under way: whether all cards are written again, and the counts so far.

    `written`: cards that were written at central since the pull began; it may bring them as they were before.
    `made_here`: cards made at this site that central may have lost, and whose ids it may have given to others.
    """

    anew: bool
    written: set[int]
    made_here: frozenset[int] = frozenset()
    added: int = 0
    changed: int = 0
    removed: int = 0
    applied: int = 0


def _is_another(record: str, theirs: JsonObject) -> bool:
    return not is_still(KIND, marks_of(KIND, json.loads(record)), theirs)


def _batches(items: Sequence[_T], length: int) -> Iterator[Sequence[_T]]:
    for start in range(0, len(items), length):
        yield items[start : start + length]


def _put_in(members: set[int], card_id: int, *, member: bool) -> None:
    if member:
        members.add(card_id)
    else:
        members.discard(card_id)
