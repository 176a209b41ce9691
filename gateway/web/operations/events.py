"""Events of the site, newest first: rules, models and handlers."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from gateway.domain.errors import NotFoundError
from gateway.domain.events import Category, EventKind, RecordedEvent, Severity
from gateway.runtime.clock import iso_utc
from gateway.store import EventFilter, EventPage
from gateway.store.events.events import Events
from gateway.web.auth.admission import Route
from gateway.web.auth.callers import Caller
from gateway.web.http.bodies import BodyCache, ById, Cursored, Id, Text, read_body
from gateway.web.http.dates import asked_period
from gateway.web.http.envelope import in_parts, joined_parts, success
from gateway.web.operation import Operation, needs
from gateway.web.operations.answers import Answer, CursorListed
from gateway.web.operations.records import Record

_Ids = Annotated[tuple[Id, ...], Field(max_length=1000, fail_fast=True)]


class EventListBody(Cursored):
    """A filter of events. If both `types` and `event_types` are sent, an event must pass both."""

    device_ids: _Ids = ()
    types: _Ids = ()
    event_types: _Ids = ()
    start_date: Text = ""
    end_date: Text = ""


class EventRecord(BaseModel):
    """An event. `data` is JSON text, as the specification has it; the fields after it are the gateway's own.

    A `late` event was recorded more than a minute after its `date_at`, at `recorded_at`: after an outage of the disk,
    once the clock was set, or because it was reported later. It must not be taken for the present state.
    """

    model_config = ConfigDict(frozen=True)

    id: int
    device_id: int
    type: EventKind
    category: Category
    subcategory: Severity
    name: str
    description: str
    date_at: str
    data: str
    lane_id: str
    clock_trusted: bool
    late: bool
    recorded_at: str | None = None


class EventAnswer(Answer):
    """One event."""

    event: EventRecord


class EventsAnswer(CursorListed):
    """Events, newest first.

    A search among very many events stops after a while. Then `complete` is false, `count` counts only matches among the
    events searched so far, and `next_cursor` continues the search, also when nothing was found yet.
    """

    events: tuple[EventRecord, ...]
    complete: Literal[False] | None = None


EVENT_LIST = Operation(
    "POST",
    "/v1/event/list",
    needs("can_view_events"),
    "events",
    purpose="List events, newest first",
    body=EventListBody,
    answer=EventsAnswer,
    reads=True,
)
EVENT = Operation(
    "POST",
    "/v1/event",
    needs("can_view_events"),
    "event",
    purpose="One event by its id",
    body=ById,
    answer=EventAnswer,
    reads=True,
)


_MOST_KEPT = 16
_OF_NO_EVENT = 2**62
_LARGEST_KEPT = 1024 * 1024

Page = EventPage[tuple[bytes, ...]]


@dataclass(frozen=True, slots=True)
class _PageRequest:
    """A page of the list."""

    which: EventFilter
    cursor: int
    offset: int
    limit: int


class EventsFamily:
    """The handlers of `/v1/event`. Repeated requests for a page get cached bytes as long as nothing is recorded."""

    def __init__(self, *, events: Events, zone: ZoneInfo) -> None:
        self._events = events
        self._zone = zone
        self._bodies = BodyCache(EventListBody, made=self._page_request)
        self._answered: OrderedDict[int, tuple[Page, tuple[bytes, ...]]] = OrderedDict()

    def routes(self) -> tuple[Route, ...]:
        """Return the operations of this family."""
        return (Route(EVENT_LIST, self._list), Route(EVENT, self._get))

    async def _list(self, request: web.Request, _: Caller) -> web.StreamResponse:
        asked = await self._bodies.read(request)
        page = await self._events.json_page(asked.which, before=asked.cursor, offset=asked.offset, limit=asked.limit)
        return await in_parts(request, self._as_json(page))

    def _as_json(self, page: Page) -> tuple[bytes, ...]:
        """Return the JSON of a page, from a cache: the store returns the same object until something is recorded."""
        answered = self._answered.get(id(page))
        if answered is not None and answered[0] is page:
            return answered[1]
        following = page.next_cursor or page.last
        more: dict[str, object] = {} if following is None else {"next_cursor": following}
        if not page.complete:
            more["complete"] = False
        parts = joined_parts("events", page.events, count=page.count, **more)
        if sum(len(part) for part in parts) <= _LARGEST_KEPT:
            self._answered[id(page)] = page, parts
        if len(self._answered) > _MOST_KEPT:
            self._answered.popitem(last=False)
        return parts

    async def _get(self, request: web.Request, _: Caller) -> web.StreamResponse:
        wanted = await read_body(request, ById)
        event = await self._events.get(wanted.id)
        if event is None:
            raise NotFoundError(f"there is no event {wanted.id}")
        return success(event=event_record(event))

    def _page_request(self, wanted: EventListBody) -> _PageRequest:
        start, end = asked_period(wanted.start_date, wanted.end_date, self._zone)
        which = EventFilter(
            device_ids=wanted.device_ids,
            types=_types(wanted),
            search=wanted.search,
            date_from=start,
            date_until=end,
        )
        return _PageRequest(which, wanted.cursor_id, wanted.offset, wanted.limit)


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
