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
