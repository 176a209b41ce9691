"""Events of the site, newest first: rules, models and handlers."""

from __future__ import annotations

from typing import Annotated

from aiohttp import web
from pydantic import Field

from gateway.domain.errors import NotFoundError
from gateway.domain.events import RecordedEvent
from gateway.runtime.clock import iso_utc
from gateway.store import EventFilter
from gateway.texts import text
from gateway.web.answers import EventAnswer, EventsAnswer
from gateway.web.families import Family, operation
from gateway.web.http.bodies import ById, Cursored, Id, Text
from gateway.web.http.dates import asked_period
from gateway.web.http.errors import in_parts, joined_parts, success
from gateway.web.operation import VIEW_EVENTS
from gateway.web.operations.records import Record

_Ids = Annotated[tuple[Id, ...], Field(max_length=1000, fail_fast=True)]


class EventListBody(Cursored):
    """A filter of events. If both `types` and `event_types` are sent, an event must pass both."""

    device_ids: _Ids = ()
    types: _Ids = ()
    event_types: _Ids = ()
    start_date: Text = ""
    end_date: Text = ""


_OF_NO_EVENT = 2**62


class EventsFamily(Family):
    """The handlers of `/v1/event`."""

    @operation(
        "POST",
        "/v1/event/list",
        VIEW_EVENTS,
        "events",
        purpose="List events, newest first",
        answer=EventsAnswer,
        reads=True,
    )
    async def _list(self, wanted: EventListBody, request: web.Request) -> web.StreamResponse:
        page = await self.context.store.events.json_page(
            self._filter(wanted), before=wanted.cursor_id, offset=wanted.offset, limit=wanted.limit
        )
        following = page.next_cursor or page.last
        more: dict[str, object] = {} if following is None else {"next_cursor": following}
        if not page.complete:
            more["complete"] = False
        return await in_parts(request, joined_parts("events", page.events, count=page.count, **more))

    @operation("POST", "/v1/event", VIEW_EVENTS, "event", purpose="One event by its id", answer=EventAnswer, reads=True)
    async def _get(self, wanted: ById) -> web.StreamResponse:
        event = await self.context.store.events.get(wanted.id)
        if event is None:
            raise NotFoundError(text("refused.event_unknown", event=str(wanted.id)))
        return success(event=event_record(event))

    def _filter(self, wanted: EventListBody) -> EventFilter:
        start, end = asked_period(wanted.start_date, wanted.end_date, self.context.zone)
        return EventFilter(
            device_ids=wanted.device_ids,
            types=_types(wanted),
            search=wanted.search,
            date_from=start,
            date_until=end,
        )


def _types(wanted: EventListBody) -> tuple[int, ...]:
    """Return the types that pass both filters; if none does, a type that no event has."""
    if not wanted.types or not wanted.event_types:
        return wanted.types or wanted.event_types
    return tuple(sorted(set(wanted.types) & set(wanted.event_types))) or (_OF_NO_EVENT,)


def event_record(event: RecordedEvent) -> Record:
    """Return an event with the fields of `EventRecord`, but as a plain dictionary: lists hold very many of them."""
    record: Record = {
        "id": event.id,
        "device_id": event.device_id,
        "type": event.type,
        "category": event.category,
        "subcategory": event.subcategory,
        "name": event.name,
        "description": event.description,
        "date_at": iso_utc(event.date_at),
        "data": event.data,
        "lane_id": event.lane_id,
        "clock_trusted": event.clock_trusted,
        "late": event.recorded_at is not None,
    }
    if event.recorded_at is not None:
        record["recorded_at"] = iso_utc(event.recorded_at)
    return record
