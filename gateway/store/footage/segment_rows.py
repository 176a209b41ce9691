"""A segment on disk and its row in the index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from drivers.rtsp.frames import Entry
from gateway.domain.footage import ChainPlace, Edge, GapReason

COLUMNS = (
    "id, camera_id, path, started_at, duration, size, clock_trusted, gap, codec, width, height, frames, sha256, number,"
    " previous, boot_id, monotonic, breaks, entry, whole_after"
)
"""The columns that `segment_of` reads, in this order."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment on disk.

    Attributes:
        started_at: start in wall micros, after corrections of the clock; the path has the uncorrected start.
        duration: media duration in micros.
        size: size of the file in bytes.
        frames: number of pictures, 0 if unknown.
        sha256: SHA-256 of the file as it was written, in hex; "" if not known yet.
        place: its place in its camera's chain, None before it is linked.
        boot_id: the boot in which it was recorded, "" if unknown.
        monotonic: monotonic micros of the first frame, within that boot.
        breaks: how often its camera's footage was interrupted before it; 0 before it is linked.
        entry: the kind of entry point with which it begins.
        whole_after: micros from its start until pictures are complete, if decoding begins with this segment.
    """

    id: int
    camera_id: int
    path: str
    started_at: int
    duration: int
    size: int
    clock_trusted: bool
    gap: GapReason
    codec: str
    width: int
    height: int
    frames: int = 0
    sha256: str = ""
    place: ChainPlace | None = None
    boot_id: str = ""
    monotonic: int = 0
    breaks: int = 0
    entry: Entry = Entry.IDR
    whole_after: int = 0

    @property
    def edge(self) -> Edge:
        """The values that decide whether another segment continues this one, or is continued by it."""
        return Edge(self.started_at, self.ended_at, self.gap, (self.codec, self.width, self.height))

    @property
    def ended_at(self) -> int:
        """The end in wall micros."""
        return self.started_at + self.duration


def segment_of(row: tuple[Any, ...]) -> Segment:
    """Return the segment of a row of `COLUMNS`."""
    sha256, number, previous = row[12:15]
    return Segment(
        id=row[0],
        camera_id=row[1],
        path=row[2],
        started_at=row[3],
        duration=row[4],
        size=row[5],
        clock_trusted=bool(row[6]),
        gap=GapReason(row[7]),
        codec=row[8],
        width=row[9],
        height=row[10],
        frames=row[11],
        sha256=sha256.hex() if sha256 else "",
        place=None if number is None else ChainPlace(number=number, previous=previous.hex()),
        boot_id=row[15],
        monotonic=row[16],
        breaks=row[17],
        entry=Entry(row[18]),
        whole_after=row[19],
    )
