"""What lanes know again after a restart: orders, stops, and who was let in last. All live in events on disk."""

from __future__ import annotations

import json

from gateway.domain.events import EventKind
from gateway.domain.grants import card_id_of
from gateway.lanes.orders import Order, OrderKind
from gateway.store.events import Events

_GRANT_COUNTS_MICROS = 60_000_000
_ABOUT_GRANTS = (
    int(EventKind.ACCESS_GRANTED),
    int(EventKind.VEHICLE_PASSED),
    int(EventKind.VEHICLE_BACKED_OUT),
    int(EventKind.OPENING_TIMED_OUT),
)
_ABOUT_STOPS = (int(EventKind.STOP_BEGAN), int(EventKind.STOP_ENDED))
_TOLD_BY = (int(EventKind.ORDER_BEGAN), int(EventKind.ORDER_ENDED))


async def last_order(events: Events, *, lane_id: str) -> Order | None:
    """The order that a person gave for this lane and nobody has ended, or None.

    What the schedule wanted is not remembered: it says so again. Raises StoreError.
    """
    newest = await events.newest(types=_TOLD_BY, lane_id=lane_id)
    if newest is None or newest.type != EventKind.ORDER_BEGAN:
        return None
    told = json.loads(newest.data)
    by, kind = str(told.get("by", "")), str(told.get("order", ""))
    if not by.startswith("user:") or kind not in set(OrderKind):
        return None
    return Order(kind=OrderKind(kind), by=by, reason=str(told.get("reason", "")))


async def last_stop(events: Events, *, lane_id: str) -> tuple[str, bool] | None:
    """Who stopped this lane's gate, and whether that was during a fire; None when nobody did, or it is over.

    Raises StoreError.
    """
    newest = await events.newest(types=_ABOUT_STOPS, lane_id=lane_id)
    if newest is None or newest.type != EventKind.STOP_BEGAN:
        return None
    told = json.loads(newest.data)
    return str(told.get("by", "")) or "somebody", bool(told.get("fire"))


async def last_grant(events: Events, *, lane_id: str, now: int) -> tuple[int | None, str, float] | None:
    """The card and reading that were let in last and not seen to pass, and for how many seconds that still counts.

    None when there is none of the last minute, by the wall clock (`now`: micros). Raises StoreError.
    """
    newest = await events.newest(types=_ABOUT_GRANTS, lane_id=lane_id)
    if newest is None or newest.type != EventKind.ACCESS_GRANTED:
        return None
    left = newest.date_at + _GRANT_COUNTS_MICROS - now
    if not 0 < left <= _GRANT_COUNTS_MICROS:
        return None
    told = json.loads(newest.data)
    card_id, grant, credential = told.get("card_id"), told.get("grant"), str(told.get("credential", ""))
    known = card_id if isinstance(card_id, int) else None
    return card_id_of(known, grant if isinstance(grant, int) else None, credential), credential, left / 1_000_000
