"""Reading central's lists by cursor, in one piece, or in search of a record; without end only in theory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from gateway.domain.writes import Lookup
from gateway.sync.answers import JsonObject
from gateway.sync.central import CentralClient
from gateway.sync.sweep import Page, Tally

PAGE_LIMIT = 100
"""Records asked for at once where little is to be gained by more."""

_MOST_PAGES = 20_000
_MOST_FOUND_PAGES = 50

Take = Callable[[Page], Awaitable[None]]


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


async def records_found(client: CentralClient, lookup: Lookup, body: JsonObject) -> AsyncIterator[JsonObject]:
    """The records of a list that may be the one with this body, searched for by the first field that says anything."""
    stated = (str(value) for name in lookup.search if (value := body.get(name)) not in (None, ""))
    search = next(stated, "")
    tally = Tally(lookup.resource)
    for number in range(1, _MOST_FOUND_PAGES + 1):
        asked: JsonObject = {"page": number, "page_limit": PAGE_LIMIT} if lookup.paged else {}
        if search and lookup.paged:
            asked["search"] = search
        page = tally.take(await client.call("POST", lookup.path, asked))
        for _, record in page:
            yield record
        if not page or not lookup.paged:
            return
