"""Orders, stops and grants that outlast a restart, read from the events on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping

from gateway.domain.events import EventKind
from gateway.domain.grants import card_id_of
from gateway.domain.presence import card_holder
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.state.orders import Order, OrderKind
from gateway.store.events.events import Events

_GRANT_COUNTS_MICROS = 60_000_000
_LOOKED_AT = 64
_AMONG = 2_000  # of all lanes: no site grants more in a minute
_ABOUT_GRANTS = (
    int(EventKind.ACCESS_GRANTED),
    int(EventKind.VEHICLE_PASSED),
    int(EventKind.VEHICLE_BACKED_OUT),
    int(EventKind.OPENING_TIMED_OUT),
)
_ABOUT_STOPS = (int(EventKind.STOP_BEGAN), int(EventKind.STOP_ENDED))
_ABOUT_ORDERS = (int(EventKind.ORDER_BEGAN), int(EventKind.ORDER_ENDED))


async def last_order(events: Events, *, lane_id: str) -> Order | None:
    """Return the order that a person gave for this lane and nobody has ended, or None.

    Orders of the schedule are not restored: the schedule gives them again. Raises StoreError.
    """
    newest = await events.newest(types=_ABOUT_ORDERS, lane_id=lane_id)
    if newest is None or newest.type != EventKind.ORDER_BEGAN:
        return None
    data = json.loads(newest.data)
    by, kind = str(data.get("by", "")), str(data.get("order", ""))
    if not by.startswith("user:") or kind not in set(OrderKind):
        return None
    return Order(kind=OrderKind(kind), by=by, reason=str(data.get("reason", "")))


async def last_stop(events: Events, *, lane_id: str) -> m.StopRemembered | None:
    """Return the stop that holds this lane's gate; None when nobody stopped it, or it is over. Raises StoreError."""
    newest = await events.newest(types=_ABOUT_STOPS, lane_id=lane_id)
    if newest is None or newest.type != EventKind.STOP_BEGAN:
        return None
    data = json.loads(newest.data)
    return m.StopRemembered(by=str(data.get("by", "")) or "somebody", during_fire=bool(data.get("fire")))


async def last_grants(events: Events, *, lane_id: str, now: m.Now) -> tuple[m.GrantRemembered, ...]:
    """Return the vehicles that were let in and not seen to pass, the oldest first.

    A grant counts for a minute by the wall clock. Raises StoreError.
    """
    grants: list[m.GrantRemembered] = []
    for event in await events.lately(types=_ABOUT_GRANTS, lane_id=lane_id, limit=_LOOKED_AT, among=_AMONG):
        data = json.loads(event.data)
        credential = str(data.get("credential", ""))
        if event.type == EventKind.ACCESS_GRANTED:
            left = event.date_at + _GRANT_COUNTS_MICROS - now.stamp.micros
            grants.append(_grant_of(data, credential, until=now.at + left / 1_000_000))
        elif event.type == EventKind.OPENING_TIMED_OUT:
            grants.clear()
        else:
            ended = next((one for one in grants if one.credential == credential), None)
            if ended is not None:
                grants.remove(ended)
    latest = now.at + _GRANT_COUNTS_MICROS / 1_000_000  # a clock that was set back must not extend a grant
    return tuple(grant for grant in grants if now.at < grant.until <= latest)


def _grant_of(data: Mapping[str, object], credential: str, *, until: float) -> m.GrantRemembered:
    card_id, number, holder = data.get("card_id"), data.get("grant"), data.get("holder")
    known = card_id_of(
        card_id if isinstance(card_id, int) else None, number if isinstance(number, int) else None, credential
    )
    if not isinstance(holder, str):  # recorded before events had this field
        holder = "" if known is None else card_holder(known)
    return m.GrantRemembered(known, credential, until, holder, opens=data.get("opens") is True)
