"""Passages of vehicles, the footage that proves them, and the stays that they begin and end. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

LONGEST_STAY = 30 * 86_400 * 1_000_000
"""Micros after which an entry without an exit has timed out: its exit was missed, and a later one is another stay's."""


class PassageOutcome(StrEnum):
    """Outcome of a vehicle's time in the lane."""

    PASSED = "passed"
    BACKED_OUT = "backed_out"
    NOT_OPENED = "not_opened"
    UNAUTHORISED = "unauthorised"


MOVED: Final = frozenset({PassageOutcome.PASSED, PassageOutcome.UNAUTHORISED})
"""Outcomes after which the vehicle is on the other side of the gate."""


@dataclass(frozen=True, slots=True)
class Passage:
    """One vehicle's time in a lane.

    Attributes:
        lane_id: the lane.
        direction: "entry" or "exit".
        outcome: how it ended.
        started_at: wall micros of the vehicle's arrival.
        ended_at: wall micros of the end.
        clock_trusted: whether both stamps were made with a trusted clock.
        card_id: the card that was granted, or None (operator, or no decision).
        credential: the reading as shown to technicians, "" for none.
        reason: the decision's reason, "" for none.
        plate: the vehicle's plate, without blanks and dashes, if it was read; "" for none.
        holder: the name by which presence counts the holder of the granted card, "" for nobody.
        opens: whether that holder, by entering, opens the area to others.
    """

    lane_id: str
    direction: str
    outcome: PassageOutcome
    started_at: int
    ended_at: int
    clock_trusted: bool
    card_id: int | None = None
    credential: str = ""
    reason: str = ""
    plate: str = ""
    holder: str = ""
    opens: bool = False


@dataclass(frozen=True, slots=True)
class Moment:
    """Footage of one camera to keep, before its camera event has an id. Times are wall micros UTC."""

    camera_id: int
    name: str
    description: str
    pinned_from: int
    pinned_until: int
    clock_trusted: bool


@dataclass(frozen=True, slots=True)
class CameraEvent:
    """A camera event on disk.

    Attributes:
        id: the site's id, from 2,000,000,000 up; 0 for a span of footage that no camera event names.
        central_id: central's id, None while central does not have it.
        event_id: the event that its footage proves.
        date_at: when that event happened, in wall micros.
        ready: whether all the footage that there will ever be is on disk.
        incident: whether its footage is kept as long as that of incidents.
        boot_id: the boot of the machine in which it was stamped, "" when not known.
        clock_offset: by how many micros its wall times are ahead of that boot's monotonic ones; with it the same
            footage belongs to it, whatever the clock is set to later.
        box: the number of the box that made it, 0 when it was made before boxes had numbers.
    """

    id: int
    central_id: int | None
    camera_id: int
    event_id: int
    lane_id: str
    name: str
    description: str
    date_at: int
    pinned_from: int
    pinned_until: int
    clock_trusted: bool
    ready: bool
    incident: bool = False
    boot_id: str = ""
    clock_offset: int = 0
    box: int = 0

    @classmethod
    def of_span(cls, camera_id: int, begin: int, end: int) -> CameraEvent:
        """Return a span of a camera's footage (wall micros) for those who cut footage; nothing keeps it on disk."""
        return cls(
            id=0,
            central_id=None,
            camera_id=camera_id,
            event_id=0,
            lane_id="",
            name="",
            description="",
            date_at=begin,
            pinned_from=begin,
            pinned_until=end,
            clock_trusted=True,
            ready=False,
        )

    @property
    def called(self) -> str:
        """The camera event in a sentence."""
        return f"camera event {self.id}" if self.id else f"this time at camera {self.camera_id}"


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
