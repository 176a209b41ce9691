"""Events of the site."""

from __future__ import annotations

from gateway.web.catalogue.operation import Operation, needs
from gateway.web.http.bodies import ById
from gateway.web.shapes.events import EventAnswer, EventListBody, EventsAnswer

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

OPERATIONS: tuple[Operation, ...] = (
    EVENT_LIST,
    EVENT,
)
