"""Requests for central's lists: page by page, by cursor, or in one piece."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from gateway.central.client.answers import CentralFailed
from gateway.central.client.client import CentralClient
from gateway.central.client.list_proof import Page, Tally, read_listing
from gateway.central.client.page_size import PageSize, in_a_size_that_comes
from gateway.central.client.values import whole_of
from gateway.domain.writes import JsonObject, Lookup

_MOST_PAGES = 20_000

Take = Callable[[Page], Awaitable[None]]


async def read_by_cursor(client: CentralClient, *, path: str, resource: str, size: PageSize, take: Take) -> Tally:
    """Read a list by cursor, from the newest record to the oldest, and pass each page to `take`."""
    tally = Tally(resource)
    cursor = 0

    async def ask(limit: int) -> JsonObject:
        return await client.call("POST", path, {"page": 1, "page_limit": limit, "cursor_id": cursor})

    for _ in range(_MOST_PAGES):
        answer = await in_a_size_that_comes(client, size, ask)
        page = tally.take(answer)
        if page:
            await take(page)
        if not page or answer.get("next_cursor") is None:
            size.walked()
            return tally
        following = whole_of(answer["next_cursor"])
        if not following or (cursor and following >= cursor):
            tally.fault("the cursor does not go to older records")
            return tally
        cursor = following
    tally.fault(f"no end after {_MOST_PAGES} batches")
    return tally


async def read_whole(client: CentralClient, *, path: str, resource: str, take: Take) -> Tally:
    """Read a list that comes in one piece, and pass it to `take`."""
    tally = Tally(resource)
    asked: JsonObject = {}
    await take(tally.take(await client.call("POST", path, asked)))
    return tally


class Order(Enum):
    """Order of the records of a page."""

    NEWEST_FIRST = "newest first"
    OLDEST_FIRST = "oldest first"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ListPage:
    """A page of a list.

    Attributes:
        ids: the id of every record in the page's order; None for a record without a usable id.
        records: the records with an id, and their ids; of several with the same id, the first.
        count: the number of records in the whole list, as the page says; None if it does not.
    """

    ids: tuple[int | None, ...]
    records: tuple[tuple[int, JsonObject], ...]
    count: int | None

    @property
    def order(self) -> Order:
        """The order of its ids; a page of one record counts as newest first."""
        numbers = [number for number, _ in self.records]
        if len(numbers) < len(self.ids):
            return Order.NONE
        if all(one > other for one, other in pairwise(numbers)):
            return Order.NEWEST_FIRST
        return Order.OLDEST_FIRST if all(one < other for one, other in pairwise(numbers)) else Order.NONE


async def read_page(client: CentralClient, lookup: Lookup, number: int, limit: int, *, search: str = "") -> ListPage:
    """Read one page. Raises what the client raises, and CentralFailed when the answer has no list."""
    asked: JsonObject = {"page": number, "page_limit": limit} if lookup.paged else {}
    if search:
        asked["search"] = search
    listing = read_listing(await client.call("POST", lookup.path, asked), lookup.resource)
    if listing is None:
        raise CentralFailed(f"central's answer has no list {lookup.resource!r}")
    return ListPage(listing.ids, tuple(listing.records.items()), listing.count)
