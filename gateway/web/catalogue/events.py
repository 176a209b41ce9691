"""Events of the site."""

from __future__ import annotations

from gateway.web.catalogue.operation import Operation, needs

EVENT_LIST = Operation("POST", "/v1/event/list", needs("can_view_events"), "events")
EVENT = Operation("POST", "/v1/event", needs("can_view_events"), "event")

OPERATIONS: tuple[Operation, ...] = (
    EVENT_LIST,
    EVENT,
)
