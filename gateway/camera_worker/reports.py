"""The buffer of the worker's unread reports. It is bounded; segments that do not fit are counted."""

from __future__ import annotations

import asyncio
from collections import deque

from gateway.domain.footage import CameraCondition, CameraReported, PartWritten, SegmentFinished

MOST_UNREAD_SEGMENTS = 10_000


class ReportBuffer:
    """The unread segments and parts in order, and each camera's latest state. Belongs to the event loop."""

    def __init__(self, *, most_segments: int = MOST_UNREAD_SEGMENTS) -> None:
        self._most = most_segments
        self._segments: deque[SegmentFinished | PartWritten] = deque()
        self._cameras: dict[int, CameraReported] = {}
        self._conditions: dict[int, tuple[CameraCondition, str]] = {}
        self._added = asyncio.Event()
        self.unreported_segments = 0
        """The number of segments whose report was dropped for lack of room; their files are adopted by name later."""

    def add(self, report: SegmentFinished | PartWritten | CameraReported) -> None:
        """Keep a report until it is taken, and wake the reader.

        The figures of a camera whose condition has not changed wake nobody: they wait for the next heartbeat.
        """
        if isinstance(report, CameraReported):
            condition = report.condition, report.detail
            before, self._conditions[report.camera_id] = self._conditions.get(report.camera_id), condition
            self._cameras[report.camera_id] = report
            if condition == before:
                return
        else:
            if len(self._segments) >= self._most:
                self.unreported_segments += isinstance(self._segments.popleft(), SegmentFinished)
            self._segments.append(report)
        self._added.set()

    def forget(self, camera_id: int) -> None:
        """Stop reporting the state of a camera that left this worker; its segments are still reported."""
        self._cameras.pop(camera_id, None)
        self._conditions.pop(camera_id, None)

    def take(self) -> list[SegmentFinished | PartWritten | CameraReported]:
        """Return and remove all unread reports, segments and parts first."""
        reports: list[SegmentFinished | PartWritten | CameraReported] = [*self._segments, *self._cameras.values()]
        self._segments.clear()
        self._cameras.clear()
        self._added.clear()
        return reports

    def wake(self) -> None:
        """Wake a waiting reader although nothing was added."""
        self._added.set()

    async def wait(self) -> None:
        """Wait until there may be something to take."""
        await self._added.wait()
