"""Walk over one of central's lists page by page. While a page is stored, the next is fetched."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Generic, TypeVar

from gateway.central.client.answers import CentralSlow, JsonObject, TooLarge
from gateway.central.client.client import CentralClient
from gateway.central.client.list_proof import Met, Page, Tally
from gateway.central.client.page_size import PageSize, in_a_size_that_comes, is_by_size

_MOST_PAGES = 20_000

_Item = TypeVar("_Item")
OnProgress = Callable[[int, int | None], None]
OnPage = Callable[[Sequence[int]], Awaitable[None]]
"""Called with the new ids of a page, in their order, once the page is stored."""


def ignore_progress(_received: int, _count: int | None) -> None:
    """Ignore the progress of a walk."""


class PageMemory:
    """Digests of the last walk's pages whose records the site has exactly: such a page is not parsed again."""

    def __init__(self) -> None:
        self._met: dict[bytes, Met] = {}
        self._walked: dict[bytes, Met] = {}

    def recall(self, mark: bytes) -> Met | None:
        """Return the content of the page with this digest, None unless the last walk had it."""
        met = self._met.get(mark)
        if met is not None:
            self._walked[mark] = met
        return met

    def note(self, mark: bytes, met: Met) -> None:
        """Remember a page whose records the site has exactly."""
        self._walked[mark] = met

    def end_walk(self, *, keep: bool) -> None:
        """End a walk; without `keep` all digests are forgotten."""
        self._met, self._walked = (self._walked if keep else {}), {}


class _Answer:
    """A page as central sent it: its digest, and its content if the last walk had it."""

    def __init__(self, memory: PageMemory) -> None:
        self._memory = memory
        self.mark = b""
        self.met: Met | None = None
        self.whole: JsonObject = {}

    def known(self, raw: bytes) -> JsonObject | None:
        """Return a mere success for a page that the last walk had: it need not be parsed."""
        self.mark = blake2b(raw, digest_size=16).digest()
        self.met = self._memory.recall(self.mark)
        return {"success": True} if self.met is not None else None


@dataclass(frozen=True, slots=True)
class _Arrived(Generic[_Item]):
    """A page that was read.

    Attributes:
        ids: its ids that no page before it had, in their order.
        made: its converted new records; empty for a page that the last walk had.
        mark: its digest.
        met: its content, to be remembered; None unless all its records were new.
        received: number of different records so far.
        count: number of records in the whole list, as the pages state.
    """

    ids: tuple[int, ...]
    made: list[_Item]
    mark: bytes
    met: Met | None
    received: int
    count: int | None


class PagedWalk(Generic[_Item]):
    """A walk over a list by its pages, until one brings nothing new: only that proves the end, whatever `count` says.

    `make` converts a page. `take` stores it, and returns whether the site has each record exactly as it came: then
    `memory` keeps its digest, and the next walk does not parse it again. While one page is stored, the next one is
    fetched and converted.
    """

    def __init__(
        self,
        client: CentralClient,
        *,
        path: str,
        resource: str,
        make: Callable[[Page], Awaitable[list[_Item]]],
        take: Callable[[list[_Item]], Awaitable[bool]],
        size: PageSize,
        memory: PageMemory,
        on_progress: OnProgress = ignore_progress,
        on_page: OnPage | None = None,
    ) -> None:
        self._on_page = on_page
        self._client = client
        self._path = path
        self._make = make
        self._take = take
        self._size = size
        self._memory = memory
        self._on_progress = on_progress
        self._tally = Tally(resource)

    async def walk(self) -> Tally:
        """Walk to the end. Raises what the client, `make` and `take` raise; the pages before that are stored."""
        arrived = await self._read(await in_a_size_that_comes(self._client, self._size, self._first))
        self._size.came(self._tally.received, self._tally.count)
        for number in range(2, _MOST_PAGES + 2):
            self._on_progress(arrived.received, arrived.count)
            if not arrived.ids:
                self._size.walked()
                return self._tally
            # Both run to their end: a page that came is stored even if the next one does not come.
            stored, following = await asyncio.gather(self._store(arrived), self._next(number), return_exceptions=True)
            if isinstance(stored, BaseException):
                raise stored
            if isinstance(following, BaseException):
                raise following
            arrived = following
        self._tally.fault(f"no end after {_MOST_PAGES} pages")
        return self._tally

    async def _store(self, arrived: _Arrived[_Item]) -> None:
        if arrived.made and await self._take(arrived.made) and arrived.met is not None:
            self._memory.note(arrived.mark, arrived.met)
        if self._on_page is not None:
            await self._on_page(arrived.ids)

    async def _next(self, number: int) -> _Arrived[_Item]:
        return await self._read(await self._ask_further(number))

    async def _first(self, limit: int) -> _Answer:
        return await self._ask(1, limit)

    async def _ask_further(self, number: int) -> _Answer:
        try:
            return await self._ask(number, self._size.limit)
        except (TooLarge, CentralSlow) as error:  # its records are larger than those of the first page
            if await is_by_size(self._client, error):
                self._size.refused()
            raise

    async def _ask(self, number: int, limit: int) -> _Answer:
        answer = _Answer(self._memory)
        asked: JsonObject = {"page": number, "page_limit": limit}
        answer.whole = await self._client.call("POST", self._path, asked, known=answer.known)
        return answer

    async def _read(self, answer: _Answer) -> _Arrived[_Item]:
        tally = self._tally
        if answer.met is not None:
            return _Arrived(tally.again(answer.met), [], answer.mark, answer.met, len(tally.ids), tally.count)
        before = tally.received
        page = tally.take(answer.whole)
        fresh_ids = tuple(found for found, _ in page)
        whole = len(fresh_ids) == tally.received - before
        met = Met(fresh_ids, tally.last_count) if whole else None
        received, count = len(tally.ids), tally.count
        made = await self._make(page) if page else []
        return _Arrived(fresh_ids, made, answer.mark, met, received, count)
