"""Walking over central's lists, page by page or by cursor, without end only in theory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from hashlib import blake2b

from gateway.domain.errors import CentralRefused
from gateway.sync.answers import CentralDenied, CentralFailed, JsonObject
from gateway.sync.central import CentralClient
from gateway.sync.connections import TooLarge
from gateway.sync.sweep import Met, Page, Tally

PAGE_LIMIT = 100
"""Records asked for at once where little is to be gained by more."""

_NARROWEST = 25  # the interface's default, which every list honours
_WIDEST = (1000, 500, 250, PAGE_LIMIT, _NARROWEST)
_MOST_PAGES = 20_000

Take = Callable[[Page], Awaitable[None]]
TakePage = Callable[[Page], Awaitable[bool]]
Told = Callable[[int, int | None], None]


def nobody(_received: int, _count: int | None) -> None:
    """Nobody wants to know how far a walk has come."""


class PageSize:
    """The largest page that central honours, found out by asking."""

    def __init__(self) -> None:
        self.limit = _WIDEST[0]

    def refused(self) -> bool:
        """Central does not take this size, or cannot bear it; whether there is a smaller one to ask for."""
        smaller = next((size for size in _WIDEST if size < self.limit), None)
        if smaller is None:
            return False
        self.limit = smaller
        return True

    def came(self, records: int, count: int | None) -> None:
        """The first page held so many of so many: fewer than were asked for is as many as central ever gives."""
        if count is not None and _NARROWEST <= records < min(self.limit, count):
            self.limit = records


class PageMemory:
    """Pages of the last walk that were in step with the site, by what they weigh: such a page is not read again."""

    def __init__(self) -> None:
        self._met: dict[bytes, Met] = {}
        self._walked: dict[bytes, Met] = {}
        self._mark = b""
        self.hit: Met | None = None

    def recall(self, raw: bytes) -> JsonObject | None:
        """An answer in place of a body that was met in the last walk; `hit` is then what it held."""
        self._mark = blake2b(raw, digest_size=16).digest()
        self.hit = self._met.get(self._mark)
        if self.hit is None:
            return None
        self._walked[self._mark] = self.hit
        return {"success": True}

    def note(self, met: Met) -> None:
        """The page that was just read is in step."""
        self._walked[self._mark] = met

    def end_walk(self, *, keep: bool) -> None:
        """The walk is over; without `keep` nothing of it is to be known again."""
        self._met, self._walked = (self._walked if keep else {}), {}


async def read_pages(
    client: CentralClient,
    *,
    path: str,
    resource: str,
    take: TakePage,
    size: PageSize,
    memory: PageMemory,
    told: Told = nobody,
) -> Tally:
    """Hand every page to `take`, until one brings nothing new: only that proves the end, whatever `count` says.

    `take` says whether the site has all of a page just as it came; such a page of `memory` is not taken again.
    """
    tally = Tally(resource)
    answer = await _first_page(client, path, size, memory)
    for number in range(2, _MOST_PAGES + 2):
        if memory.hit is not None:
            fresh = tally.again(memory.hit)
        else:
            before = tally.received
            page = tally.take(answer)
            fresh = bool(page)
            if fresh and await take(page) and len(page) == tally.received - before:
                memory.note(Met(tuple(found for found, _ in page), tally.last_count))
        if number == 2:
            size.came(tally.received, tally.count)
        told(len(tally.ids), tally.count)
        if not fresh:
            return tally
        asked: JsonObject = {"page": number, "page_limit": size.limit}
        try:
            answer = await client.call("POST", path, asked, known=memory.recall)
        except TooLarge:  # its records are larger than those of the first page
            size.refused()
            raise
    tally.fault(f"no end after {_MOST_PAGES} pages")
    return tally


async def _first_page(client: CentralClient, path: str, size: PageSize, memory: PageMemory) -> JsonObject:
    """The first page, in the largest size that central takes. Where none helps, it is not the size that it minds."""
    widest = size.limit
    while True:
        try:
            asked: JsonObject = {"page": 1, "page_limit": size.limit}
            return await client.call("POST", path, asked, known=memory.recall)
        except CentralDenied:
            raise
        except (CentralRefused, CentralFailed):
            if not size.refused():
                size.limit = widest
                raise


async def read_by_cursor(client: CentralClient, *, path: str, resource: str, take: Take) -> Tally:
    """Hand every batch to `take`, from the newest record to the oldest."""
    tally = Tally(resource)
    cursor = 0
    for _ in range(_MOST_PAGES):
        answer = await client.call("POST", path, {"page": 1, "page_limit": PAGE_LIMIT, "cursor_id": cursor})
        page = tally.take(answer)
        if page:
            await take(page)
        following = answer.get("next_cursor")
        if not page or following is None:
            return tally
        if not isinstance(following, int) or following <= 0 or (cursor and following >= cursor):
            tally.fault("the cursor does not go to older records")
            return tally
        cursor = following
    tally.fault(f"no end after {_MOST_PAGES} batches")
    return tally


async def read_whole(client: CentralClient, *, path: str, resource: str, take: Take) -> Tally:
    """Hand a list that comes in one piece to `take`."""
    tally = Tally(resource)
    asked: JsonObject = {}
    await take(tally.take(await client.call("POST", path, asked)))
    return tally
