"""Central's lists: their pages, the reader of a whole list, and the proof that a walk over it was complete.

Records that a walk finds are always stored. Records that it lacks are removed only if the walk was complete.
Pages are as large as central accepts and serves in time.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from hashlib import blake2b
from itertools import pairwise
from typing import Final, TypeVar

from pydantic import JsonValue

from gateway.central.client.answers import AnswerTooLarge, CentralBusy, CentralDenied, CentralFailed, CentralSlow
from gateway.central.client.client import CentralClient
from gateway.central.client.values import record_id, whole_of
from gateway.domain.errors import CentralRefused, CentralUnavailable
from gateway.domain.writes import JsonObject, Lookup

_MOST_PAGES = 20_000
_IdOf = Callable[[JsonObject], int | None]

LARGE_SHARE: Final = 0.2
"""A removal of more than this share of a list is large."""

NARROWEST: Final = 25
"""The interface's default, which every list accepts."""

WIDE: Final = (500, 250, 100, NARROWEST)
MODEST: Final = (100, 50, NARROWEST)
"""For short lists, where larger pages gain little."""

_FIRST_REST = 4
_LONGEST_REST = 64

_Page = TypeVar("_Page")


class NoList(CentralFailed):
    """Error for an answer that holds no list of the expected name."""


class PageOrder(Enum):
    """Order of the records of a page."""

    NEWEST_FIRST = "newest first"
    OLDEST_FIRST = "oldest first"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list.

    Attributes:
        ids: the id of every record in the page's order; None for a record without a usable id.
        records: the records with an id, by their ids; of several with the same id, the first.
        count: the number of records in the whole list, as the page says; None if it does not.
        following: where the next page of a list begins that is read by cursor; None at its end.
        digest: a digest of the page as it came, "" if it is not to be remembered.
    """

    ids: tuple[int | None, ...]
    records: Mapping[int, JsonObject]
    count: int | None
    following: JsonValue = None
    digest: bytes = b""

    @property
    def order(self) -> PageOrder:
        """The order of its ids; a page of one record counts as newest first."""
        numbers = list(self.records)
        if len(numbers) < len(self.ids):
            return PageOrder.NONE
        if all(one > other for one, other in pairwise(numbers)):
            return PageOrder.NEWEST_FIRST
        return PageOrder.OLDEST_FIRST if all(one < other for one, other in pairwise(numbers)) else PageOrder.NONE


def page_of(answer: JsonObject, resource: str, *, id_of: _IdOf = record_id) -> Page:
    """Read the page of this name from an answer. Raises NoList.

    `id_of` returns the id of a record, None without a usable one.
    """
    listed = answer.get(resource)
    if not isinstance(listed, list):
        raise NoList(f"central's answer has no list '{resource}'")
    count = answer.get("count")
    ids: list[int | None] = []
    records: dict[int, JsonObject] = {}
    for record in listed:
        found = id_of(record) if isinstance(record, dict) else None
        ids.append(found)
        if found is not None and isinstance(record, dict):
            records.setdefault(found, record)
    return Page(
        ids=tuple(ids),
        records=records,
        count=count if isinstance(count, int) and not isinstance(count, bool) else None,
        following=answer.get("next_cursor"),
    )


async def read_page(client: CentralClient, lookup: Lookup, number: int, limit: int, *, search: str = "") -> Page:
    """Read one page. Raises what the client raises, and NoList."""
    asked: JsonObject = {"page": number, "page_limit": limit} if lookup.paged else {}
    if search:
        asked["search"] = search
    return page_of(await client.call("POST", lookup.path, asked), lookup.resource)


class PageMemory:
    """Pages of the last walk whose records the site has exactly, by their digests: they are not parsed again."""

    def __init__(self) -> None:
        self._met: dict[bytes, Page] = {}
        self._walked: dict[bytes, Page] = {}

    def recall(self, digest: bytes) -> Page | None:
        """Return the page with this digest, without its records; None unless the last walk had it."""
        met = self._met.get(digest)
        if met is not None:
            self._walked[digest] = met
        return met

    def note(self, page: Page) -> None:
        """Remember a page whose records the site has exactly."""
        if page.digest:
            self._walked[page.digest] = replace(page, records={})

    def end_walk(self, *, keep: bool) -> None:
        """End a walk; without `keep` all pages are forgotten."""
        self._met, self._walked = (self._walked if keep else {}), {}


class Tally:
    """Totals of one walk over a list, and the check that its pages agree.

    Attributes:
        ids: the ids of the records that came.
        without_id: how many records came without a usable id.
    """

    def __init__(self, resource: str) -> None:
        self._resource = resource
        self._received = 0
        self.without_id = 0
        self._counts: set[int | None] = set()
        self._fault = ""
        self.ids: set[int] = set()

    def take(self, ids: Sequence[int | None], count: int | None) -> tuple[int, ...]:
        """Count a page; return its ids that are new.

        `ids`: the id of every record, None for one without a usable id. `count`: the list's length, as the page says.
        """
        self._counts.add(count)
        self._received += len(ids)
        known = [found for found in ids if found is not None]
        self.without_id += len(ids) - len(known)
        fresh = tuple(found for found in dict.fromkeys(known) if found not in self.ids)
        self.ids.update(fresh)
        return fresh

    @property
    def count(self) -> int | None:
        """Number of records that the pages state; None when they state none, or different ones."""
        return next(iter(self._counts)) if len(self._counts) == 1 else None

    def fault(self, reason: str) -> None:
        """Note why the walk could not be brought to its end."""
        self._fault = reason

    @property
    def reached_end(self) -> bool:
        """True when the walk came to the end of the list, even if the list is not believed."""
        return not self._fault

    @property
    def problem(self) -> str:
        """Reason why this walk does not prove the whole list; "" when it does."""
        count = next(iter(self._counts), None)
        reasons = (
            (bool(self._fault), self._fault),
            (self.without_id > 0, f"{self.without_id} records without a usable id"),
            (len(self._counts) != 1, "the count changed from page to page"),
            (count is None, "no count"),
            (count != self._received, f"the count says {count}, but {self._received} came"),
            (self._received != len(self.ids), f"{self._received - len(self.ids)} records came twice"),
        )
        return next((f"{self._resource}: {reason}" for wrong, reason in reasons if wrong), "")


@dataclass(frozen=True, slots=True)
class Removal:
    """Verdict on cards that a complete walk did not find.

    Attributes:
        due: the cards that may be removed now.
        waiting: the cards that stay until the next complete walk misses them too.
    """

    due: frozenset[int] = frozenset()
    waiting: frozenset[int] = frozenset()


def is_large(*, known: int, missing: int) -> bool:
    """Return whether the list has shrunk so much that the list itself is probably wrong."""
    return missing > known * LARGE_SHARE


def judge_removal(*, many: bool, missing: frozenset[int], waited: frozenset[int]) -> Removal:
    """Decide which missing cards may be removed now: if they are `many`, only those that the last walk missed too.

    `waited` are those that the last walk missed.
    """
    if not many:
        return Removal(due=missing)
    return Removal(due=missing & waited, waiting=missing - waited)


def waiting_text(waiting: frozenset[int]) -> str:
    """Format the ids of cards that wait, for storage."""
    return ",".join(map(str, sorted(waiting)))


def read_waiting(text: str) -> frozenset[int]:
    """Parse what `waiting_text` wrote; return no cards for any other text."""
    numbers = text.split(",") if text else []
    return frozenset(map(int, numbers)) if all(number.isdecimal() for number in numbers) else frozenset()


class PageSize:
    """The largest page that central serves, found by trial: failures make it smaller, successes later larger."""

    def __init__(self, sizes: tuple[int, ...] = WIDE) -> None:
        self._sizes = sizes
        self.limit = sizes[0]
        self._uncapped = 0
        self._rest = _FIRST_REST
        self._walks = 0
        self._on_trial = False

    def refused(self) -> bool:
        """Choose a smaller size after a failure; return whether there is one."""
        smaller = next((size for size in self._sizes if size < self.limit), None)
        if smaller is None:
            return False
        self._fall_back(smaller)
        self._uncapped = 0
        return True

    def came(self, records: int, count: int | None) -> None:
        """Note how many records the first page had. If fewer than asked for, that is central's limit for now."""
        if count is not None and NARROWEST <= records < min(self.limit, count):
            self._uncapped = self.limit
            self._fall_back(records)

    def walked(self) -> None:
        """Note that a whole list came. After several in a row, try a larger size; after each failed trial, later.

        The larger size is the next one of the sizes, or the one that central cut short, because asking for more than
        central gives costs nothing.
        """
        self._on_trial = False
        if self.limit >= self._uncapped:
            self._uncapped = 0
        larger = self._uncapped or next((size for size in reversed(self._sizes) if size > self.limit), None)
        if larger is None:
            return
        self._walks += 1
        if self._walks >= self._rest:
            self._walks = 0
            self._on_trial = True
            self.limit = larger

    def _fall_back(self, limit: int) -> None:
        if self._on_trial:
            self._rest = min(2 * self._rest, _LONGEST_REST)
            self._on_trial = False
        self.limit = limit
        self._walks = 0


async def in_a_size_that_comes(client: CentralClient, size: PageSize, ask: Callable[[int], Awaitable[_Page]]) -> _Page:
    """Call `ask` with smaller and smaller page sizes until a page comes.

    If no size helps, the size is not the reason, and the last error is raised.
    """
    widest = size.limit
    while True:
        try:
            return await ask(size.limit)
        except CentralDenied:
            raise
        except (CentralRefused, CentralUnavailable) as error:
            if not await is_by_size(client, error):
                raise
            if not size.refused():
                size.limit = widest
                raise


async def is_by_size(client: CentralClient, error: CentralRefused | CentralUnavailable) -> bool:
    """Return whether a smaller page may succeed after this error. After a slow answer, check that central runs."""
    if isinstance(error, CentralBusy):
        return False
    if isinstance(error, CentralRefused | CentralFailed):
        return True
    if not isinstance(error, CentralSlow) or not error.sent:
        return False
    try:
        await client.look()
    except (CentralUnavailable, CentralRefused):  # the client has noted it
        return False
    return True


@dataclass(slots=True, kw_only=True)
class ListReader:
    """Reader of a whole list: by cursor, by page numbers, or in one piece, as its `lookup` says.

    Attributes:
        client: the client of central.
        lookup: the list.
        tally: the totals of the walk. They say whether the walk proves the whole list.
        size: the page size that central serves.
        memory: pages that need not be parsed again; None for a list of which none is remembered.
        also: further fields of each request.
        id_of: returns the id of a record, None without a usable one.
        most_pages: the most pages that are read.
    """

    client: CentralClient
    lookup: Lookup
    tally: Tally
    size: PageSize
    memory: PageMemory | None = None
    also: JsonObject = field(default_factory=dict)
    id_of: _IdOf = record_id
    most_pages: int = _MOST_PAGES
    _cursor: int = field(default=0, init=False)

    async def pages(self) -> AsyncGenerator[Page, None]:
        """Yield the pages, of each the records that none before it had, until a page has no such record.

        Only that proves the end of a list by page numbers, whatever `count` says. Raises what the client raises, and
        NoList.
        """
        for number in range(1, self.most_pages + 1):
            page = await self._next(number)
            if number == 1 and self.lookup.paged and not self.lookup.by_cursor:
                self.size.came(len(page.ids), page.count)
            fresh = self.tally.take(page.ids, page.count)
            if fresh:
                yield page if fresh == page.ids else _only(page, fresh)
            if not fresh or not self._goes_on(page):
                if self.tally.reached_end:
                    self.size.walked()
                return
        self.tally.fault(f"no end after {self.most_pages} pages")

    def _goes_on(self, page: Page) -> bool:
        """Return whether a further page may follow; of a list by cursor, move there."""
        if not self.lookup.by_cursor:
            return self.lookup.paged
        if page.following is None:
            return False
        following = whole_of(page.following)
        if not following or (self._cursor and following >= self._cursor):
            self.tally.fault("the cursor does not go to older records")
            return False
        self._cursor = following
        return True

    async def _next(self, number: int) -> Page:
        lookup, digest, met = self.lookup, b"", None

        def known(raw: bytes) -> JsonObject | None:
            """Return a mere success for a page that the last walk had: it need not be parsed."""
            nonlocal digest, met
            digest = blake2b(raw, digest_size=16).digest()
            met = self.memory.recall(digest) if self.memory is not None else None
            return {"success": True} if met is not None else None

        async def ask(limit: int) -> JsonObject:
            asked = dict(self.also)
            if lookup.by_cursor:
                asked |= {"page": 1, "page_limit": limit, "cursor_id": self._cursor}
            elif lookup.paged:
                asked |= {"page": number, "page_limit": limit}
            return await self.client.call("POST", lookup.path, asked, known=None if self.memory is None else known)

        if lookup.paged and (number == 1 or lookup.by_cursor):
            answer = await in_a_size_that_comes(self.client, self.size, ask)
        else:
            answer = await self._in_the_same_size(ask)
        return met or replace(page_of(answer, lookup.resource, id_of=self.id_of), digest=digest)

    async def _in_the_same_size(self, ask: Callable[[int], Awaitable[JsonObject]]) -> JsonObject:
        """Ask in the size of the first page; if the page is too large, the next walk begins with a smaller size."""
        try:
            return await ask(self.size.limit)
        except (AnswerTooLarge, CentralSlow) as error:
            if await is_by_size(self.client, error):
                self.size.refused()
            raise


def _only(page: Page, fresh: tuple[int, ...]) -> Page:
    """Return a page with these of its records alone. It is not to be remembered."""
    return replace(
        page,
        ids=fresh,
        records={number: page.records[number] for number in fresh if number in page.records},
        digest=b"",
    )
