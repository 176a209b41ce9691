import asyncio

import pytest

from gateway.camera_worker.reports import ReportBuffer
from gateway.domain.footage import CameraCondition, CameraReported, SegmentFinished


def segment(n):
    return SegmentFinished(camera_id=1, path=str(n), started_at=n, clock_trusted=True, duration=1, size=1)


async def test_segments_that_do_not_fit_are_counted_and_states_are_the_latest():
    reports = ReportBuffer(most_segments=2)
    for n in range(5):
        reports.add(segment(n))
        reports.add(CameraReported(camera_id=1, condition=CameraCondition.RECORDING, frames=n))
    taken = reports.take()
    assert [item.started_at for item in taken[:2]] == [3, 4]
    assert reports.unreported_segments == 3
    assert [item.frames for item in taken[2:]] == [4]
    assert reports.take() == []


async def test_figures_wake_nobody_and_what_a_camera_is_does():
    reports = ReportBuffer()
    reports.add(CameraReported(camera_id=1, condition=CameraCondition.RECORDING, frames=1))
    await asyncio.wait_for(reports.wait(), 30)
    reports.take()
    reports.add(CameraReported(camera_id=1, condition=CameraCondition.RECORDING, frames=2))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reports.wait(), 0)
    reports.add(CameraReported(camera_id=1, condition=CameraCondition.STALLED, frames=3))
    await asyncio.wait_for(reports.wait(), 30)
    assert [item.frames for item in reports.take()] == [3]
    reports.add(CameraReported(camera_id=1, condition=CameraCondition.STALLED, frames=4))
    assert [item.frames for item in reports.take()] == [4]
    reports.forget(1)
    reports.add(CameraReported(camera_id=1, condition=CameraCondition.STALLED, frames=5))
    await asyncio.wait_for(reports.wait(), 30)
