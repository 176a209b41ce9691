"""Parking entries: a vehicle's stay from its entry to its exit. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

LONGEST_STAY = 30 * 86_400 * 1_000_000
"""Micros after which an entry without an exit has timed out: its exit was missed, and a later one is another stay's."""


class EntryStatus(StrEnum):
    """Status of a parking entry."""

    OPEN = "open"
    """It came in and has not left."""
    CLOSED = "closed"
    """It came in and left."""
    EXIT_ONLY = "exit_only"
    """It left, and nobody saw it come."""
    SUPERSEDED = "superseded"
    """It came in again before it was seen to leave."""
    TIMED_OUT = "timed_out"
    """It came in so long ago that its exit was missed."""


@dataclass(frozen=True, slots=True)
class ParkingEntry:
    """A vehicle's stay. Moments are wall micros UTC.

    Attributes:
        id: the site's id, from 2,000,000,000 up.
        central_id: central's id, None while central does not have the entry.
        status: its status now.
        entry_at: when it came in, None when only the exit is known.
        exit_at: when it left, None while it has not left or if that was not seen.
        area: the area of the site that it entered, "" when the lane leads into none.
        card_id: the card that was granted, None for none.
        credential: the reading as shown to technicians.
        plate: the vehicle's plate without blanks and dashes, "" when unknown.
        manual: whether a person made the entry.
        clock_trusted: whether the clock was trusted when the entry was stamped.
        record: further fields from a person or central, as JSON text.
    """

    id: int
    central_id: int | None
    status: EntryStatus
    entry_at: int | None
    exit_at: int | None
    entry_device_id: int | None
    exit_device_id: int | None
    entry_lane: str
    exit_lane: str
    area: str
    card_id: int | None
    credential: str
    plate: str
    manual: bool
    clock_trusted: bool
    record: str = "{}"

    @property
    def stayed(self) -> int | None:
        """Micros from entry to exit, at least 0; None while either is unknown."""
        if self.entry_at is None or self.exit_at is None:
            return None
        return max(0, self.exit_at - self.entry_at)
