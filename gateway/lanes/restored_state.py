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
_ABOUT_GRANTS = (
    int(EventKind.ACCESS_GRANTED),
    int(EventKind.VEHICLE_PASSED),
    int(EventKind.VEHICLE_BACKED_OUT),
    int(EventKind.OPENING_TIMED_OUT),
)
_ABOUT_STOPS = (int(EventKind.STOP_BEGAN), int(EventKind.STOP_ENDED))
_TOLD_BY = (int(EventKind.ORDER_BEGAN), int(EventKind.ORDER_ENDED))


async def last_order(events: Events, *, lane_id: str) -> Order | None:
    """Return the order that a person gave for this lane and nobody has ended, or None.

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


async def last_stop(events: Events, *, lane_id: str) -> m.StopRemembered | None:
    """Return the stop that holds this lane's gate; None when nobody stopped it, or it is over. Raises StoreError."""
    newest = await events.newest(types=_ABOUT_STOPS, lane_id=lane_id)
    if newest is None or newest.type != EventKind.STOP_BEGAN:
        return None
    told = json.loads(newest.data)
    return m.StopRemembered(by=str(told.get("by", "")) or "somebody", during_fire=bool(told.get("fire")))


async def last_grants(events: Events, *, lane_id: str, now: m.Now) -> tuple[m.GrantRemembered, ...]:
    """Return who was let in and not seen to pass, the first of them first.

    It counts for a minute by the wall clock. Raises StoreError.
    """
    grants: list[m.GrantRemembered] = []
    for event in await events.lately(types=_ABOUT_GRANTS, lane_id=lane_id, limit=_LOOKED_AT):
        told = json.loads(event.data)
        credential = str(told.get("credential", ""))
        if event.type == EventKind.ACCESS_GRANTED:
            left = event.date_at + _GRANT_COUNTS_MICROS - now.stamp.micros
            grants.append(_grant_of(told, credential, until=now.at + left / 1_000_000))
        elif event.type == EventKind.OPENING_TIMED_OUT:
            grants.clear()
        else:
            ended = next((one for one in grants if one.credential == credential), None)
            if ended is not None:
                grants.remove(ended)
    latest = now.at + _GRANT_COUNTS_MICROS / 1_000_000  # a clock that went back makes no grant longer
    return tuple(grant for grant in grants if now.at < grant.until <= latest)


def _grant_of(told: Mapping[str, object], credential: str, *, until: float) -> m.GrantRemembered:
    card_id, number, holder = told.get("card_id"), told.get("grant"), told.get("holder")
    known = card_id_of(
        card_id if isinstance(card_id, int) else None, number if isinstance(number, int) else None, credential
    )
    if not isinstance(holder, str):  # recorded before events told of it
        holder = "" if known is None else card_holder(known)
    return m.GrantRemembered(known, credential, until, holder, opens=told.get("opens") is True)
