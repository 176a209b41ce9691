"""Search for creates of unknown outcome at central before they are sent again.

The interface does not promise to honour idempotency keys, and a request whose answer was lost may still be carried out.
So a row is sent again only after two clean searches that did not find its record, the second some time after the first:
`Coverage` defines a clean search, `record_match` what counts as found. Searches that prove nothing are repeated with
backoff, and after a day a person decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import product

from gateway.central.client.answers import CentralDenied, CentralFailed, CentralSlow
from gateway.central.client.client import CentralClient
from gateway.central.client.lists import read_page
from gateway.central.client.not_found import doubt
from gateway.central.push.list_search import Compare, ListSearch, SearchBounds
from gateway.central.push.newest_ids import NewestIds
from gateway.central.push.requests import delivery_request, given_id
from gateway.central.push.search_attempts import FoundAtCentral, Outcome, SearchAttempts
from gateway.domain.errors import CentralRefused, CentralUnavailable
from gateway.domain.record_match import RecordMatch, is_still, marks_of, match_record
from gateway.domain.writes import Effect, JsonObject, Lookup, WriteOperation
from gateway.runtime.clock import Clock
from gateway.store import OutboxRow, Store
from gateway.store.outbox.rows import body_object

_LIMIT = 100
_TRIED = 5

_NARROWEST_PARTS = 8
_COMPARED_AT_ONCE = 100
_MOST_LONG = 8
"""Most unfinished searches of long lists that are kept. The limit drops those whose rows were settled meanwhile."""
_MOST_KEPT = 1_000
"""For how many creates the result of a shared search is kept until they are due; no more share a search."""
_MARGIN = 300.0
"""Seconds by which the clocks that date central's records may be wrong."""


async def search_by_mark(client: CentralClient, lookup: Lookup, sent: JsonObject, compare: Compare) -> bool:
    """Compare the records that central's own search finds for a mark of the record that was sent.

    Return whether that settles the outcome: all were found, or the search is shown to find listed records. Raises what
    the client raises.
    """
    name = next((group[-1] for group in lookup.marks if all(sent.get(mark) not in (None, "") for mark in group)), None)
    if name is None:
        return False
    hits = await read_page(client, lookup, 1, _LIMIT, search=str(sent[name]))
    if await compare(hits.records):
        return True
    if len(hits.ids) != hits.count or len(hits.ids) >= _LIMIT:
        return False  # the search is too wide, or finds everything
    some = await read_page(client, lookup, 1, _TRIED)
    for number, record in some.records.items():
        mark = record.get(name)
        if mark not in (None, "") and isinstance(mark, str | int):
            found = await read_page(client, lookup, 1, _LIMIT, search=str(mark))
            return number in found.records and len(found.ids) < _LIMIT
    return False


@dataclass(frozen=True, slots=True)
class UnknownCreate:
    """A create that may have reached central; `body` has central's ids."""

    row: OutboxRow
    operation: WriteOperation
    body: JsonObject


AnsweredCreate = tuple[UnknownCreate, JsonObject]
"""A create with central's answer."""


def _lacks_id(create: UnknownCreate, answer: JsonObject) -> bool:
    operation = create.operation
    return operation.effect is Effect.CREATE and given_id(answer, operation.resources) is None


@dataclass
class _SearchResult:
    """Result of one search for one row. Records made after `begun_at` (monotonic seconds) may be missing from it."""

    begun_at: float
    same: list[tuple[int, JsonObject]] = field(default_factory=list)
    perhaps: list[tuple[int, JsonObject]] = field(default_factory=list)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _LongSearch:
    """A search through a list that may go on in a later round, and what it has found for each row so far."""

    search: ListSearch
    results: dict[int, _SearchResult]


class OutcomeSearch:
    """Search for creates in central's lists. Creates of one kind in one round share a search."""

    def __init__(
        self, *, client: CentralClient, store: Store, clock: Clock, attempts: SearchAttempts, newest: NewestIds
    ) -> None:
        self._client = client
        self._store = store
        self._clock = clock
        self._attempts = attempts
        self._newest = newest
        self._creates: tuple[UnknownCreate, ...] = ()
        self._results: dict[int, _SearchResult] = {}  # also for rows that were not due when a shared search ended
        self._taken: set[tuple[str, int]] = set()  # records claimed by creates that are not stored yet
        self._long: list[_LongSearch] = []
        self._parts = 1  # the usual page size is divided by this while central fails to serve pages

    @property
    def longest(self) -> float:
        """Longest wait between two searches for a record."""
        return self._attempts.longest

    async def begin_round(self, rows: Iterable[OutboxRow]) -> None:
        """Begin a round in which these rows may be judged. Raises StoreError."""
        self._creates = await self._unknown_creates(rows)
        kept = [(number, result) for number, result in self._results.items() if result.same or not result.problem]
        self._results = dict(kept[-_MOST_KEPT:])

    async def judge(self, create: UnknownCreate) -> Outcome:
        """Return whether central has the record of a create, as far as a search shows.

        Raises CentralUnavailable, CentralDenied when central refuses the account, StoreError.
        """
        row, lookup = create.row, create.operation.lookup
        if lookup is None:
            return self._attempts.unclear(row.id, "there is no list of central's to look for it in")
        if not self._has_result(self._results, row.id):
            try:
                self._results |= await self._look(create, lookup, self._creates)
            except CentralDenied as error:
                if not error.status:
                    raise
                return self._unseen(row, error)
            except CentralRefused as error:
                if (doubtful := await doubt(self._client, error)) is not None:
                    raise doubtful from error
                return self._unseen(row, error)
        return await self._outcome(create, self._results.pop(row.id))

    @asynccontextmanager
    async def with_ids(self, answered: Sequence[AnsweredCreate]) -> AsyncIterator[tuple[JsonObject, ...]]:
        """Yield central's answers to creates, completed by the ids of the records. Store them inside the context.

        If an answer lacks the id, the record is searched for once: without its id no change of it could be sent.
        However alike creates are, each gets a record of its own.
        """
        unnamed = tuple(create for create, answer in answered if _lacks_id(create, answer))
        results: dict[int, _SearchResult] = {}
        mine: set[tuple[str, int]] = set()
        try:
            named: list[JsonObject] = []
            for create, answer in answered:
                record = None
                if _lacks_id(create, answer):
                    record = await self._own_record(create, unnamed, results, mine)
                named.append(answer if record is None else record)
            yield tuple(named)
        finally:
            self._taken -= mine

    async def _own_record(
        self,
        create: UnknownCreate,
        others: Sequence[UnknownCreate],
        results: dict[int, _SearchResult],
        mine: set[tuple[str, int]],
    ) -> JsonObject | None:
        """Find and claim the record of a create that central has answered; return None if it is not certain."""
        row, lookup = create.row, create.operation.lookup
        if lookup is None:
            return None
        if row.id not in results:
            try:
                results |= await self._look(create, lookup, others)
            except (CentralUnavailable, CentralRefused):
                results |= {item.row.id: self._nothing() for item in (create, *others) if item.row.kind == row.kind}
        result = results.pop(row.id)
        for found, record in result.same:
            claim = (row.kind, found)
            if claim in self._taken:
                continue
            self._taken.add(claim)  # before the store is asked: another create may ask at the same time
            mine.add(claim)
            if not await self._is_another(row, found, record, RecordMatch.SAME):
                return record
        if not result.same:
            return None
        return await self._own_record(create, (), results, mine)  # other creates have claimed all that were found

    def _unseen(self, row: OutboxRow, error: CentralRefused) -> Outcome:
        return self._attempts.unclear(row.id, f"central does not let it be looked for: {error}")

    async def _unknown_creates(self, rows: Iterable[OutboxRow]) -> tuple[UnknownCreate, ...]:
        return tuple([create for row in rows if (create := await self._unknown_create(row)) is not None])

    async def _unknown_create(self, row: OutboxRow) -> UnknownCreate | None:
        """Return a create that may have reached central, with central's ids; None for any other row."""
        request = delivery_request(row) if row.begun else ""
        if isinstance(request, str) or request.operation.effect is not Effect.CREATE:
            return None
        resolved = await self._store.references.resolve(request.body)
        return None if resolved.reason else UnknownCreate(row, request.operation, resolved.body)

    async def _outcome(self, create: UnknownCreate, result: _SearchResult) -> Outcome:
        row = create.row
        for found, record in result.same:
            if (row.kind, found) not in self._taken and not await self._is_another(
                row, found, record, RecordMatch.SAME
            ):
                self._attempts.forget(row.id)
                return FoundAtCentral(record)
        for found, record in () if result.problem else result.perhaps:
            if not await self._is_another(row, found, record, RecordMatch.PERHAPS):
                return self._attempts.unclear(row.id, f"central's {row.kind} {found} may be it, or another one")
        if result.problem:
            return self._attempts.unclear(row.id, f"central's list cannot be believed: {result.problem}")
        return self._attempts.missed(row.id, at=result.begun_at)

    async def _is_another(self, row: OutboxRow, found: int, record: JsonObject, match: RecordMatch) -> bool:
        """Return whether central's record is one that the site knew before, and not the one that this row created.

        A restored central gives ids a second time, so the id alone is no proof: the record must still be the known one.
        """
        is_known = await self._store.pending_writes.is_made_here(row.kind, found)
        if not is_known and match is RecordMatch.PERHAPS:
            is_known = await self._was_here(row, found)
        if not is_known:
            return False
        ours = await self._site_record(row.kind, found)
        return ours is None or is_still(row.kind, marks_of(row.kind, ours), record)

    async def _site_record(self, kind: str, central_id: int) -> JsonObject | None:
        """Return the site's record with this id of central; None when the site no longer has it."""
        match kind:
            case "access_card":
                card = await self._store.cards.get(central_id)
                return None if card is None else body_object(card.record)
            case "camera_event" | "entry":
                site_id = await self._store.pending_writes.site_id(kind, central_id)
                delivered = await self._store.delivered_records.of(kind, (site_id,))
                return delivered[0].body if delivered else None
        return await self._store.pending_writes.record(kind, central_id)

    async def _was_here(self, row: OutboxRow, found: int) -> bool:
        """Return whether the site had the record before the row was made; False for a row dated in the future."""
        if row.created_at > self._clock.wall().micros:
            return False
        return await self._store.unknown_outcomes.was_here(row.kind, found, row.created_at)

    async def _look(
        self, create: UnknownCreate, lookup: Lookup, others: Sequence[UnknownCreate]
    ) -> dict[int, _SearchResult]:
        """Search once for a create together with the others of its kind; return the results by the rows' ids."""
        try:
            results = await self._search(create, lookup, others)
        except (CentralSlow, CentralFailed):
            self._parts = min(self._parts * 2, _NARROWEST_PARTS)
            raise
        self._parts = max(self._parts // 2, 1)
        return results

    async def _search(
        self, create: UnknownCreate, lookup: Lookup, others: Sequence[UnknownCreate]
    ) -> dict[int, _SearchResult]:
        if lookup.searched:
            result = self._nothing()
            compare = self._comparing(lookup, {0: create}, {0: result})
            if await search_by_mark(self._client, lookup, create.body, compare):
                return {create.row.id: result}
        long = next((one for one in self._long if self._has_result(one.results, create.row.id)), None)
        if long is None:
            long = await self._new_search(create, lookup, others)
        self._long = [one for one in self._long if one is not long]
        problem = await long.search.look()
        if long.search.goes_on:
            self._long = [*self._long, long][-_MOST_LONG:]
        for result in long.results.values():
            result.problem = problem
        return dict(long.results)

    def _has_result(self, results: Mapping[int, _SearchResult], row_id: int) -> bool:
        return row_id in results and self._attempts.counts(row_id, at=results[row_id].begun_at)

    async def _new_search(self, create: UnknownCreate, lookup: Lookup, others: Sequence[UnknownCreate]) -> _LongSearch:
        if self._attempts.number(create.row.id):
            # Rows that were put off come back one by one. Each would read a long list by itself, and none to its end.
            others = [
                *others,
                *await self._unknown_creates(await self._store.unknown_outcomes.begun_creates(create.row.kind)),
            ]
        together = {
            item.row.id: item
            for item in (create, *others)
            if item.row.kind == create.row.kind
            and (not lookup.paged or (item.row.newest_before is None) is (create.row.newest_before is None))
        }
        results = {number: self._nothing() for number in together}
        search = ListSearch(
            self._client,
            lookup,
            await self._bounds(create.row.kind, [item.row for item in together.values()]),
            attempt=self._attempts.number(create.row.id),
            parts=self._parts,
            compare=self._comparing(lookup, together, results),
        )
        return _LongSearch(search, results)

    def _nothing(self) -> _SearchResult:
        """Return the result of a search that begins now."""
        return _SearchResult(self._clock.monotonic())

    async def _bounds(self, kind: str, rows: list[OutboxRow]) -> SearchBounds:
        older = [row.newest_before for row in rows if row.newest_before is not None]
        begun = [row.begun_at for row in rows if row.begun_at is not None]
        known = set(await self._store.unknown_outcomes.given(kind))
        if len(begun) < len(rows) or (now := self._newest.now()) is None:
            return SearchBounds(older=min(older, default=None), known=known | set(older))
        made_by = max(begun) + int((self._attempts.may_take + _MARGIN) * 1_000_000)
        share = (now - made_by) / max(now - min(begun), 1)
        return SearchBounds(min(older, default=None), known | set(older), made_by, min(max(share, 0.0), 1.0))

    def _comparing(
        self, lookup: Lookup, together: dict[int, UnknownCreate], results: dict[int, _SearchResult]
    ) -> Compare:
        """Return a function that compares records with each of these creates; it returns whether each has its own."""
        kinds = {item.row.kind for item in together.values()}

        async def compare(page: Mapping[int, JsonObject]) -> bool:
            ids = list(page)
            given = {found for kind in kinds for found in await self._store.unknown_outcomes.given_among(kind, ids)}
            for compared, ((found, record), (number, item)) in enumerate(
                product(page.items(), together.items()), start=1
            ):
                before = item.row.newest_before
                # A restored central gives ids a second time, so an id that it gave before does not show the age.
                newer = None if before is None or found in given else found > before
                match = match_record(lookup, item.body, record, newer=newer)
                if (item.row.kind, found) in self._taken:
                    match = RecordMatch.OTHER
                if match is not RecordMatch.OTHER and not await self._is_another(item.row, found, record, match):
                    matches = results[number].same if match is RecordMatch.SAME else results[number].perhaps
                    matches.append((found, record))
                if compared % _COMPARED_AT_ONCE == 0:
                    await asyncio.sleep(0)
            return _each_has_its_own(results.values())

        return compare


def _each_has_its_own(results: Iterable[_SearchResult]) -> bool:
    """Return whether there is a record for each create, taken in turn as they are judged.

    Creates that are alike match the same records: the first record at central is not enough for two of them.
    """
    taken: set[int] = set()
    for result in results:
        own = next((found for found, _ in result.same if found not in taken), None)
        if own is None:
            return False
        taken.add(own)
    return True
