"""Search for records of unknown outcome in one of central's lists, with few requests.

A list in the order of ids is read from its newest record down to one that is older than the wanted record. If that is
far down, the place where reading must begin is found by bisection: a record's own date is never later than its
creation, so records dated after the request were not created by it. A search that needs too many requests at once
stops, and goes on at the next call. A list in any other order is read as a whole.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise

from gateway.central.client.client import CentralClient
from gateway.central.client.lists import Page, PageOrder, Tally, read_page
from gateway.domain.writes import JsonObject, Lookup
from gateway.runtime.clock import micros_of

MOST_REQUESTS = 16
"""The most requests of one part of a search, so that urgent rows need not wait for more."""
_SMALL = (100, 80)
"""Sizes of the first page, used in turn by the attempts: a record that one skips between two pages, the next reads."""
_LARGE = (500, 400)
_PROBED = 10
_AT_ONCE = 2000
"""If at most so many records are between the bounds, they are read without bisection."""
_LATER = 0.5
"""A probed page counts as later if more than this share of its records is dated later."""
Compare = Callable[[Mapping[int, JsonObject]], Awaitable[bool]]
"""Compares records with the wanted ones; returns whether all were found."""


class ListCoverage:
    """The check that consecutive pages, newest first, prove a record absent. `problem` says why they do not."""

    def __init__(self, *, limit: int, older: int | None, known: Collection[int] = (), from_top: bool = True) -> None:
        """Begin without a page.

        Args:
            limit: the page size that is asked for.
            older: the id of a record that is older than the wanted one; None when none is known.
            known: ids that central is known to have given last; a list that shows none of them is not believed.
            from_top: whether the first page has the list's newest records.
        """
        self._limit = limit
        self._older = older
        self._known = frozenset(known)
        self._from_top = from_top
        self._seen: set[int] = set()
        self._lengths: list[int] = []
        self._counts: list[int | None] = []
        self._fault = ""
        self._down = False
        self._ended = False

    @property
    def over(self) -> bool:
        """True when no further page is needed."""
        return bool(self._fault) or self._down or self._ended

    def take(self, page: Page, *, newest_first: bool = True) -> None:
        """Add the next page. `newest_first` is False for a list with the oldest first, whose last page comes first."""
        numbers = set(page.records)
        self._counts.append(page.count)
        if len(numbers) < len(page.ids):
            self._fault = "records came twice or without an id"
        elif page.order is PageOrder.NONE:
            self._fault = "records do not come in the order of their ids"
        elif self._lengths and self._overlaps(numbers, newest_first=newest_first):
            self._fault = "pages do not follow one another"
        self._seen |= numbers
        if newest_first or self._lengths:  # the last page of a list is shorter, and here it came first
            self._lengths.append(len(numbers))
        elif numbers:
            self._lengths.append(self._limit)
        lowest = min(numbers, default=None)
        reached = lowest is not None and self._older is not None and lowest <= self._older
        self._down = reached and (self._lengths[-1] >= self._limit or len(self._lengths) > 1)
        self._ended = not numbers or (self._from_top and self._counts[0] == len(self._seen))

    @property
    def page_length(self) -> int:
        """Number of records of a full page, at least 1: central may give shorter pages than asked for."""
        return max(self._lengths, default=self._limit) or 1

    def give_up(self, reason: str) -> None:
        """End the reading without a proof, for this reason."""
        self._fault = reason

    @property
    def problem(self) -> str:
        """Reason why these pages do not prove that a record is absent; "" when they do."""
        counts = [count for count in self._counts if count is not None]
        full = self._lengths[:-1] if self._ended else self._lengths
        full = full[:-1] if full and self._ended and not self._lengths[-1] else full
        whole = self._ended and not self._down and self._from_top
        reasons = (
            (bool(self._fault), self._fault),
            (len(counts) < len(self._counts), "no count"),
            (any(later < sooner for sooner, later in pairwise(counts)), "the count became less from page to page"),
            (len(set(full)) > 1, "pages of unequal length"),
            (whole and bool(counts) and counts[0] != len(self._seen), "the count is not what came"),
            (bool(counts) and counts[-1] < len(self._seen), "the count says less than came"),
            (bool(self._known) and not self._known & self._seen, "none of the records that central has taken last"),
        )
        return next((reason for wrong, reason in reasons if wrong), "")

    def _overlaps(self, numbers: set[int], *, newest_first: bool) -> bool:
        """Return whether more records come a second time than new records at the top can have pushed down."""
        if not numbers:
            return False
        grown = _grown(*self._counts[-2:]) if newest_first else 0
        return sum(number >= min(self._seen) for number in numbers) > grown


@dataclass(frozen=True, slots=True)
class SearchBounds:
    """Bounds of the records that are searched.

    Attributes:
        older: the id of a record that is older than the wanted one, None when none is known.
        known: ids that central is known to have given last.
        made_by: the latest time at which the record can have been created, in micros of central's clock; None when
            unknown.
        share_later: the share of the time since the request that is after `made_by`: it shows where to look first.
    """

    older: int | None
    known: Collection[int] = ()
    made_by: int | None = None
    share_later: float = 0.5


class ListSearch:
    """Search through one list, in parts of at most 16 requests. A list in no usable order must come in one part."""

    def __init__(
        self, client: CentralClient, lookup: Lookup, bounds: SearchBounds, *, attempt: int, parts: int, compare: Compare
    ) -> None:
        """Begin before the first request. The number of the `attempt` and the divisor `parts` decide the page size."""
        self._client = client
        self._lookup = lookup
        self._compare = compare
        self._small = _SMALL[attempt % len(_SMALL)] // parts
        self._large = _LARGE[attempt % len(_LARGE)] // parts
        self._in_order = False
        self._pages = self._read_all(bounds)
        self._problem = "it was not read to its end"
        self.goes_on = False

    async def look(self) -> str:
        """Compare the records between the bounds, or go on with that.

        Return why that proves nothing; "" for a proof, or if all were found. `goes_on` is then true if the next look
        goes on where this one stopped. Raises CentralUnavailable, CentralRefused; then the search is over.
        """
        self.goes_on = False
        for _ in range(MOST_REQUESTS):
            page = await anext(self._pages, None)
            if page is None:
                return f"{self._lookup.resource}: {self._problem}" if self._problem else ""
            if await self._compare(page.records):
                await self._pages.aclose()
                return ""
        self.goes_on = self._in_order
        goes_on = "; the search goes on" if self.goes_on else ""
        return f"{self._lookup.resource}: it is more than {MOST_REQUESTS} pages long{goes_on}"

    async def _read_all(self, bounds: SearchBounds) -> AsyncGenerator[Page, None]:
        """Yield every page that is read, and note at the end why they prove nothing."""
        first = await self._read(1, self._small)
        yield first
        if len(first.ids) < self._small and first.count is not None and first.count > len(first.ids):
            self._small = self._large = len(first.ids)  # central gives shorter pages, and numbers them accordingly
        newest_first, top = first.order is PageOrder.NEWEST_FIRST, first
        in_order = self._lookup.paged and first.order is not PageOrder.NONE and bool(first.records)
        if not newest_first and (bounds.older is None or first.count is None or first.count <= len(first.records)):
            in_order = False
        if not in_order:
            pages = self._read_whole(bounds, first)
        else:
            if newest_first:
                coverage = ListCoverage(limit=self._small, older=bounds.older, known=bounds.known)
                coverage.take(first)
                if coverage.over:
                    self._problem = coverage.problem
                    return
            else:
                top = await self._read(_page_of(0, self._small, first.count or 0, newest_first=False), self._small)
                yield top
            pages = self._read_down(bounds, top, newest_first=newest_first)
        async for page in pages:
            yield page

    async def _read_down(self, bounds: SearchBounds, top: Page, *, newest_first: bool) -> AsyncGenerator[Page, None]:
        """Yield the pages from the upper bound down to the lower one."""
        self._in_order = True
        count, start = top.count or 0, 0
        depth = count if bounds.older is None else min(max(top.records, default=0) - bounds.older, count)
        if depth > _AT_ONCE and bounds.made_by is not None:
            later = _Later(depth, step=self._large, share=bounds.share_later)
            while later.is_open:
                page = await self._read(_page_of(later.place, _PROBED, count, newest_first=newest_first), _PROBED)
                yield page
                later.note(is_later=_is_later(page, bounds.made_by))
            start = later.low
        while True:
            number = _page_of(start, self._large, count, newest_first=newest_first)
            page = await self._read(number, self._large)
            yield page
            due = (page.count or 0) - (number - 1) * self._large
            if number == 1 or len(page.ids) >= self._large or len(page.ids) == due:
                break
            # Central gives shorter pages and numbers them accordingly, so this is not the page that was meant.
            self._large = max(len(page.ids), 1)
        coverage = ListCoverage(limit=self._large, older=bounds.older, known=bounds.known, from_top=start < self._large)
        while True:
            before = page.count
            coverage.take(page, newest_first=newest_first)
            number += 1 if newest_first else -1
            if coverage.over or number <= 0:
                break
            page = await self._read(number, self._large)
            yield page
            if newest_first and (pushed := _grown(before, page.count) // coverage.page_length):
                number += pushed  # new records have pushed the others down since the last part of the search
                page = await self._read(number, self._large)
                yield page
        if not coverage.over:
            coverage.give_up("no record is as old as one that was there before")
        self._problem = coverage.problem

    async def _read_whole(self, bounds: SearchBounds, first: Page) -> AsyncGenerator[Page, None]:
        """Yield the pages of a list that is in no usable order."""
        tally, page, number, limit = Tally(self._lookup.resource), first, 1, self._small
        if self._lookup.paged and first.ids and first.count != len(first.ids):
            limit = self._large
            page = await self._read(1, limit)
            yield page
        while tally.take(page.ids, page.count) and self._lookup.paged and tally.count != len(tally.ids):
            number += 1
            page = await self._read(number, limit)
            yield page
        self._problem = tally.problem.removeprefix(f"{self._lookup.resource}: ")
        if bounds.known and not frozenset(bounds.known) & tally.ids:
            self._problem = "it shows none of the records that central has taken last"

    async def _read(self, number: int, limit: int) -> Page:
        return await read_page(self._client, self._lookup, number, limit)


class _Later:
    """Bisection for a distance from the newest record up to which all records are later, near the largest such one."""

    def __init__(self, depth: int, *, step: int, share: float) -> None:
        self._high = depth
        self._step = step
        self._near = 2 * step
        self.low = 0
        self.place = int(depth * share)

    @property
    def is_open(self) -> bool:
        """True until the distance is known well enough."""
        return self._high - self.low > self._near

    def note(self, *, is_later: bool) -> None:
        """Note whether the records at `place` are later, and choose the next place."""
        if is_later:
            self.low, self.place = self.place, self.place + self._step
        else:
            self._high, self.place = self.place, self.place - self._step
        self._step *= 2
        if not self.low < self.place < self._high:
            self.place = (self.low + self._high) // 2


def _grown(before: int | None, now: int | None) -> int:
    """Return by how much a list's stated length has grown; 0 if it is not known."""
    return 0 if before is None or now is None else max(now - before, 0)


def _page_of(distance: int, limit: int, count: int, *, newest_first: bool) -> int:
    """Return the number of the page that has the record at a distance from the newest."""
    return distance // limit + 1 if newest_first else max(count - distance - 1, 0) // limit + 1


def _is_later(page: Page, made_by: int) -> bool:
    """Return whether most of a page's records are dated after a moment."""
    dated = [_micros(record.get("date_at")) for record in page.records.values()]
    later = [moment for moment in dated if moment is not None and moment > made_by]
    return len(page.records) >= _PROBED and len(later) > len(page.records) * _LATER


def _micros(value: object) -> int | None:
    """Parse a moment with its offset; None for a text without one."""
    try:
        return micros_of(value) if isinstance(value, str) else None
    except ValueError:
        return None
