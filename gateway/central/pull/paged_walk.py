"""Walk over one of central's lists page by page. While a page is stored, the next is fetched."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Generic, Protocol, TypeVar

from gateway.central.client.answers import CentralSlow, JsonObject
from gateway.central.client.client import CentralClient
from gateway.central.client.connections import TooLarge
from gateway.central.client.list_proof import Met, Page, Tally
from gateway.central.client.page_size import PageSize, in_a_size_that_comes, is_by_size
from gateway.domain.errors import CentralRefused, CentralUnavailable

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


@dataclass(frozen=True, slots=True)
class ReadPage(Generic[_Item]):
    """A page that was parsed in another process.

    Attributes:
        ids: the id of every record in the page's order; None for a record without a usable id.
        count: the number of records in the whole list, as the page says; None if it does not.
        made: the converted records by their ids; of several with the same id, the first.
    """

    ids: tuple[int | None, ...]
    count: int | None
    made: Mapping[int, _Item]


class Apart(Protocol[_Item]):
    """Parser of pages outside this process, for lists that are long enough."""

    @property
    def is_up(self) -> bool:
        """True while pages can be parsed there. Once it ends, it stays False for the walk."""
        ...

    async def expect(self, records: int) -> None:
        """Announce how many records are still to come."""
        ...

    def send(self, raw: bytes) -> None:
        """Send a page to be parsed."""
        ...

    async def read(self) -> ReadPage[_Item] | None:
        """Return the first page that was sent and not read yet; None when it cannot be parsed there."""
        ...


class _Answer:
    """A page as central sent it: its digest, and its content if the last walk had it.

    `raw` is the body if it is to be parsed in another process, else empty.
    """

    def __init__(self, number: int, memory: PageMemory, *, apart: bool) -> None:
        self.number = number
        self._memory = memory
        self._apart = apart
        self.mark = b""
        self.met: Met | None = None
        self.whole: JsonObject = {}
        self.raw = b""

    def known(self, raw: bytes) -> JsonObject | None:
        """Return a mere success for a body that need not be parsed here: a known one, or one for another process."""
        self.mark = blake2b(raw, digest_size=16).digest()
        self.met = self._memory.recall(self.mark)
        self.raw = raw if self._apart and self.met is None else b""
        return {"success": True} if self.raw or self.met is not None else None


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
    fetched and converted. If pages are parsed `apart`, the one after that is fetched and sent there at the same time.
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
        apart: Apart[_Item] | None = None,
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
        self._apart = apart
        self._on_progress = on_progress
        self._tally = Tally(resource)
        self._ahead: _Answer | CentralRefused | CentralUnavailable | None = None

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
        if number == 2 and self._apart is not None:
            await self._apart.expect((self._tally.count or 0) - self._tally.received)
        answer, self._ahead = self._ahead or await self._ask_further(number), None
        if not isinstance(answer, _Answer):
            raise answer
        if not answer.raw:
            return await self._read(answer)
        arrived, ahead = await asyncio.gather(self._read(answer), self._prefetch(number + 1), return_exceptions=True)
        if isinstance(ahead, BaseException):
            raise ahead
        if isinstance(arrived, BaseException):
            raise arrived
        self._ahead = ahead
        return arrived

    async def _prefetch(self, number: int) -> _Answer | CentralRefused | CentralUnavailable | None:
        """Return the page after the one being read, or the error of fetching it; None if there is probably none."""
        if self._tally.received + self._size.limit >= (self._tally.count or 0):
            return None
        try:
            return await self._ask_further(number)
        except (CentralRefused, CentralUnavailable) as error:  # raised when its turn comes
            return error

    async def _first(self, limit: int) -> _Answer:
        return await self._ask(1, limit)

    async def _ask_further(self, number: int, *, here: bool = False) -> _Answer:
        try:
            return await self._ask(number, self._size.limit, here=here)
        except (TooLarge, CentralSlow) as error:  # its records are larger than those of the first page
            if await is_by_size(self._client, error):
                self._size.refused()
            raise

    async def _ask(self, number: int, limit: int, *, here: bool = False) -> _Answer:
        apart = not here and self._apart is not None and self._apart.is_up
        answer = _Answer(number, self._memory, apart=apart)
        asked: JsonObject = {"page": number, "page_limit": limit}
        answer.whole = await self._client.call("POST", self._path, asked, known=answer.known)
        if self._apart is not None and answer.raw:
            self._apart.send(answer.raw)
        return answer

    async def _read(self, answer: _Answer) -> _Arrived[_Item]:
        tally = self._tally
        if answer.met is not None:
            return _Arrived(tally.again(answer.met), [], answer.mark, answer.met, len(tally.ids), tally.count)
        before = tally.received
        read = await self._apart.read() if self._apart is not None and answer.raw else None
        if read is not None:
            fresh_ids = tally.take_ids(read.ids, read.count)
            made = [read.made[found] for found in fresh_ids]
        else:
            if answer.raw:  # no usual page, or the process could not parse it: parse it here to find out
                answer = await self._ask_further(answer.number, here=True)
                if answer.met is not None:
                    return await self._read(answer)
            page = tally.take(answer.whole)
            fresh_ids = tuple(found for found, _ in page)
            made = []
        whole = len(fresh_ids) == tally.received - before
        met = Met(fresh_ids, tally.last_count) if whole else None
        received, count = len(tally.ids), tally.count
        if read is None and page:
            made = await self._make(page)
        return _Arrived(fresh_ids, made, answer.mark, met, received, count)
