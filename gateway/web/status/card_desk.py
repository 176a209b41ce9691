"""The page's further views of cards: unknown reads, changes that wait for central, and changes on both sides."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aiohttp import web

from gateway.domain.events import EventKind, RecordedEvent
from gateway.runtime.clock import Clock, iso_utc
from gateway.store import EventFilter
from gateway.store.events.events import Events
from gateway.store.outbox.refused import RefusedRows
from gateway.web.families import Family, operation
from gateway.web.http.envelope import success
from gateway.web.operation import VIEW_CARDS, VIEW_EVENTS
from gateway.web.operations.cards.handlers import KIND
from gateway.web.operations.records import Record
from gateway.web.status.outbox import row_record
from gateway.web.status.snapshot import read_of

_DAY = 86_400_000_000
_PAGE = 500
_MOST_EVENTS = 5_000
_MOST_SHOWN = 50


@dataclass(frozen=True, kw_only=True)
class StatusCards(Family):
    """The handlers of `/status/card/unknown` and `/status/card/sync`."""

    events: Events
    refused: RefusedRows
    clock: Clock

    @operation("GET", "/status/card/unknown", VIEW_CARDS & VIEW_EVENTS, "reads")
    async def _unknown(self) -> web.StreamResponse:
        """Answer with the unknown cards and plates of the last 24 hours, each once, newest first."""
        wanted = EventFilter(types=(EventKind.ACCESS_DENIED,), date_from=self.clock.wall().micros - _DAY)
        found: list[RecordedEvent] = []
        before: int | None = 0
        while before is not None and len(found) < _MOST_EVENTS:
            page = await self.events.page(wanted, before=before, limit=_PAGE)
            found += page.events
            before = page.next_cursor
        return success(reads=list(_unknown_reads(found))[:_MOST_SHOWN])

    @operation("GET", "/status/card/sync", VIEW_CARDS, "sync")
    async def _sync(self) -> web.StreamResponse:
        """Answer with the changes of cards that wait for central or were refused, and with the latest conflicts.

        A conflict is a card that was changed on both sides; the event's text says which side counts.
        """
        waiting = await self.refused.page(kind=KIND, limit=_MOST_SHOWN, refused=False)
        both = await self.events.page(EventFilter(types=(EventKind.CHANGED_ON_BOTH_SIDES,)), limit=_PAGE)
        conflicts: list[Record] = []
        for event in both.events:
            data = json.loads(event.data)
            if data.get("kind") == KIND:
                conflicts.append(
                    {
                        "event_id": event.id,
                        "card_id": data.get("record_id"),
                        "date_at": iso_utc(event.date_at),
                        "text": event.description,
                    }
                )
        return success(sync={"waiting": [row_record(row) for row in waiting], "conflicts": conflicts[:_MOST_SHOWN]})


def _unknown_reads(events: Sequence[RecordedEvent]) -> Iterator[Record]:
    """Yield each unknown reading once, with its newest event and the number of its events."""
    times: dict[str, list[RecordedEvent]] = {}
    for event in events:
        read = read_of(event)
        if read is not None and read.is_unknown:
            times.setdefault(read.credential, []).append(event)
    for credential, same in times.items():
        read = read_of(same[0])
        yield {
            "credential": credential,
            "event_id": same[0].id,
            "lane_id": same[0].lane_id,
            "date_at": iso_utc(same[0].date_at),
            "times": len(same),
            "enrol": dict(read.enrol) if read else {},
        }
