"""Travel times of gates, from the acknowledged command to the limit, and which are normal for each gate. Pure.

The history of a gate is in its own events: `GATE_OPENED` and `GATE_CLOSED` carry the time of the travel that they end.
To ask which gates have become slower than their own history::

    slow = slow_gates(await store.events.lately(types=TRAVEL_EVENTS, limit=most_travels(len(lanes))))
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from gateway.domain.events import EventKind, RecordedEvent
from gateway.texts import Text, text

TRAVEL_EVENTS = (EventKind.GATE_OPENED, EventKind.GATE_CLOSED)
TRAVEL_SECONDS = "travel_seconds"
"""The name under which such an event's `data` has the travel time in seconds."""

_OF_A_LANE = 500
"""Travels of each kind that are read for each lane: weeks of a quiet lane, days of a busy one."""
_MOST = 5000
_FEWEST = 30
"""Number of travels that a gate needs before its history counts."""
_RECENT = 5
_SLACK_SECONDS = 0.5
"""Polling may see a limit this much later. For a fast gate, a share of its short travel time would be too little."""
_SLOWER = 1.2


@dataclass(frozen=True, slots=True)
class Band:
    """The normal range of a gate's travel times, in seconds: one in twenty is below `low`, one above `high`.

    `middle` is the median.
    """

    low: float
    middle: float
    high: float


def most_travels(lanes: int) -> int:
    """Return how many of the site's travels of each kind are read, for so many lanes.

    The number is limited, because those of a lane that seldom opens may lie among millions of others.
    """
    return min(_MOST, _OF_A_LANE * max(1, lanes))


@dataclass(frozen=True, slots=True)
class SlowGate:
    """A gate that has become slower: its lane, the kind of event that ends such a travel, and why in words."""

    lane_id: str
    kind: EventKind
    why: Text


def slow_gates(events: Sequence[RecordedEvent]) -> Iterator[SlowGate]:
    """Yield the gates that have become slower than their own history, given travels of several lanes, oldest first."""
    for lane_id in dict.fromkeys(event.lane_id for event in events):
        own = [event for event in events if event.lane_id == lane_id]
        for kind in TRAVEL_EVENTS:
            if why := why_slow(seconds_of(kind, own)):
                yield SlowGate(lane_id, kind, why)


def seconds_of(kind: EventKind, events: Iterable[RecordedEvent]) -> tuple[float, ...]:
    """Return the times of the travels that events of this kind ended, in the events' order."""
    found = (json.loads(event.data).get(TRAVEL_SECONDS) for event in events if event.type == kind)
    return tuple(float(value) for value in found if isinstance(value, int | float))


def normal_band(seconds: Sequence[float]) -> Band | None:
    """Return the normal band of these travel times; None for too few of them."""
    if len(seconds) < _FEWEST:
        return None
    ordered = sorted(seconds)
    last = len(ordered) - 1
    return Band(low=ordered[math.floor(0.05 * last)], middle=median(ordered), high=ordered[math.ceil(0.95 * last)])


def why_slow(seconds: Sequence[float]) -> Text | None:
    """Return in words that the last travels, the newest at the end, are slower than those before; None if they are not.

    The median of the last five is compared: one vehicle under the arm, or one late poll, makes no slow gate.
    """
    if len(seconds) <= _RECENT:
        return None
    band = normal_band(seconds[:-_RECENT])
    if band is None:
        return None
    now = median(seconds[-_RECENT:])
    if now <= max(band.high, band.middle * _SLOWER, band.middle + _SLACK_SECONDS):
        return None
    took, normal, high = (round(value, 1) for value in (now, band.middle, band.high))
    return text("gate.slower", count=_RECENT, now=took, normal=normal, high=high)
