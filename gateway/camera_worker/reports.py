"""Reports of the worker that nobody has read yet. Bounded; a segment that does not fit is counted."""

from __future__ import annotations

import asyncio
from collections import deque

from gateway.domain.footage import CameraCondition, CameraReported, SegmentFinished

MOST_UNREAD_SEGMENTS = 10_000


class ReportBuffer:
    """Segments in order, and each camera's latest state. Belongs to the loop; `add` from it alone."""

    def __init__(self, *, most_segments: int = MOST_UNREAD_SEGMENTS) -> None:
        self._most = most_segments
        self._segments: deque[SegmentFinished] = deque()
        self._cameras: dict[int, CameraReported] = {}
        self._conditions: dict[int, tuple[CameraCondition, str]] = {}
        self._added = asyncio.Event()
        self.unreported_segments = 0
        """Segments whose report was given up for want of room; their files wait to be adopted by name."""

    def add(self, report: SegmentFinished | CameraReported) -> None:
        """Keep a report until it is taken. Of a camera that is as it was, figures wait for the next beat."""
        if isinstance(report, CameraReported):
            condition = report.condition, report.detail
            before, self._conditions[report.camera_id] = self._conditions.get(report.camera_id), condition
            self._cameras[report.camera_id] = report
            if condition == before:
                return
        else:
            if len(self._segments) >= self._most:
                self._segments.popleft()
                self.unreported_segments += 1
            self._segments.append(report)
        self._added.set()

    def forget(self, camera_id: int) -> None:
        """Stop reporting the state of a camera that left this worker; its segments are still reported."""
        self._cameras.pop(camera_id, None)
        self._conditions.pop(camera_id, None)

    def take(self) -> list[SegmentFinished | CameraReported]:
        """Return all that is unread, segments first."""
        reports: list[SegmentFinished | CameraReported] = [*self._segments, *self._cameras.values()]
        self._segments.clear()
        self._cameras.clear()
        self._added.clear()
        return reports

    def wake(self) -> None:
        """Let a waiting reader go on, though nothing was added."""
        self._added.set()

    async def wait(self) -> None:
        """Return when there may be something to take."""
        await self._added.wait()
