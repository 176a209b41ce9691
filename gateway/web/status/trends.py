"""Daily counts for each part of the site over the last four weeks, and the last travel times of gates, for the page."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta

from drivers.bus.line_quality import Failure
from gateway.domain.day_counts import FAILED, DayCount, Measure, day_of, unit_part
from gateway.domain.errors import StoreError
from gateway.domain.events import EventKind, RecordedEvent
from gateway.domain.travels import TRAVEL_EVENTS, TRAVEL_SECONDS, Band, most_travels, normal_band, seconds_of, why_slow
from gateway.domain.wall_time import WallMicros
from gateway.problems.found import SiteState
from gateway.web.answers import Answer, AnswerPart
from gateway.web.auth.callers import Caller
from gateway.web.families import Family, operation
from gateway.web.operation import VIEW_DEVICES, VIEW_EVENTS
from gateway.web.status.snapshot import user_state

_DAYS = 28

Amounts = Mapping[tuple[Measure, str], Sequence[int]]


class EventsKept(AnswerPart):
    """The number of stored events, and the date of the oldest."""

    kept: int
    oldest: WallMicros | None


class LaneTrend(AnswerPart):
    """Counts of a lane for each day."""

    id: str
    cycles: Sequence[int]
    missed_vehicles: Sequence[int]
    unsteady_inputs: Sequence[int]


class UnitTrend(AnswerPart):
    """Counts of a unit's requests for each day, the failed ones by kind."""

    line: str
    unit: int
    devices: tuple[str, ...]
    requests: Sequence[int]
    failed: dict[Failure, Sequence[int]]


class DeviceTrend(AnswerPart):
    """Losses of a device on each day."""

    name: str
    losses: Sequence[int]


class CameraTrend(AnswerPart):
    """Gaps of a camera's footage for each day, and their seconds."""

    name: str
    gaps: Sequence[int]
    seconds: Sequence[int]


class Trends(AnswerPart):
    """Counts of each part of the site for each of the last 28 days, today last.

    `since` is the first day for which there are counts, "" for none.
    """

    events: EventsKept
    days: tuple[str, ...]
    since: str
    lanes: tuple[LaneTrend, ...]
    units: tuple[UnitTrend, ...]
    devices: tuple[DeviceTrend, ...]
    cameras: tuple[CameraTrend, ...]


class TrendsAnswer(Answer):
    """The daily counts of the site."""

    trends: Trends


class StatusTrends(Family):
    """The handler of `/status/trends`."""

    @operation("GET", "/status/trends", VIEW_DEVICES & VIEW_EVENTS, "trends")
    async def _trends(self, caller: Caller) -> TrendsAnswer:
        with suppress(StoreError):  # on a disk that refuses, what was counted before is shown
            await self.context.store.day_counts.count_events(self.context.zone)
        today = date.fromisoformat(day_of(self.context.clock.wall().micros, self.context.zone))
        days = [(today - timedelta(days=back)).isoformat() for back in reversed(range(_DAYS))]
        amounts = _by_part(await self.context.store.day_counts.since(days[0]), days)
        site, (kept, oldest) = self.context.site_state(), await self.context.store.events.extent()
        trends = Trends(
            events=EventsKept(kept=kept, oldest=oldest),
            days=tuple(days),
            since=await self.context.store.day_counts.first_day(),
            lanes=tuple(
                LaneTrend(
                    id=lane.lane_id,
                    cycles=amounts[Measure.CYCLES, lane.lane_id],
                    missed_vehicles=amounts[Measure.MISSED_VEHICLES, lane.lane_id],
                    unsteady_inputs=amounts[Measure.UNSTEADY_INPUTS, lane.lane_id],
                )
                for lane in site.lanes
            ),
            units=tuple(_units(site, amounts)),
            devices=tuple(
                DeviceTrend(name=device.name, losses=amounts[Measure.LOSSES, str(device.device_id)])
                for device in site.devices
            ),
            cameras=tuple(
                CameraTrend(
                    name=camera.name,
                    gaps=amounts[Measure.FOOTAGE_GAPS, str(camera.camera_id)],
                    seconds=amounts[Measure.FOOTAGE_SECONDS, str(camera.camera_id)],
                )
                for camera in (site.cameras if user_state(caller).view_cameras else ())
            ),
        )
        return TrendsAnswer(trends=trends)


def _by_part(counts: Sequence[DayCount], days: Sequence[str]) -> Amounts:
    places = {day: place for place, day in enumerate(days)}
    found: defaultdict[tuple[Measure, str], list[int]] = defaultdict(lambda: [0] * len(days))
    for count in counts:
        if (place := places.get(count.day)) is not None:
            found[count.measure, count.part][place] = count.amount
    return found


def _units(site: SiteState, amounts: Amounts) -> Iterator[UnitTrend]:
    names = {device.device_id: device.name for device in site.devices}
    for line in site.lines:
        for unit in line.quality.units:
            part = unit_part(line.name, unit.unit)
            yield UnitTrend(
                line=line.name,
                unit=unit.unit,
                devices=tuple(names[number] for number in line.devices.get(unit.unit, ())),
                requests=amounts[Measure.REQUESTS, part],
                failed={failure: amounts[measure, part] for failure, measure in FAILED.items()},
            )


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
