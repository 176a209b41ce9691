"""Readings of plates as votes for one vehicle. They belong to one occupancy of the arming loop, never to the next.

Cameras read one vehicle several times, differently, and late. The first vehicle that is read therefore owns the
occupancy: a reading is ignored if the camera assigns it to another vehicle, or if it is too different. A new occupancy
is a new vehicle. Cameras read a vehicle that was denied anew, often under another id: a reading that is as sure and
nearly the same is one of it.

Late readings of a vehicle that has passed must not open for the next one. Its plate is ignored for a while. A plate so
similar that it may be a misreading is ignored for a shorter time, unless it is exactly the plate of another card, good
or blocked. So is the plate itself where a camera that did not read that vehicle names a vehicle of its own. Readings
from just before the arming loop comes on wait a short while for its vehicle.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gateway.lanes.machine import messages as m

_MOST_READINGS = 32
_SAME_VEHICLE_DIFFERS = 2
_PASSED_SECONDS = 15.0
_MISREAD_SECONDS = 5.0
_LEFT_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Votes:
    """Plates read for the vehicle that stands on the arming loop, or is about to.

    Attributes:
        readings: the readings of one vehicle, oldest first.
        asked: plates for which a decision was already asked.
        gone: readings of the vehicle before. Their plates are ignored until `gone_until`.
        alike_until: until when plates similar to those are ignored too.
        due: when a decision is asked for the best reading; `inf` for not yet.
    """

    readings: tuple[m.PlateRead, ...] = ()
    asked: frozenset[str] = frozenset()
    gone: tuple[m.PlateRead, ...] = ()
    gone_until: float = float("-inf")
    alike_until: float = float("-inf")
    due: float = float("inf")

    def with_reading(self, reading: m.PlateRead, *, settle: float, sure: float, denied: bool = False) -> Votes:
        """Return the votes with one more reading; a reading of another vehicle changes nothing.

        A decision is due at once for a confidence of at least `sure`, otherwise after `settle` seconds. `denied`: as in
        `why_not`.
        """
        if self.why_not(reading, denied=denied):
            return self
        readings = (*self.readings[1 - _MOST_READINGS :], reading)
        if reading.plate in self.asked:
            return replace(self, readings=readings)
        due = reading.at if reading.confidence >= sure else min(self.due, reading.at + settle)
        return replace(self, readings=readings, due=due)

    def why_not(self, reading: m.PlateRead, *, denied: bool = False) -> str:
        """Return why the reading does not count for the vehicle that stands there; "" when it does.

        `denied`: whether the plates that were asked were all denied, while their vehicle stands there.
        """
        for before in self.gone:
            until = self.alike_until if _names_its_own(reading, before) else self.gone_until
            if reading.plate == before.plate and _may_be_one_vehicle(reading, before) and reading.at < until:
                return "it is the plate of the vehicle before"
            if reading.at < self.alike_until and _same(reading, before) and not _is_anothers(reading, before):
                return f"it may be the plate of the vehicle before, {before.plate}, misread"
        return "" if denied and self._corrects(reading) else self.whose_else(reading)

    def _corrects(self, reading: m.PlateRead) -> bool:
        """Return whether this is probably the right reading of a vehicle that was misread and denied."""
        asked = tuple(one for one in self.readings if one.plate in self.asked)
        return not self.is_anothers(reading) and any(
            reading.confidence >= one.confidence and _differ(reading.plate, one.plate) <= _SAME_VEHICLE_DIFFERS
            for one in asked
        )

    def whose_else(self, reading: m.PlateRead) -> str:
        """Return why the reading is not of the vehicle that was read first; "" when it may be."""
        if not self.readings or _same(reading, self.readings[0]):
            return ""
        return f"the vehicle was already read as {self.readings[0].plate}"

    def is_anothers(self, reading: m.PlateRead) -> bool:
        """Return whether this is exactly the plate of a card, and an earlier reading exactly that of another card."""
        return any(_is_anothers(reading, one) for one in self.readings)

    def sure(self, least: float) -> tuple[str, ...]:
        """Return the plates that were read with a confidence of at least `least`, each once."""
        return tuple(dict.fromkeys(one.plate for one in self.readings if one.confidence >= least))

    def best(self) -> m.PlateRead | None:
        """Return the reading to decide on next: the one of highest confidence, on a tie the one read more often."""
        open_ones = [reading for reading in self.readings if reading.plate not in self.asked]
        times = {reading.plate: sum(other.plate == reading.plate for other in open_ones) for reading in open_ones}
        return max(open_ones, key=lambda one: (one.confidence, times[one.plate], -one.at), default=None)

    def asked_on(self, reading: m.PlateRead) -> Votes:
        """Return the votes after a decision was asked for on this reading."""
        return replace(self, asked=self.asked | {reading.plate}, due=float("inf"))

    def recent(self, *, since: float) -> Votes:
        """Return the votes without readings up to `since`, which waited for a vehicle that did not come."""
        kept = tuple(reading for reading in self.readings if reading.at > since)
        return self if len(kept) == len(self.readings) else replace(self, readings=kept, due=float("inf"))

    def ended(self, now: float, *, passed: bool) -> Votes:
        """Return the votes after the vehicle has gone: later readings of its plate are ignored for a while.

        The while is longer if the vehicle has `passed`. One that went back may soon be at the loop again.
        """
        if not self.readings:
            return self
        gone_until = now + (_PASSED_SECONDS if passed else _LEFT_SECONDS)
        alike_until = now + (_MISREAD_SECONDS if passed else _LEFT_SECONDS)
        return Votes(gone=self.readings, gone_until=gone_until, alike_until=alike_until)

    def followed_by(self, behind: Votes, *, settle: float, sure: float) -> Votes:
        """Return the votes with the readings of the vehicle behind, which were taken while this one passed."""
        votes = self
        for reading in behind.readings:
            votes = votes.with_reading(reading, settle=settle, sure=sure)
        return votes


def _is_anothers(one: m.PlateRead, other: m.PlateRead) -> bool:
    """Return whether the two are exactly the plates of two different cards."""
    return bool(one.cards and other.cards and not one.cards & other.cards)


def _may_be_one_vehicle(one: m.PlateRead, other: m.PlateRead) -> bool:
    """Return whether both may be of one vehicle, as far as the camera itself says."""
    return not (one.vehicle and other.vehicle and one.camera_id == other.camera_id) or one.vehicle == other.vehicle


def _names_its_own(reading: m.PlateRead, before: m.PlateRead) -> bool:
    """Return whether another camera than before names a vehicle."""
    return bool(reading.vehicle) and reading.camera_id != before.camera_id


def _same(one: m.PlateRead, other: m.PlateRead) -> bool:
    """Return whether both may be of one vehicle: by the camera where it tells, else by how alike the plates are."""
    if one.vehicle and other.vehicle and one.camera_id == other.camera_id:
        return one.vehicle == other.vehicle
    return _differ(one.plate, other.plate) <= _SAME_VEHICLE_DIFFERS


def _differ(one: str, other: str) -> int:
    """Return the Levenshtein distance between two plates."""
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, start=1):
        before, row[0] = row[0], number
        for place, against in enumerate(other, start=1):
            cost = min(row[place] + 1, row[place - 1] + 1, before + (letter != against))
            before, row[place] = row[place], cost
    return row[-1]
