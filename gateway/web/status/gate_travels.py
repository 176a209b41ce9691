"""The times that each gate took to open and to close in its last travels, for the page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence

from gateway.domain.events import EventKind, RecordedEvent
from gateway.domain.travels import TRAVEL_EVENTS, TRAVEL_SECONDS, Band, most_travels, normal_band, seconds_of, why_slow
from gateway.domain.wall_time import WallMicros
from gateway.web.answers import Answer, AnswerPart
from gateway.web.families import Family, operation
from gateway.web.operation import VIEW_DEVICES, VIEW_EVENTS


class TravelTime(AnswerPart):
    """A travel of a gate: its end, and how long it took."""

    at: WallMicros
    seconds: float


class Travels(AnswerPart):
    """The last travels of a gate one way, their normal range, and why they are slow ("" if they are not)."""

    travels: tuple[TravelTime, ...]
    band: Band | None
    slow: str


class GateTravels(AnswerPart):
    """The last travels of a lane's gate."""

    opening: Travels
    closing: Travels


class TravelsAnswer(Answer):
    """The last travels of each gate, by lane."""

    travels: dict[str, GateTravels]


class StatusTravels(Family):
    """The handler of `/status/gate/travels`."""

    @operation("GET", "/status/gate/travels", VIEW_DEVICES & VIEW_EVENTS, "travels")
    async def _travels(self) -> TravelsAnswer:
        lanes = [lane.lane_id for lane in self.context.lanes.lanes()]
        events = await self.context.store.events.lately(types=TRAVEL_EVENTS, limit=most_travels(len(lanes)))
        return TravelsAnswer(travels=await asyncio.to_thread(_by_lane, lanes, events))


def _by_lane(lanes: Iterable[str], events: Sequence[RecordedEvent]) -> dict[str, GateTravels]:
    told: dict[str, GateTravels] = {}
    for lane_id in lanes:
        own = [event for event in events if event.lane_id == lane_id]
        opening, closing = _told(EventKind.GATE_OPENED, own), _told(EventKind.GATE_CLOSED, own)
        told[lane_id] = GateTravels(opening=opening, closing=closing)
    return told


def _told(kind: EventKind, events: Iterable[RecordedEvent]) -> Travels:
    timed = [event for event in events if event.type == kind and f'"{TRAVEL_SECONDS}"' in event.data]
    seconds = seconds_of(kind, timed)
    travels = (TravelTime(at=event.date_at, seconds=json.loads(event.data)[TRAVEL_SECONDS]) for event in timed)
    return Travels(travels=tuple(travels), band=normal_band(seconds), slow=str(why_slow(seconds) or ""))
