"""What lanes know again after a restart: orders, stops, and who was let in last. All live in events on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from gateway.domain.events import EventKind
from gateway.domain.grants import card_id_of
from gateway.domain.presence import card_holder
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


@dataclass(frozen=True, slots=True)
class RecordedGrant:
    """A vehicle that was let in, as its event tells: its card, its reading, and what its passage does to presence."""

    card_id: int | None
    credential: str
    holder: str
    opens: bool


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


async def last_grants(events: Events, *, lane_id: str, now: int) -> tuple[tuple[RecordedGrant, float], ...]:
    """Who was let in and not seen to pass, the first of them first, and for how many seconds that still counts.

    It counts for a minute by the wall clock (`now`: micros). Raises StoreError.
    """
    open_grants: list[tuple[RecordedGrant, int]] = []
    for event in await events.lately(types=_ABOUT_GRANTS, lane_id=lane_id, limit=_LOOKED_AT):
        told = json.loads(event.data)
        credential = str(told.get("credential", ""))
        if event.type == EventKind.ACCESS_GRANTED:
            open_grants.append((_grant_of(told, credential), event.date_at))
        elif event.type == EventKind.OPENING_TIMED_OUT:
            open_grants.clear()
        else:
            ended = next((one for one in open_grants if one[0].credential == credential), None)
            if ended is not None:
                open_grants.remove(ended)
    left = ((grant, given_at + _GRANT_COUNTS_MICROS - now) for grant, given_at in open_grants)
    return tuple((grant, micros / 1_000_000) for grant, micros in left if 0 < micros <= _GRANT_COUNTS_MICROS)


def _grant_of(told: Mapping[str, object], credential: str) -> RecordedGrant:
    card_id, number, holder = told.get("card_id"), told.get("grant"), told.get("holder")
    known = card_id_of(
        card_id if isinstance(card_id, int) else None, number if isinstance(number, int) else None, credential
    )
    if not isinstance(holder, str):  # recorded before events told of it
        holder = "" if known is None else card_holder(known)
    return RecordedGrant(known, credential, holder, opens=told.get("opens") is True)
