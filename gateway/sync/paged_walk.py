"""Walking over one of central's lists page by page, one page ahead of what is taken over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Generic, TypeVar

from gateway.sync.answers import CentralSlow, JsonObject
from gateway.sync.central import CentralClient
from gateway.sync.connections import TooLarge
from gateway.sync.page_size import PageSize, in_a_size_that_comes, is_by_size
from gateway.sync.sweep import Met, Page, Tally

_MOST_PAGES = 20_000

_Made = TypeVar("_Made")
Told = Callable[[int, int | None], None]


def nobody(_received: int, _count: int | None) -> None:
    """Nobody wants to know how far a walk has come."""


class PageMemory:
    """Pages of the last walk that were in step with the site, by what they weigh: such a page is not read again."""

    def __init__(self) -> None:
        self._met: dict[bytes, Met] = {}
        self._walked: dict[bytes, Met] = {}

    def recall(self, mark: bytes) -> Met | None:
        """What a page of this weight held, if it was met in the last walk."""
        met = self._met.get(mark)
        if met is not None:
            self._walked[mark] = met
        return met

    def note(self, mark: bytes, met: Met) -> None:
        """A page that was read is in step."""
        self._walked[mark] = met

    def end_walk(self, *, keep: bool) -> None:
        """The walk is over; without `keep` nothing of it is to be known again."""
        self._met, self._walked = (self._walked if keep else {}), {}


class _Answer:
    """A page as central sent it: what it weighs, and what it held when it was met before."""

    def __init__(self, memory: PageMemory) -> None:
        self._memory = memory
        self.mark = b""
        self.met: Met | None = None
        self.whole: JsonObject = {}

    def known(self, raw: bytes) -> JsonObject | None:
        """An answer in place of a body that was met before."""
        self.mark = blake2b(raw, digest_size=16).digest()
        self.met = self._memory.recall(self.mark)
        return None if self.met is None else {"success": True}


@dataclass(frozen=True, slots=True)
class _Arrived(Generic[_Made]):
    """A page that was read.

    Attributes:
        fresh: whether it brought anything new.
        made: what was made of it; None of one that was met before, or brought nothing new.
        mark: what it weighs.
        met: what it held; None unless all of that was new.
        received: how many records there have been so far.
        count: how many there are, as the pages say.
    """

    fresh: bool
    made: _Made | None
    mark: bytes
    met: Met | None
    received: int
    count: int | None


class PagedWalk(Generic[_Made]):
    """A walk over a list by its pages, until one brings nothing new: only that proves the end, whatever `count` says.

    `make` computes what a page alone suffices for. `take` takes it over, page after page, and says whether the site has
    all of it just as it came: such a page of `memory` is not read again. While one page is taken over, the next one is
    fetched and made.
    """

    def __init__(
        self,
        client: CentralClient,
        *,
        path: str,
        resource: str,
        make: Callable[[Page], Awaitable[_Made]],
        take: Callable[[_Made], Awaitable[bool]],
        size: PageSize,
        memory: PageMemory,
        told: Told = nobody,
    ) -> None:
        self._client = client
        self._path = path
        self._make = make
        self._take = take
        self._size = size
        self._memory = memory
        self._told = told
        self._tally = Tally(resource)

    async def walk(self) -> Tally:
        """Go to the end. Raises what the client, `make` and `take` raise; the pages before that are taken over."""
        arrived = await self._read(await in_a_size_that_comes(self._client, self._size, self._first))
        self._size.came(self._tally.received, self._tally.count)
        for number in range(2, _MOST_PAGES + 2):
            self._told(arrived.received, arrived.count)
            if not arrived.fresh:
                self._size.walked()
                return self._tally
            # Each comes to its end: what central sent is taken over also when it does not send the next page.
            taken, following = await asyncio.gather(
                self._take_over(arrived), self._next(number), return_exceptions=True
            )
            if isinstance(taken, BaseException):
                raise taken
            if isinstance(following, BaseException):
                raise following
            arrived = following
        self._tally.fault(f"no end after {_MOST_PAGES} pages")
        return self._tally

    async def _take_over(self, arrived: _Arrived[_Made]) -> None:
        if arrived.made is not None and await self._take(arrived.made) and arrived.met is not None:
            self._memory.note(arrived.mark, arrived.met)

    async def _next(self, number: int) -> _Arrived[_Made]:
        try:
            answer = await self._ask(number, self._size.limit)
        except (TooLarge, CentralSlow) as error:  # its records are larger than those of the first page
            if await is_by_size(self._client, error):
                self._size.refused()
            raise
        return await self._read(answer)

    async def _first(self, limit: int) -> _Answer:
        return await self._ask(1, limit)

    async def _ask(self, number: int, limit: int) -> _Answer:
        answer = _Answer(self._memory)
        asked: JsonObject = {"page": number, "page_limit": limit}
        answer.whole = await self._client.call("POST", self._path, asked, known=answer.known)
        return answer

    async def _read(self, answer: _Answer) -> _Arrived[_Made]:
        tally, met, before = self._tally, answer.met, self._tally.received
        page: Page = ()
        if met is not None:
            fresh = tally.again(met)
        else:
            page = tally.take(answer.whole)
            fresh = bool(page)
            if len(page) == tally.received - before:
                met = Met(tuple(found for found, _ in page), tally.last_count)
        received, count = len(tally.ids), tally.count
        made = await self._make(page) if page else None
        return _Arrived(fresh, made, answer.mark, met, received, count)
