"""Standing orders over a restart: an order lives in the events that told of it, which are on disk."""

from __future__ import annotations

import json

from gateway.domain.events import EventKind
from gateway.lanes.orders import Order, OrderKind
from gateway.store import EventFilter
from gateway.store.events import Events

_TOLD_BY = (int(EventKind.ORDER_BEGAN), int(EventKind.ORDER_ENDED))


async def last_order(events: Events, *, lane_id: str) -> Order | None:
    """The order that a person gave for this lane and nobody has ended, or None.

    What the schedule wanted is not remembered: it says so again. Raises StoreError.
    """
    page = await events.page(EventFilter(types=_TOLD_BY, lane_id=lane_id), limit=1)
    if not page.events or page.events[0].type != EventKind.ORDER_BEGAN:
        return None
    told = json.loads(page.events[0].data)
    by, kind = str(told.get("by", "")), str(told.get("order", ""))
    if not by.startswith("user:") or kind not in set(OrderKind):
        return None
    return Order(kind=OrderKind(kind), by=by, reason=str(told.get("reason", "")))
