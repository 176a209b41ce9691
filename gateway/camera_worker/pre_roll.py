"""Shelves take a camera's segments: `ToDisk` writes them at once, `PreRoll` keeps them in memory first.

A pre-roll serves a camera that is recorded for events only. Its segments go into memory. When an event pins a time
span, the segments of it that are still in memory are written to the disk, and later ones as they come, until the span
is over. Segments that are never pinned are dropped. Everything here belongs to one thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gateway.camera_worker.segment_file import DiskFailed, SegmentFile
from gateway.domain.footage import TOUCHING_MICROS, GapReason, Pin, SegmentFinished

MOST_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class Start:
    """The start of a segment, in microseconds of wall time and of monotonic time."""

    wall: int
    uptime: int


class OpenFile(Protocol):
    """A segment that is being written. All methods except `abandon` raise DiskFailed."""

    size: int

    def write(self, pieces: Sequence[bytes | bytearray]) -> None:
        """Append these pieces."""
        ...

    def finish(self, final: Path) -> None:
        """Make the segment durable under its final name."""
        ...

    def abandon(self) -> None:
        """Give the segment up, and remove what was written of it."""
        ...

    @property
    def sha256(self) -> str:
        """The SHA-256 of all bytes on the disk, in hexadecimal."""
        ...


class Shelf(Protocol):
    """The taker of segments as they are made."""

    def opened(self, file: SegmentFile, start: Start) -> OpenFile:
        """Open a segment and return it for writing; `file` is its file on the disk. Raises DiskFailed."""
        ...

    def take(self, file: OpenFile, segment: SegmentFinished) -> None:
        """Take a finished segment. Raises DiskFailed."""
        ...


class ToDisk:
    """The shelf that writes to the disk: each finished segment is made durable at once, and reported."""

    def __init__(self, *, media: Path, finished: Callable[[SegmentFinished], None]) -> None:
        self._media = media
        self._finished = finished

    def opened(self, file: SegmentFile, start: Start) -> OpenFile:  # noqa: ARG002  # it is the same at any time
        """Create the segment's file. Raises DiskFailed."""
        file.create()
        return file

    def take(self, file: OpenFile, segment: SegmentFinished) -> None:
        """Make the segment durable and report it. Raises DiskFailed."""
        file.finish(self._media / segment.path)
        self._finished(segment.model_copy(update={"sha256": file.sha256}))


class BufferedFile:
    """A segment whose bytes stay in memory until it is durable; from `keep` on they are also on the disk."""

    def __init__(self, *, file: SegmentFile, failed: Callable[[DiskFailed], None]) -> None:
        """Buffer the segment of this file. `failed` is called when the disk fails; memory still has all bytes then."""
        self._file = file
        self._failed = failed
        self._pieces: list[bytes] = []
        self._begun = False
        self._on_disk = False
        self.size = 0

    @property
    def sha256(self) -> str:
        """The SHA-256 of all bytes on the disk, in hexadecimal."""
        return self._file.sha256

    def keep(self) -> None:
        """Write the segment to the disk, and from now on all its later bytes too. It may be called again on failure."""
        if self._on_disk:
            return
        if self._begun:
            self._file.abandon()  # after a failure its file may still be there, because it could not be removed
        self._begun = True
        self._file.create()
        self._file.write(self._pieces)
        self._on_disk = True

    def write(self, pieces: Sequence[bytes | bytearray]) -> None:
        """Append these pieces. Memory keeps them even when the disk fails."""
        self._pieces += (bytes(piece) for piece in pieces)  # an array may hold more room than it uses
        self.size += sum(map(len, pieces))
        if self._on_disk:
            try:
                self._file.write(pieces)
            except DiskFailed as error:
                self._on_disk = False
                self._failed(error)

    def finish(self, final: Path) -> None:
        """Make the segment durable under its final name. It may be called again on failure."""
        self.keep()
        self._on_disk = False
        self._file.finish(final)

    def let_go(self) -> None:
        """Remove the segment from the disk; memory still has all of it."""
        if self._on_disk:
            self._on_disk = False
            self._file.abandon()

    def abandon(self) -> None:
        """Give the segment up, in memory and on the disk."""
        self._pieces.clear()
        self.let_go()


class PreRoll:
    """The shelf that keeps the newest segments in memory, within `seconds` and `most_bytes`, and writes pinned ones.

    Pinned segments that cannot be written stay in memory until `retry`, as long as there is room.
    """

    def __init__(
        self, *, media: Path, seconds: float, finished: Callable[[SegmentFinished], None], most_bytes: int = MOST_BYTES
    ) -> None:
        """Make an empty pre-roll. `finished` is called with each segment that became durable."""
        self._media = media
        self._micros = int(seconds * 1_000_000)
        self._most_bytes = most_bytes
        self._finished = finished
        self._buffered: deque[tuple[BufferedFile, SegmentFinished]] = deque()
        self._open: tuple[BufferedFile, Start] | None = None
        self._pins: tuple[Pin, ...] = ()
        self._written_until: int | None = None
        self._reported_until: int | None = None
        self._uptime: int | None = None
        self._gave_up = False
        self._may_write = True
        self.fault: DiskFailed | None = None
        """The reason why pinned footage could not be written; None for none. Nothing is tried again until `retry`."""

    @property
    def buffered_bytes(self) -> int:
        """The number of bytes of finished segments in memory."""
        return sum(file.size for file, _ in self._buffered)

    def pin(self, pins: tuple[Pin, ...]) -> None:
        """Replace the time spans to keep."""
        self._pins = pins
        self._write_wanted()

    def allow(self, may_write: bool) -> None:  # noqa: FBT001  # yes or no
        """Allow or forbid writing. When forbidden, the open segment is removed from the disk and kept in memory."""
        self._may_write = may_write
        if may_write:
            self.retry()
        elif self._open is not None:
            self._open[0].let_go()

    def retry(self) -> None:
        """Try again to write pinned footage after a failure."""
        self.fault = None
        self._write_wanted()

    def opened(self, file: SegmentFile, start: Start) -> OpenFile:
        """Open a segment in memory, and on the disk if it is pinned. A disk that fails sets `fault`."""
        buffered = BufferedFile(file=file, failed=self._failed)
        self._open = (buffered, start)
        self._write_wanted()
        return buffered

    def take(self, file: OpenFile, segment: SegmentFinished) -> None:
        """Take the open segment as finished, and write it if it is pinned. A disk that fails sets `fault`."""
        if self._open is None or self._open[0] is not file:
            raise ValueError("a segment is taken that was not opened here")
        buffered, self._open = self._open[0], None
        if segment.gap is not GapReason.NONE and self._uptime is not None:
            # measured by the monotonic clock, which nobody sets
            missing = segment.monotonic - self._uptime
            if abs(missing) > TOUCHING_MICROS:
                segment = segment.model_copy(update={"gap_from": segment.started_at - missing})
        self._uptime = segment.monotonic + segment.duration
        self._buffered.append((buffered, segment))
        self._write_wanted()
        self._forget_old(self._uptime - self._micros)

    def _forget_old(self, oldest: int) -> None:
        for item in tuple(self._buffered):
            file, segment = item
            wanted = self._is_wanted(_start(segment), segment.duration)
            if self.buffered_bytes <= self._most_bytes and (wanted or segment.monotonic + segment.duration >= oldest):
                continue
            self._gave_up = self._gave_up or wanted
            file.abandon()
            self._buffered.remove(item)

    def _write_wanted(self) -> None:
        if self.fault is not None or not self._may_write:
            return
        try:
            for item in tuple(self._buffered):
                file, segment = item
                if self._is_wanted(_start(segment), segment.duration):
                    file.finish(self._media / segment.path)
                    self._buffered.remove(item)
                    self._tell(file, segment)
            if self._open is not None and self._is_wanted(self._open[1], None):
                self._open[0].keep()
        except DiskFailed as error:
            self._failed(error)

    def _failed(self, error: DiskFailed) -> None:
        self.fault = error

    def _is_wanted(self, start: Start, duration: int | None) -> bool:
        """Return whether a segment overlaps a pinned time span. `duration` is None for the open segment."""
        for pin in self._pins:
            # where possible by the monotonic clock, which nobody sets
            at = start.wall if pin.clock_offset is None else start.uptime + pin.clock_offset
            if pin.until > at and (duration is None or pin.begin < at + duration):
                return True
        return False

    def _wanted_since(self, segment: SegmentFinished) -> int | None:
        """Return since when pinned time precedes the segment without a break, in wall time; None when none does."""
        since = segment.started_at
        spans = []
        for pin in self._pins:
            ahead = 0 if pin.clock_offset is None else segment.monotonic + pin.clock_offset - segment.started_at
            spans.append((pin.until - ahead, pin.begin - ahead))
        for until, begin in sorted(spans, reverse=True):
            if until >= since:
                since = min(since, begin)
        return since if segment.started_at - since > TOUCHING_MICROS else None

    def _tell(self, file: OpenFile, segment: SegmentFinished) -> None:
        apart = None if self._reported_until is None else abs(segment.monotonic - self._reported_until)
        touches = apart is not None and apart <= TOUCHING_MICROS
        changed: dict[str, object] = {"sha256": file.sha256}
        if self._gave_up and not touches:
            changed |= {"gap": GapReason.DISK, "gap_from": self._written_until}
        elif segment.gap is GapReason.NONE and not touches:
            changed["gap"] = GapReason.NO_EVENT
        elif segment.gap in (GapReason.STARTED, GapReason.WORKER) and segment.gap_from is None:
            # there is no footage before it; the gap counts from where pinned time began
            changed["gap_from"] = self._wanted_since(segment)
        self._gave_up = False
        self._written_until = _end(segment)
        self._reported_until = segment.monotonic + segment.duration
        self._finished(segment.model_copy(update=changed))


def _start(segment: SegmentFinished) -> Start:
    return Start(wall=segment.started_at, uptime=segment.monotonic)


def _end(segment: SegmentFinished) -> int:
    return segment.started_at + segment.duration
