"""Segment on disk, and its row in the index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from drivers.rtsp.frames import Entry
from gateway.domain.footage import Edge, GapReason
from gateway.domain.footage_chain import Place

COLUMNS = (
    "id, camera_id, path, started_at, duration, size, clock_trusted, gap, codec, width, height, frames, sha256, number,"
    " previous, boot_id, monotonic, breaks, entry, whole_after"
)
"""What `segment_of` reads, in this order."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment on disk.

    Attributes:
        started_at: wall micros, as far as is known now; as recorded it is in the path.
        duration: media micros.
        size: bytes.
        frames: how many pictures, 0 when not known.
        sha256: of the file as it was written, "" when not known yet.
        place: where it stands in its camera's chain, None before it is linked.
        boot_id: of the machine's run that `monotonic` counts in, "" when not known.
        monotonic: micros of the first frame.
        breaks: how often its camera's footage broke off before it, as far as it is linked.
        entry: the kind of entry point that it begins with.
        whole_after: micros from its start until pictures are whole when decoding begins there.
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
    place: Place | None = None
    boot_id: str = ""
    monotonic: int = 0
    breaks: int = 0
    entry: Entry = Entry.IDR
    whole_after: int = 0

    @property
    def edge(self) -> Edge:
        """Facts that decide whether another segment can be played right after this one, or before it."""
        return Edge(self.started_at, self.ended_at, self.gap, (self.codec, self.width, self.height))

    @property
    def ended_at(self) -> int:
        """Wall micros of its end."""
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
        place=None if number is None else Place(number=number, previous=previous.hex()),
        boot_id=row[15],
        monotonic=row[16],
        breaks=row[17],
        entry=Entry(row[18]),
        whole_after=row[19],
    )
