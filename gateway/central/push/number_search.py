"""Looking for a record by the list's own search: by the number, the name or the plate by which it is known.

The interface does not say what a search finds. So it proves that something is not there only at a central whose search
finds a record of the list by the same kind of mark.
"""

from __future__ import annotations

from gateway.central.client.client import CentralClient
from gateway.central.client.list_pages import read_page
from gateway.central.push.list_search import Compare
from gateway.domain.writes import JsonObject, Lookup

_LIMIT = 100
_TRIED = 5


async def search_by_mark(client: CentralClient, lookup: Lookup, sent: JsonObject, compare: Compare) -> bool:
    """Compare what the search finds; whether that proves where the record is. Raises what the client raises."""
    name = next((group[-1] for group in lookup.marks if all(sent.get(mark) not in (None, "") for mark in group)), None)
    if name is None:
        return False
    hits = await read_page(client, lookup, 1, _LIMIT, search=str(sent[name]))
    if await compare(hits.records):
        return True
    if len(hits.ids) != hits.count or len(hits.ids) >= _LIMIT:
        return False  # the search is too wide, or finds everything
    some = await read_page(client, lookup, 1, _TRIED)
    for number, record in some.records:
        mark = record.get(name)
        if mark not in (None, "") and isinstance(mark, str | int):
            found = await read_page(client, lookup, 1, _LIMIT, search=str(mark))
            return number in dict(found.records) and len(found.ids) < _LIMIT
    return False
