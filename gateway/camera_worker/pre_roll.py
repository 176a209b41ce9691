"""Shelves for finished segments: the disk at once, or first memory, for a camera recorded for events only.

Its segments are made as always, into memory. When an event pins a time, those of it that are still there become
durable, and what follows goes to the disk as it comes, until the pinned time is over. What nobody pins is forgotten.
Everything here belongs to one thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gateway.camera_worker.segment_file import DiskFailed, SegmentFile
from gateway.domain.footage import TOUCHING_MICROS, GapReason, Pin, SegmentFinished

MOST_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class Start:
    """Start of a segment, in wall and in monotonic micros."""

    wall: int
    uptime: int


class OpenFile(Protocol):
    """A segment that is being written. Each method but `abandon` raises DiskFailed."""

    size: int

    def write(self, data: bytes) -> None:
        """Append all of `data`."""
        ...

    def finish(self, final: Path) -> None:
        """Make it durable under its final name."""
        ...

    def abandon(self) -> None:
        """Forget it, and remove what there is."""
        ...

    @property
    def sha256(self) -> str:
        """Of all that is on the disk."""
        ...


class Shelf(Protocol):
    """Takes segments as they are made."""

    def opened(self, file: SegmentFile, start: Start) -> OpenFile:
        """Open a segment; `file` is its place on the disk. Raises DiskFailed."""
        ...

    def take(self, file: OpenFile, segment: SegmentFinished) -> None:
        """Take in a finished segment. Raises DiskFailed."""
        ...


class ToDisk:
    """Shelf on the disk: each finished segment becomes durable at once, and is reported."""

    def __init__(self, *, media: Path, finished: Callable[[SegmentFinished], None]) -> None:
        self._media = media
        self._finished = finished

    def opened(self, file: SegmentFile, start: Start) -> OpenFile:  # noqa: ARG002  # it is the same at any time
        """See Shelf."""
        file.create()
        return file

    def take(self, file: OpenFile, segment: SegmentFinished) -> None:
        """See Shelf."""
        file.finish(self._media / segment.path)
        self._finished(segment.model_copy(update={"sha256": file.sha256}))


class BufferedFile:
    """A segment whose bytes are in memory until it is durable, and on the disk too from `keep` on."""

    def __init__(self, *, file: SegmentFile, failed: Callable[[DiskFailed], None]) -> None:
        """`failed` is called when the disk takes no more of what is written; nothing of it is lost."""
        self._file = file
        self._failed = failed
        self._pieces: list[bytes] = []
        self._begun = False
        self._on_disk = False
        self.size = 0

    @property
    def sha256(self) -> str:
        """Of all that is on the disk."""
        return self._file.sha256

    def keep(self) -> None:
        """Go to the disk, now and with all that will be written. After a failure it may be tried again."""
        if self._on_disk:
            return
        if self._begun:
            self._file.abandon()  # a disk that could not be written could not be cleared of it either
        self._begun = True
        self._file.create()
        self._file.write(b"".join(self._pieces))
        self._on_disk = True

    def write(self, data: bytes) -> None:
        """Append all of `data`. It is in memory even when the disk fails."""
        self._pieces.append(data)
        self.size += len(data)
        if self._on_disk:
            try:
                self._file.write(data)
            except DiskFailed as error:
                self._on_disk = False
                self._failed(error)

    def finish(self, final: Path) -> None:
        """Make it durable under its final name. After a failure it may be tried again."""
        self.keep()
        self._on_disk = False
        self._file.finish(final)

    def let_go(self) -> None:
        """Leave the disk; all is in memory still."""
        if self._on_disk:
            self._on_disk = False
            self._file.abandon()

    def abandon(self) -> None:
        """Forget it, and remove what is on the disk."""
        self._pieces.clear()
        self.let_go()


class PreRoll:
    """Holds the newest segments, at most so many `seconds` and bytes, and makes durable what is pinned.

    What is pinned and cannot be written stays, for as long as its bytes have room, until `retry`.
    """

    def __init__(
        self, *, media: Path, seconds: float, finished: Callable[[SegmentFinished], None], most_bytes: int = MOST_BYTES
    ) -> None:
        """`finished` is called with each segment that became durable."""
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
        """Why what is pinned is not on the disk; nothing is tried until `retry`."""

    @property
    def buffered_bytes(self) -> int:
        """Bytes of finished segments in memory."""
        return sum(file.size for file, _ in self._buffered)

    def pin(self, pins: tuple[Pin, ...]) -> None:
        """Set the time spans to keep, in place of earlier ones."""
        self._pins = pins
        self._write_wanted()

    def allow(self, may_write: bool) -> None:  # noqa: FBT001  # yes or no
        """Allow or forbid writing. Once forbidden, the open segment leaves the disk; memory still has all of it."""
        self._may_write = may_write
        if may_write:
            self.retry()
        elif self._open is not None:
            self._open[0].let_go()

    def retry(self) -> None:
        """Write what is pinned, though it failed before."""
        self.fault = None
        self._write_wanted()

    def opened(self, file: SegmentFile, start: Start) -> OpenFile:
        """See Shelf; a disk that fails is no failure here."""
        buffered = BufferedFile(file=file, failed=self._failed)
        self._open = (buffered, start)
        self._write_wanted()
        return buffered

    def take(self, file: OpenFile, segment: SegmentFinished) -> None:
        """See Shelf; a disk that fails is no failure here."""
        if self._open is None or self._open[0] is not file:
            raise ValueError("a segment is taken that was not opened here")
        buffered, self._open = self._open[0], None
        if segment.gap is not GapReason.NONE and self._uptime is not None:
            # by the clock that nobody sets
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
        """Return whether a segment of this duration (None: it goes on) holds a part of what is pinned."""
        for pin in self._pins:
            # where possible by the monotonic clock, which nobody sets
            at = start.wall if pin.clock_offset is None else start.uptime + pin.clock_offset
            if pin.until > at and (duration is None or pin.begin < at + duration):
                return True
        return False

    def _wanted_since(self, segment: SegmentFinished) -> int | None:
        """Return the start of the pinned footage right before the segment, by its clock; None when there is none."""
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
            # nothing was held before it; how far back that matters, events tell
            changed["gap_from"] = self._wanted_since(segment)
        self._gave_up = False
        self._written_until = _end(segment)
        self._reported_until = segment.monotonic + segment.duration
        self._finished(segment.model_copy(update=changed))


def _start(segment: SegmentFinished) -> Start:
    return Start(wall=segment.started_at, uptime=segment.monotonic)


def _end(segment: SegmentFinished) -> int:
    return segment.started_at + segment.duration
