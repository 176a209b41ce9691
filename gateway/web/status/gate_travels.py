"""The times that each gate took to open and to close in its last travels, for the page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from aiohttp import web

from gateway.domain.events import EventKind, RecordedEvent
from gateway.domain.travels import TRAVEL_EVENTS, TRAVEL_SECONDS, most_travels, normal_band, seconds_of, why_slow
from gateway.lanes import Lanes
from gateway.runtime.clock import iso_utc
from gateway.store.events.events import Events
from gateway.web.families import Family, operation
from gateway.web.http.envelope import success
from gateway.web.operation import VIEW_DEVICES, VIEW_EVENTS


@dataclass(frozen=True, kw_only=True)
class StatusTravels(Family):
    """The handler of `/status/gate/travels`."""

    lanes: Lanes
    events: Events

    @operation("GET", "/status/gate/travels", VIEW_DEVICES & VIEW_EVENTS, "travels")
    async def _travels(self) -> web.StreamResponse:
        lanes = [lane.lane_id for lane in self.lanes.lanes()]
        events = await self.events.lately(types=TRAVEL_EVENTS, limit=most_travels(len(lanes)))
        return success(travels=await asyncio.to_thread(_by_lane, lanes, events))


def _by_lane(lanes: Iterable[str], events: Sequence[RecordedEvent]) -> dict[str, object]:
    told: dict[str, object] = {}
    for lane_id in lanes:
        own = [event for event in events if event.lane_id == lane_id]
        told[lane_id] = {"opening": _told(EventKind.GATE_OPENED, own), "closing": _told(EventKind.GATE_CLOSED, own)}
    return told


def _told(kind: EventKind, events: Iterable[RecordedEvent]) -> dict[str, object]:
    timed = [event for event in events if event.type == kind and f'"{TRAVEL_SECONDS}"' in event.data]
    seconds = seconds_of(kind, timed)
    band = normal_band(seconds)
    return {
        "travels": [
            {"at": iso_utc(event.date_at), "seconds": json.loads(event.data)[TRAVEL_SECONDS]} for event in timed
        ],
        "band": None if band is None else asdict(band),
        "slow": why_slow(seconds),
    }
