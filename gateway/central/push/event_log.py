"""The newest event of central's log, by which a central that was set back to an older state is recognised.

Events are numbered upwards, and the interface has no operation that removes one. So a log that no longer has the newest
event that was seen there comes from an older state.
"""

from __future__ import annotations

import json

from gateway.central.client.answers import CentralFailed
from gateway.central.client.client import CentralClient
from gateway.central.client.list_proof import read_listing
from gateway.central.client.not_found import NOT_FOUND, doubt
from gateway.central.client.values import whole_of
from gateway.central.push.requests import answered_record
from gateway.domain.errors import CentralRefused
from gateway.domain.writes import JsonObject, alike
from gateway.store.cards.cards import Cards

_NOTE = "newest_event_of_central"
_TOLD_BY = ("id", "device_id", "type", "category", "subcategory", "date_at")


class EventLog:
    """Central's log of events. If the gateway's account may not read it, the log never counts as older."""

    def __init__(self, *, client: CentralClient, notes: Cards) -> None:
        self._client = client
        self._notes = notes

    async def note_newest(self) -> None:
        """Store the marks of the newest event. Raises CentralUnavailable, StoreError."""
        newest = await self._newest()
        if newest is None:
            return
        mark = json.dumps({name: newest[name] for name in _TOLD_BY if name in newest}, sort_keys=True)
        if mark != await self._notes.remembered(_NOTE):
            await self._notes.remember(_NOTE, mark)

    async def is_older(self) -> bool:
        """Return whether the log lacks the event that `note_newest` stored. Raises CentralUnavailable, StoreError."""
        noted = await self._notes.remembered(_NOTE)
        newest = await self._newest() if noted else None
        if not noted or newest is None:
            return False
        mark: JsonObject = json.loads(noted)
        if (whole_of(newest["id"]) or 0) <= (whole_of(mark["id"]) or 0):
            return not _is_same(mark, newest)
        try:
            event = answered_record(await self._client.call("POST", "/v1/event", {"id": mark["id"]}), ("event",))
        except CentralFailed:
            return False
        except CentralRefused as error:
            if (doubtful := await doubt(self._client, error)) is not None:
                raise doubtful from error
            return error.status == NOT_FOUND
        return event is not None and not _is_same(mark, event)

    async def _newest(self) -> JsonObject | None:
        asked: JsonObject = {"page": 1, "page_limit": 1, "cursor_id": 0}
        try:
            listing = read_listing(await self._client.call("POST", "/v1/event/list", asked), "events")
        except (CentralRefused, CentralFailed):
            return None
        return None if listing is None else next((listing.records[one] for one in sorted(listing.records)[-1:]), None)


def _is_same(mark: JsonObject, event: JsonObject) -> bool:
    return all(alike(value, event.get(name)) for name, value in mark.items())
