"""Readings of plates as votes for one vehicle, bound to one occupancy of the arming loop, never used for the next.

Cameras read one vehicle several times and differently, and late. So the first vehicle read owns the occupancy: a
reading that the camera gives to another vehicle, or that is too different, does not count; nor does one of a vehicle
that was read in the occupancy before. Readings from just before the arming loop wait for its vehicle a short while.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

_MOST_READINGS = 32
_SAME_VEHICLE_DIFFERS = 2
_GONE_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of a plate."""

    camera_id: int
    plate: str
    confidence: float
    vehicle: str
    at: float


@dataclass(frozen=True, slots=True)
class Votes:
    """What was read for the vehicle that stands on the arming loop, or is about to.

    Attributes:
        readings: of one vehicle, the oldest first.
        asked: plates that were decided on for it already.
        gone: readings of the vehicle before, which count for nobody until `gone_until`.
        due: when the best reading is taken; `inf` for not yet.
    """

    readings: tuple[Reading, ...] = ()
    asked: frozenset[str] = frozenset()
    gone: tuple[Reading, ...] = ()
    gone_until: float = float("-inf")
    due: float = float("inf")

    def heard(self, reading: Reading, *, settle: float, sure: float) -> Votes:
        """With one more reading; one of another vehicle changes nothing."""
        if not self.may_count(reading):
            return self
        readings = (*self.readings[1 - _MOST_READINGS :], reading)
        if reading.plate in self.asked:
            return replace(self, readings=readings)
        due = reading.at if reading.confidence >= sure else min(self.due, reading.at + settle)
        return replace(self, readings=readings, due=due)

    def may_count(self, reading: Reading) -> bool:
        """Whether the reading is of the vehicle that was read first, and not of the one before."""
        if reading.at < self.gone_until and any(_same(reading, before) for before in self.gone):
            return False
        return not self.readings or _same(reading, self.readings[0])

    def sure(self, least: float) -> tuple[str, ...]:
        """The plates that were read this surely, each once."""
        return tuple(dict.fromkeys(one.plate for one in self.readings if one.confidence >= least))

    def best(self) -> Reading | None:
        """The reading to decide on next: the surest, on a tie the one read more often."""
        open_ones = [reading for reading in self.readings if reading.plate not in self.asked]
        times = {reading.plate: sum(other.plate == reading.plate for other in open_ones) for reading in open_ones}
        return max(open_ones, key=lambda one: (one.confidence, times[one.plate], -one.at), default=None)

    def taken(self, reading: Reading) -> Votes:
        """After a decision was asked for on this reading."""
        return replace(self, asked=self.asked | {reading.plate}, due=float("inf"))

    def recent(self, *, since: float) -> Votes:
        """Without readings older than `since`: those that waited for a vehicle that did not come."""
        kept = tuple(reading for reading in self.readings if reading.at >= since)
        return self if len(kept) == len(self.readings) else replace(self, readings=kept, due=float("inf"))

    def ended(self, now: float) -> Votes:
        """The vehicle has gone: what is still read of it counts for nobody."""
        if not self.readings:
            return self
        return Votes(gone=self.readings, gone_until=now + _GONE_SECONDS)


def _same(one: Reading, other: Reading) -> bool:
    """Whether both may be of one vehicle: the camera's own word where it has one, else how alike the plates are."""
    if one.vehicle and other.vehicle and one.camera_id == other.camera_id:
        return one.vehicle == other.vehicle
    return _differ(one.plate, other.plate) <= _SAME_VEHICLE_DIFFERS


def _differ(one: str, other: str) -> int:
    """Edits between two plates (Levenshtein)."""
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, start=1):
        before, row[0] = row[0], number
        for place, against in enumerate(other, start=1):
            cost = min(row[place] + 1, row[place - 1] + 1, before + (letter != against))
            before, row[place] = row[place], cost
    return row[-1]
