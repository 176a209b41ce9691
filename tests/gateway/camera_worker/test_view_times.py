"""A viewer's timestamps only grow, whatever the camera's do."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drivers.rtsp.frames import TICKS_PER_SECOND, EncodedFrame
from gateway.camera_worker.viewer import ViewTimes


def frame(pts: int, arrived: float) -> EncodedFrame:
    return EncodedFrame(b"", pts, pts, keyframe=False, arrived=arrived)


def test_frames_keep_their_distance():
    times = ViewTimes()
    assert [times.time(frame(pts, pts / 90_000), behind=False) for pts in (500, 4_100, 7_700)] == [0, 3_600, 7_200]


def test_what_is_sent_to_catch_up_takes_a_millisecond_each():
    times = ViewTimes()
    told = [times.time(frame(number * 3_600, number / 25), behind=number < 49) for number in range(51)]
    assert told[48] == 48 * 90
    assert told[50] - told[49] == 3_600


def test_a_jump_becomes_the_time_that_passed():
    times = ViewTimes()
    times.time(frame(0, 10.0), behind=False)
    assert times.time(frame(2**40, 10.5), behind=False) == TICKS_PER_SECOND // 2
    assert times.time(frame(0, 11.0), behind=False) == TICKS_PER_SECOND


@given(st.lists(st.tuples(st.integers(-(2**33), 2**33), st.floats(0, 1e6), st.booleans()), min_size=2))
def test_times_always_grow(frames):
    times = ViewTimes()
    told = [times.time(frame(pts, arrived), behind=behind) for pts, arrived, behind in frames]
    assert told == sorted(set(told))
