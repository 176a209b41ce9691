"""Reading central's lists by cursor, or in one piece; without end only in theory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from gateway.central.client.answers import JsonObject
from gateway.central.client.client import CentralClient
from gateway.central.client.list_proof import Page, Tally
from gateway.central.client.page_size import PageSize, in_a_size_that_comes
from gateway.central.client.values import whole_of

_MOST_PAGES = 20_000

Take = Callable[[Page], Awaitable[None]]


async def read_by_cursor(client: CentralClient, *, path: str, resource: str, size: PageSize, take: Take) -> Tally:
    """Hand every batch to `take`, from the newest record to the oldest."""
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
    """Hand a list that comes in one piece to `take`."""
    tally = Tally(resource)
    asked: JsonObject = {}
    await take(tally.take(await client.call("POST", path, asked)))
    return tally
