"""Parts of the cameras' newest segments for low-latency HLS (RFC 8216bis), while somebody watches.

A part is a range of a segment's file. The file stays open from its first part on, so that its parts can be sent while
it grows, while it gets its final name, and for a while after that.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from gateway.domain.footage import PartWritten, SegmentFinished, WantParts
from gateway.runtime.clock import Clock

LISTED_SEGMENTS = 6
"""The newest segments whose parts are listed."""
_KEPT_SEGMENTS = 2 * LISTED_SEGMENTS
"""Parts can be fetched for as long again as they were listed (RFC 8216bis, 6.2.2)."""
_LEASE_SECONDS = 10.0
_RENEWED_SECONDS = 3.0
_FORGOTTEN_SECONDS = 20.0
"""After this time without a viewer its files are closed: an open file keeps a deleted segment's space in use."""
_OPEN_SECONDS = 1.0


class OpenPart(NamedTuple):
    """The bytes of a part: a range of an open file, which the caller must duplicate before it waits for anything."""

    file: FileIO
    offset: int
    length: int


@dataclass(slots=True, eq=False)
class PartedSegment:
    """A segment with parts.

    Attributes:
        file: the path of its file while it grows.
        follows: that of the segment that it continues.
        number: its media sequence number, 0 before it is listed.
        path: the final path of its file, "" while it grows.
        parts: its parts so far, without a gap from the first one on.
        opened: its file, None before it is opened.
    """

    file: str
    follows: str
    number: int = 0
    path: str = ""
    parts: list[PartWritten] = field(default_factory=list)
    opened: FileIO | None = None
    opening: asyncio.Future[FileIO] | None = None

    def close(self) -> None:
        """Close its file, also one that is just being opened; answers that send it have a duplicate."""
        if self.opened is not None:
            self.opened.close()
            self.opened = None
        if self.opening is not None:
            self.opening.add_done_callback(_close_late)


@dataclass(slots=True, eq=False)
class _CameraParts:
    """One camera's parts. `ended`: the final path of its newest finished segments, and the path while each grew."""

    ended: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=_KEPT_SEGMENTS))
    segments: deque[PartedSegment] = field(default_factory=deque)
    wanted_at: float = float("-inf")
    renewed_at: float = float("-inf")


class LiveParts:
    """The parts that workers report. They report a camera's parts for ten seconds after each `want`.

    Args:
        media: the media folder.
        clock: the monotonic clock.
        ask: asks a camera's worker for parts.
        changed: called with a camera's id when it has a new part.
    """

    def __init__(
        self,
        *,
        media: Path,
        clock: Clock,
        ask: Callable[[WantParts], Awaitable[None]],
        changed: Callable[[int], None],
    ) -> None:
        self._media = media
        self._clock = clock
        self._ask = ask
        self._changed = changed
        self._cameras: dict[int, _CameraParts] = {}

    async def want(self, camera_id: int, *, part_seconds: float, longest_seconds: float) -> bool:
        """Have the camera's parts reported for ten seconds; return whether they were not wanted until now.

        Meanwhile its segments stay shorter than `longest_seconds`.
        """
        camera, now = self._camera(camera_id), self._clock.monotonic()
        is_new = now - camera.wanted_at > _LEASE_SECONDS
        camera.wanted_at = now
        if now - camera.renewed_at >= _RENEWED_SECONDS:
            camera.renewed_at = now
            wanted = WantParts(
                camera_id=camera_id,
                part_seconds=part_seconds,
                longest_seconds=longest_seconds,
                seconds=_LEASE_SECONDS,
            )
            await self._ask(wanted)
        return is_new

    def hear(self, report: PartWritten | SegmentFinished) -> None:
        """Take in a report of a worker. The reports of one camera come in the order in which it was written."""
        camera = self._camera(report.camera_id)
        if isinstance(report, PartWritten):
            self._add(camera, report)
            return
        camera.ended.append((report.path, report.grew_as))
        if camera.segments and camera.segments[-1].file == report.grew_as:
            camera.segments[-1].path = report.path
        for each in self._cameras.values():  # also cameras that send nothing any more
            if self._clock.monotonic() - each.wanted_at > _FORGOTTEN_SECONDS:
                _forget(each, keep=0)

    def of(self, camera_id: int, path: str) -> PartedSegment | None:
        """Return the finished segment with this final path, or None if its parts are not known."""
        return next((segment for segment in self._camera(camera_id).segments if segment.path == path), None)

    async def after(self, camera_id: int, path: str) -> PartedSegment | None:
        """Return the segment that continues the one with this final path, its file open; None if there is none."""
        camera = self._camera(camera_id)
        file = next((grew_as for final, grew_as in camera.ended if final == path), "")
        found = next((segment for segment in camera.segments if file and segment.follows == file), None)
        return found if found is not None and await self._is_open(found) else None

    def part(self, camera_id: int, number: int, index: int) -> OpenPart | None:
        """Return a part by its segment's number and its index, or None."""
        camera = self._cameras.get(camera_id)
        for segment in reversed(camera.segments if camera is not None else ()):
            if segment.number == number and index < len(segment.parts) and segment.opened is not None:
                return OpenPart(segment.opened, segment.parts[index].offset, segment.parts[index].length)
        return None

    def close(self) -> None:
        """Close all files."""
        for camera in self._cameras.values():
            _forget(camera, keep=0)

    def _camera(self, camera_id: int) -> _CameraParts:
        return self._cameras.setdefault(camera_id, _CameraParts())

    def _add(self, camera: _CameraParts, part: PartWritten) -> None:
        """Add a part to its segment; a segment of which a part is missing gets no more."""
        newest = camera.segments[-1] if camera.segments else None
        if newest is None or newest.file != part.file:
            newest = PartedSegment(part.file, part.follows)
            camera.segments.append(newest)
            _forget(camera, keep=_KEPT_SEGMENTS)
        if part.index == len(newest.parts):
            newest.parts.append(part)
            self._changed(part.camera_id)

    async def _is_open(self, segment: PartedSegment) -> bool:
        """Open a segment's file, if it is not open yet, and return whether it is open.

        The file may be renamed meanwhile. A disk that does not answer holds up one thread for each segment at most.
        """
        if segment.opened is None and segment.opening is None:
            path = self._media / (segment.path or segment.file)
            segment.opening = asyncio.get_running_loop().run_in_executor(None, FileIO, path)
        if segment.opening is not None:
            done, _ = await asyncio.wait({segment.opening}, timeout=_OPEN_SECONDS)
            if done and (opening := segment.opening) is not None:
                segment.opening = None
                segment.opened = None if opening.exception() is not None else opening.result()
        return segment.opened is not None


def _close_late(opening: asyncio.Future[FileIO]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


def _forget(camera: _CameraParts, *, keep: int) -> None:
    while len(camera.segments) > keep:
        camera.segments.popleft().close()
