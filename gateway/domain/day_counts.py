"""Counts of each day, for trends over weeks: cycles of gates, vehicles that a loop may have missed, errors on lines.

Pure. Most are counted from events. Requests on lines are not events; the lines' own counters are used for them.
Readers that have read nothing for longer than they usually do are found by their readings of each day.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from enum import StrEnum
from types import MappingProxyType

from drivers.bus.line_quality import Failure, LineQuality
from gateway.domain.events import EventKind, RecordedEvent
from gateway.domain.wall_time import WallMicros

_MICROS = 1_000_000

_LEAST_DAYS = 10
"""A reader that has read something on fewer days is not known well enough."""
_EXPECTED = 10.0
"""So many readings must be missing: a reader that is rarely used has days without one."""


class Measure(StrEnum):
    """Something that is counted for each part of the site on each day."""

    CYCLES = "cycles"
    MISSED_VEHICLES = "missed_vehicles"
    UNSTEADY_INPUTS = "unsteady_inputs"
    READINGS = "readings"
    LOSSES = "losses"
    FOOTAGE_GAPS = "footage_gaps"
    FOOTAGE_SECONDS = "footage_seconds"
    REQUESTS = "requests"
    FAILED_SILENT = "failed_silent"
    FAILED_GARBLED = "failed_garbled"
    FAILED_ECHOED = "failed_echoed"
    FAILED_LATE = "failed_late"


FAILED: Mapping[Failure, Measure] = MappingProxyType(
    {
        Failure.SILENT: Measure.FAILED_SILENT,
        Failure.GARBLED: Measure.FAILED_GARBLED,
        Failure.ECHOED: Measure.FAILED_ECHOED,
        Failure.LATE: Measure.FAILED_LATE,
    }
)

_OF_LANES = MappingProxyType(
    {
        EventKind.GATE_OPENED: Measure.CYCLES,
        EventKind.INPUT_STUCK: Measure.UNSTEADY_INPUTS,
        EventKind.INPUT_CHATTERS: Measure.UNSTEADY_INPUTS,
    }
)
_MAY_BE_MISSED = MappingProxyType(
    {
        EventKind.UNAUTHORISED_PASSAGE: ("on_arming_loop", False),
        EventKind.VEHICLE_BACKED_OUT: ("let_in", True),
    }
)
"""Vehicles that a loop may have missed: the value in an event's data that says so.

An arming loop misses what passes unseen by it, a closing loop what is let in and not seen to pass. A driver who was
refused and leaves was missed by no loop.
"""
_READINGS = (EventKind.ACCESS_GRANTED, EventKind.ACCESS_DENIED, EventKind.CARD_IGNORED)
COUNTED_EVENTS = (*_OF_LANES, *_MAY_BE_MISSED, *_READINGS, EventKind.DEVICE_LOST, EventKind.FOOTAGE_GAP)


@dataclass(frozen=True, slots=True)
class DayCount:
    """The amount of one measure for one part of the site (lane, device or unit) on one day (YYYY-MM-DD)."""

    day: str
    measure: Measure
    part: str
    amount: int


def day_of(moment: WallMicros, zone: tzinfo) -> str:
    """Return the date of a moment in this time zone, as YYYY-MM-DD."""
    return datetime.fromtimestamp(moment / _MICROS, UTC).astimezone(zone).date().isoformat()


def counted(events: Iterable[RecordedEvent], zone: tzinfo) -> tuple[DayCount, ...]:
    """Count the events of `COUNTED_EVENTS`; ignore others. `zone` decides to which day an event belongs."""
    amounts: Counter[tuple[str, Measure, str]] = Counter()
    for event in events:
        day = day_of(event.date_at, zone)
        for measure, part, amount in _counts(event):
            amounts[day, measure, part] += amount
    return tuple(DayCount(*key, amount) for key, amount in amounts.items())


def _counts(event: RecordedEvent) -> Iterator[tuple[Measure, str, int]]:
    if event.type == EventKind.DEVICE_LOST:
        yield Measure.LOSSES, str(event.device_id), 1
    elif event.type == EventKind.FOOTAGE_GAP:
        seconds = json.loads(event.data).get("seconds", 0)
        if seconds > 0:  # a negative gap is an overlap of footage
            yield Measure.FOOTAGE_GAPS, str(event.device_id), 1
            yield Measure.FOOTAGE_SECONDS, str(event.device_id), max(1, round(seconds))
    elif event.type in _READINGS:
        reader = event.device_id if event.type == EventKind.CARD_IGNORED else json.loads(event.data).get("reader", 0)
        if reader:
            yield Measure.READINGS, str(reader), 1
    elif event.type in _MAY_BE_MISSED:
        name, missed = _MAY_BE_MISSED[EventKind(event.type)]
        if json.loads(event.data).get(name) is missed:
            yield Measure.MISSED_VEHICLES, event.lane_id, 1
    elif event.type in _OF_LANES:
        yield _OF_LANES[EventKind(event.type)], event.lane_id, 1


def unit_part(line: str, unit: int) -> str:
    """Return the `part` by which a unit of a line is counted."""
    return f"{line}/{unit}"


class LineTally:
    """The step from the lines' counters, which run from a line's start, to amounts since the last time."""

    def __init__(self) -> None:
        self._known: dict[tuple[Measure, str], int] = {}

    def since(self, lines: Iterable[LineQuality], *, day: str) -> tuple[DayCount, ...]:
        """Return what the counters gained since the last `keep`, as amounts of this day."""
        return tuple(
            DayCount(day, measure, part, amount)
            for (measure, part), total in _totals(lines).items()
            if (amount := total - self._before((measure, part), total)) > 0
        )

    def keep(self, lines: Iterable[LineQuality]) -> None:
        """Note that the amounts of these counters are on disk."""
        self._known = _totals(lines)

    def _before(self, key: tuple[Measure, str], total: int) -> int:
        known = self._known.get(key, 0)
        return known if known <= total else 0  # a line that was opened again has restarted its counters


def _totals(lines: Iterable[LineQuality]) -> dict[tuple[Measure, str], int]:
    totals: dict[tuple[Measure, str], int] = {}
    for line in lines:
        for unit in line.units:
            part = unit_part(line.name, unit.unit)
            totals[Measure.REQUESTS, part] = sum(unit.reply_times) + sum(unit.failed.values())
            totals |= {(FAILED[failure], part): count for failure, count in unit.failed.items()}
    return totals


@dataclass(frozen=True, slots=True)
class SilentReader:
    """A reader that has read nothing for `days` whole days, though it usually reads `a_day`."""

    device_id: int
    days: int
    a_day: float


def silent_readers(counts: Iterable[DayCount], *, readers: Collection[int], today: str) -> Iterator[SilentReader]:
    """Yield the silent ones of these readers. Days on which nothing was read at the whole site do not count.

    A site with a single reader has no other to tell a closed site from a silent reader: there all days count, and
    weekends are among its usual pauses.
    """
    amounts = _amounts(counts, today)
    for reader in readers:
        own = amounts.get(reader, {})
        if len(own) >= _LEAST_DAYS:
            others = {day for number, days in amounts.items() if number != reader for day in days}
            yield from _judged(reader, own, others or _all_days(min(own), date.fromisoformat(today)))


def regular_readers(counts: Collection[DayCount], *, readers: Collection[int], today: str) -> frozenset[int]:
    """Return those of these readers that are read regularly: known well enough, and not silent."""
    amounts = _amounts(counts, today)
    known = {reader for reader in readers if len(amounts[reader]) >= _LEAST_DAYS}
    return frozenset(known - {one.device_id for one in silent_readers(counts, readers=known, today=today)})


def _amounts(counts: Iterable[DayCount], today: str) -> defaultdict[int, dict[date, int]]:
    """Return the readings of each reader on each day before `today`, days without any left out."""
    amounts: defaultdict[int, dict[date, int]] = defaultdict(dict)
    for one in counts:
        if one.measure is Measure.READINGS and one.day < today and one.amount:
            amounts[int(one.part)][date.fromisoformat(one.day)] = one.amount
    return amounts


def _judged(reader: int, own: dict[date, int], open_days: Collection[date]) -> Iterator[SilentReader]:
    known = sorted(day for day in {*open_days, *own} if day >= min(own))
    pauses = [0]
    for day in known:
        pauses = [*pauses, 0] if day in own else [*pauses[:-1], pauses[-1] + 1]
    *usual, now = pauses
    a_day = sum(own.values()) / (len(known) - now)
    if now > 2 * max(usual) and now * a_day >= _EXPECTED:
        yield SilentReader(reader, now, a_day)


def _all_days(first: date, until: date) -> set[date]:
    return {first + timedelta(days=number) for number in range((until - first).days)}
