"""Single pages of central's lists, as they come."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from gateway.central.client.answers import CentralFailed
from gateway.central.client.client import CentralClient
from gateway.central.client.list_proof import read_listing
from gateway.domain.writes import JsonObject, Lookup


class Order(Enum):
    """How the records of a page follow one another."""

    NEWEST_FIRST = "newest first"
    OLDEST_FIRST = "oldest first"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ListPage:
    """A page.

    Attributes:
        ids: of every record as they came; None of one without a usable id.
        records: those with an id; of several with the same one the first.
        count: how many records the list has, as the page says.
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
    """Ask for one page. Raises what the client raises, CentralFailed when the answer holds no list."""
    asked: JsonObject = {"page": number, "page_limit": limit} if lookup.paged else {}
    if search:
        asked["search"] = search
    listing = read_listing(await client.call("POST", lookup.path, asked), lookup.resource)
    if listing is None:
        raise CentralFailed(f"central's answer has no list {lookup.resource!r}")
    return ListPage(listing.ids, tuple(listing.records.items()), listing.count)
