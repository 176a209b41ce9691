"""Where finished segments go: to the disk at once, or, of a camera recorded for events only, first into memory.

Its segments are made as always, into memory. When an event pins a time, those of it that are still there become
durable, and what follows goes to the disk as it comes, until the pinned time is over. What nobody pins is forgotten.
Everything here belongs to one thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from gateway.camera_worker.segment_file import SegmentFile
from gateway.domain.footage import GapReason, Pin, SegmentFinished

MOST_BYTES = 64_000_000
_TOUCHING_MICROS = 50_000


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

    def opened(self, file: SegmentFile, started_at: int) -> OpenFile:
        """A segment begins at these wall micros; `file` is what it would be on the disk. Raises DiskFailed."""
        ...

    def take(self, file: OpenFile, segment: SegmentFinished) -> None:
        """It is whole. Raises DiskFailed."""
        ...


class ToDisk:
    """Each segment becomes durable as it is finished, and is told."""

    def __init__(self, *, media: Path, finished: Callable[[SegmentFinished], None]) -> None:
        self._media = media
        self._finished = finished

    def opened(self, file: SegmentFile, started_at: int) -> OpenFile:  # noqa: ARG002  # it is the same at any time
        """See Shelf."""
        file.create()
        return file

    def take(self, file: OpenFile, segment: SegmentFinished) -> None:
        """See Shelf."""
        file.finish(self._media / segment.path)
        self._finished(segment.model_copy(update={"sha256": file.sha256}))


class HeldFile:
    """A segment whose bytes are in memory until it is durable, and on the disk too from `keep` on."""

    def __init__(self, *, file: SegmentFile) -> None:
        self._file = file
        self._pieces: list[bytes] = []
        self._kept = False
        self.size = 0

    @property
    def sha256(self) -> str:
        """Of all that is on the disk."""
        return self._file.sha256

    def keep(self) -> None:
        """Go to the disk, now and with all that will be written. After a failure it may be tried again."""
        if not self._kept:
            self._file.create()
            self._file.write(b"".join(self._pieces))
            self._kept = True

    def write(self, data: bytes) -> None:
        """Append all of `data`. It is in memory even when the disk fails."""
        self._pieces.append(data)
        self.size += len(data)
        if self._kept:
            self._kept = False
            self._file.write(data)
            self._kept = True

    def finish(self, final: Path) -> None:
        """Make it durable under its final name. After a failure it may be tried again."""
        self.keep()
        self._kept = False
        self._file.finish(final)

    def abandon(self) -> None:
        """Forget it, and remove what is on the disk."""
        self._pieces.clear()
        if self._kept:
            self._kept = False
            self._file.abandon()


class PreRoll:
    """Holds the newest segments, at most so many `seconds` and bytes, and makes durable what is pinned."""

    def __init__(
        self, *, media: Path, seconds: float, finished: Callable[[SegmentFinished], None], most_bytes: int = MOST_BYTES
    ) -> None:
        """`finished` is called with each segment that became durable."""
        self._media = media
        self._micros = int(seconds * 1_000_000)
        self._most_bytes = most_bytes
        self._finished = finished
        self._held: deque[tuple[OpenFile, SegmentFinished]] = deque()
        self._open: tuple[HeldFile, int] | None = None
        self._pins: tuple[Pin, ...] = ()
        self._written_until: int | None = None

    @property
    def held_bytes(self) -> int:
        """Bytes of finished segments in memory."""
        return sum(file.size for file, _ in self._held)

    def pin(self, pins: tuple[Pin, ...]) -> None:
        """These times are wanted, and no others any more. Raises DiskFailed; what failed stays in memory."""
        self._pins = pins
        self._write_wanted()
        if self._open is not None and self._is_wanted(self._open[1], None):
            self._open[0].keep()

    def opened(self, file: SegmentFile, started_at: int) -> OpenFile:
        """See Shelf."""
        held = HeldFile(file=file)
        self._open = (held, started_at)
        if self._is_wanted(started_at, None):
            held.keep()
        return held

    def take(self, file: OpenFile, segment: SegmentFinished) -> None:
        """See Shelf. What failed stays in memory and is tried again with the next."""
        self._open = None
        self._held.append((file, segment))
        try:
            self._write_wanted()
        finally:
            oldest = _end(segment) - self._micros
            while self._held and (self.held_bytes > self._most_bytes or _end(self._held[0][1]) < oldest):
                gone, _ = self._held.popleft()
                gone.abandon()

    def _write_wanted(self) -> None:
        for item in tuple(self._held):
            file, segment = item
            if self._is_wanted(segment.started_at, _end(segment)):
                file.finish(self._media / segment.path)
                self._held.remove(item)
                self._tell(file, segment)

    def _is_wanted(self, start: int, end: int | None) -> bool:
        """Whether a segment from `start` to `end`, None for one that goes on, holds a part of what is pinned."""
        return any(pin.until > start and (end is None or pin.begin < end) for pin in self._pins)

    def _tell(self, file: OpenFile, segment: SegmentFinished) -> None:
        touches = self._written_until is not None and abs(segment.started_at - self._written_until) <= _TOUCHING_MICROS
        gap = GapReason.NO_EVENT if segment.gap is GapReason.NONE and not touches else segment.gap
        self._written_until = _end(segment)
        self._finished(segment.model_copy(update={"gap": gap, "sha256": file.sha256}))


def _end(segment: SegmentFinished) -> int:
    return segment.started_at + segment.duration
