"""Travels of gates: how long each took from the acknowledged command to its limit, and what is normal for that gate.

Pure. The history of a gate is in its own events: `GATE_OPENED` and `GATE_CLOSED` carry the time of the travel they end.
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

TRAVEL_EVENTS = (EventKind.GATE_OPENED, EventKind.GATE_CLOSED)
TRAVEL_SECONDS = "travel_seconds"
"""The fact of such an event that holds its travel."""

_OF_A_LANE = 500
"""Of each kind; weeks of a quiet lane, days of a busy one."""
_MOST = 5000
_FEWEST = 30
"""Travels before a gate has a history of its own."""
_RECENT = 5
_SLACK_SECONDS = 0.5
"""Polling sees a limit this much later at times; and of a fast gate a tenth of its time is nothing."""
_SLOWER = 1.2


@dataclass(frozen=True, slots=True)
class Band:
    """The times between which a gate's travels normally are, in seconds; one travel in twenty is below, one above."""

    low: float
    middle: float
    high: float


def most_travels(lanes: int) -> int:
    """Return how many of the site's travels of each kind are looked at, for so many lanes.

    The newest of all lanes are bounded; those of one lane that seldom opens may lie among millions of others.
    """
    return min(_MOST, _OF_A_LANE * max(1, lanes))


@dataclass(frozen=True, slots=True)
class SlowGate:
    """A gate that has become slower: its lane, the kind of event that ends such a travel, and why in words."""

    lane_id: str
    kind: EventKind
    why: str


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
    """Return the normal band of travels; None for too few of them."""
    if len(seconds) < _FEWEST:
        return None
    ordered = sorted(seconds)
    last = len(ordered) - 1
    return Band(low=ordered[math.floor(0.05 * last)], middle=median(ordered), high=ordered[math.ceil(0.95 * last)])


def why_slow(seconds: Sequence[float]) -> str:
    """Return in words that the last travels, the newest at the end, are slower than those before; "" if they are not.

    The median of a few counts: one vehicle under the arm, or one late poll, is no slow gate.
    """
    if len(seconds) <= _RECENT:
        return ""
    band = normal_band(seconds[:-_RECENT])
    if band is None:
        return ""
    now = median(seconds[-_RECENT:])
    if now <= max(band.high, band.middle * _SLOWER, band.middle + _SLACK_SECONDS):
        return ""
    return f"its last {_RECENT} took {now:.1f} s; {band.middle:.1f} s is normal, up to {band.high:.1f} s"
