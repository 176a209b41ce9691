"""The reports that the texts of one camera's body give."""

from __future__ import annotations

from collections.abc import Iterator

from drivers.contract import MessageRefused, MonotonicSeconds, PlateSeen, ProtocolViolation
from drivers.plates.dialect import Dialect
from drivers.plates.multipart import Part
from drivers.plates.readings import Found, PlateReading, Sightings, UnreadPlate


class PartReports:
    """The maker of one camera's reports.

    Args:
        device_id: the id that the reports carry.
        dialect: the camera's make.
    """

    def __init__(self, *, device_id: int, dialect: Dialect) -> None:
        self._device_id = device_id
        self._dialect = dialect
        self._sightings = Sightings()

    def read(self, part: Part) -> tuple[Found, ...]:
        """Return the readings in a part, and what cannot be read in it. It may be called from any thread."""
        if part.is_picture:
            return ()
        try:
            return self._dialect.read(part)
        except ProtocolViolation as violation:
            return (UnreadPlate(str(violation)),)

    def of(self, found: tuple[Found, ...], part: Part, *, at: MonotonicSeconds) -> Iterator[PlateSeen | MessageRefused]:
        """Yield the reports of what was found in a part, without readings that are repeated."""
        for one in found:
            if isinstance(one, UnreadPlate):
                yield MessageRefused(self._device_id, one.reason, part.body, at)
        readings = [one for one in found if isinstance(one, PlateReading)]
        for seen in self._sightings.fresh(readings, at=at):
            yield PlateSeen(self._device_id, seen.plate, seen.confidence, seen.vehicle, seen.direction, at)
