"""Pull of central's access cards into the site's card list."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from gateway.central.client.lists import ListReader, Page, PageMemory, PageSize, Tally, read_waiting, waiting_text
from gateway.central.field_map import CardMapper
from gateway.central.pull.absence_proof import Found, GoneCards, MissingCards, RequestsById
from gateway.central.push.upstream import Upstream
from gateway.central.site_cards import KIND
from gateway.domain.record_match import is_still, lookup_of, marks_of
from gateway.domain.writes import JsonObject
from gateway.store import StoredCard
from gateway.store.cards.cards import CardChanges
from gateway.store.cards.rows import ReadyCard, batches, ready
from gateway.store.outbox.pending_writes import Arriving
from gateway.store.outbox.record_kinds import record_text

_CARDS_BETWEEN_YIELDS = 12  # less than 1 ms of work
_CARDS_IN_A_COMMIT = 500  # about 20 ms of the writer's time
_LIST = lookup_of(KIND)
_PENDING = "pending_removal"
_MAP = "field_map"
OnProgress = Callable[[int, int | None], None]
OnPage = Callable[[Sequence[int]], Awaitable[None]]
"""Called with the new ids of a page, in their order, once the page is stored."""


def ignore_progress(_received: int, _count: int | None) -> None:
    """Ignore the progress of a walk."""


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

    def __init__(self, upstream: Upstream) -> None:
        """Begin with no page in memory. While a restored central is suspected, cards made at this site stay."""
        cards = upstream.cards
        self._restore = upstream.restore
        self._client = upstream.client
        self._given = upstream.store.delivered_records
        self._cards = upstream.store.cards
        self._notes = upstream.store.notes
        self._pending_writes = upstream.store.pending_writes
        self._clock = upstream.clock
        self._by_id = RequestsById(client=upstream.client, path="/v1/access", names=("access_card", "access", "card"))
        self._size = PageSize()
        self._memory = PageMemory()
        self._generation = -1
        self._map_mark = cards.fields.fingerprint(cards.zone)
        self._mapper = CardMapper(cards.fields, cards.zone)
        self._judged_all = False
        self._without_credential: set[int] = set()
        self._unread: set[int] = set()

    async def pull(self, on_progress: OnProgress = ignore_progress, *, anew: bool = False) -> CardsPulled:
        """Pull the card list. `on_progress` gets how many cards came, of how many. `anew`: write every card again.

        Raises what the client and the store raise; cards that were stored until then stay.
        """
        anew = anew or await self._notes.remembered(_MAP) != self._map_mark
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
                await self._notes.remember(_MAP, self._map_mark)
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
        if await self._notes.remembered(_MAP) != self._map_mark:
            return None
        walk = _Walk(
            anew=False,
            written=set(),
            made_here=frozenset(await self._given.cards() if self._restore.suspected else ()),
        )
        self._pending_writes.came_apart(KIND, card_ids)
        others = [number for number in await self._cards.central_ids() if number not in card_ids]
        asked = await self._by_id.ask(sorted(card_ids), listed=others)
        await self._take(dict(asked.there), walk)
        await self._let_go(asked.gone, walk)
        if asked.unsaid:
            return None
        return CardsPulled(cards=len(asked.there), added=walk.added, changed=walk.changed, removed=walk.removed)

    async def _settle(self, gone: GoneCards, tally: Tally, walk: _Walk) -> MissingCards:
        async def again() -> Tally:
            second = await self._walk(walk)
            self._memory.end_walk(keep=True)
            return second

        waited = read_waiting(await self._notes.remembered(_PENDING) or "")
        missing = await gone.settle(tally, waited=waited, again=again)
        if missing.pending != waited:
            await self._notes.remember(_PENDING, waiting_text(missing.pending))
        return missing

    async def _gone_cards(self, walk: _Walk) -> GoneCards:
        async def own(of: Collection[int]) -> frozenset[int]:
            return await self._own(walk, of)

        async def let_go(gone: frozenset[int]) -> None:
            await self._let_go(gone, walk)

        async def put(found: Found) -> None:
            await self._take(dict(found), walk)

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
        """Walk over the list. While a page is stored, the next one is fetched."""
        tally = Tally(_LIST.resource)
        reader = ListReader(client=self._client, lookup=_LIST, tally=tally, size=self._size, memory=self._memory)
        async with aclosing(reader.pages()) as pages:
            page = await _next(pages)
            while page is not None:
                on_progress(len(tally.ids), tally.count)
                # Both run to their end: a page that came is stored even if the next one does not come.
                store = self._store(page, walk, on_page)
                stored, following = await asyncio.gather(store, _next(pages), return_exceptions=True)
                if isinstance(stored, BaseException):
                    raise stored
                if isinstance(following, BaseException):
                    raise following
                page = following
        return tally

    async def _store(self, page: Page, walk: _Walk, on_page: OnPage | None) -> None:
        if page.records and await self._take(page.records, walk):
            self._memory.note(page)
        if on_page is not None:
            await on_page(tuple(number for number in page.ids if number is not None))

    async def _take(self, records: Mapping[int, JsonObject], walk: _Walk) -> bool:
        """Store records of central; return whether the site now has each of them exactly as it came.

        The lock on cards keeps writes at the site from being overwritten.
        """
        async with self._cards.turn:
            numbers = list(records)
            arriving = await self._pending_writes.arriving(KIND, numbers)
            known = await self._cards.records_of(numbers)
            put: list[ReadyCard] = []
            in_step = True
            for place, (card_id, theirs) in enumerate(records.items()):
                if place % _CARDS_BETWEEN_YIELDS == 0:
                    await asyncio.sleep(0)  # lanes come first
                shown = arriving.shown(card_id, theirs)
                in_step = in_step and card_id not in arriving.waiting
                if shown is None:
                    continue
                if _is_not_to_be_taken(card_id, theirs, known, arriving, walk):
                    in_step = False
                    continue
                text = record_text(shown)
                differs = walk.anew or known.get(card_id) != text
                if not differs and self._judged_all:
                    continue
                card = self._mapper.map(card_id, shown)
                _put_in(self._without_credential, card_id, member=not card.aliases)
                _put_in(self._unread, card_id, member=bool(card.unread))
                if differs:
                    put.append(ready(StoredCard(card, text)))
            for batch in batches(put, _CARDS_IN_A_COMMIT):
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


def _is_not_to_be_taken(
    card_id: int, theirs: JsonObject, known: Mapping[int, str], arriving: Arriving, walk: _Walk
) -> bool:
    """Return whether central's record is older than the site's, or of a create that is still unknown, or another's."""
    is_new = card_id not in known
    if card_id in walk.made_here and not is_new and _is_another(known[card_id], theirs):
        return True
    is_own = bool(arriving.created) and arriving.is_own(theirs)
    return card_id in walk.written or (is_own and (is_new or _is_another(known[card_id], theirs)))


async def _next(pages: AsyncIterator[Page]) -> Page | None:
    return await anext(pages, None)


def _put_in(members: set[int], card_id: int, *, member: bool) -> None:
    if member:
        members.add(card_id)
    else:
        members.discard(card_id)
