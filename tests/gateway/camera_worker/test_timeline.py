from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gateway.camera_worker.segmenter import EASY_DRIFT_MICROS, LONGEST_SLEW_MICROS, Timeline

START = 1_800_000_000_000_000


def test_ticks_become_micros_without_adding_up_errors():
    timeline = Timeline(pts=12_345, at=START)
    ends = [timeline.moment_of(12_345 + 3_003 * n) for n in range(100_000)]
    assert ends[-1] - START == 3_003 * 99_999 * 100 // 9


@given(st.lists(st.integers(0, 3_000_000), min_size=1, max_size=50))
def test_late_frames_move_nothing(lateness):
    timeline = Timeline(pts=0, at=START)
    for n, late in enumerate([0, *lateness]):
        timeline.observe(pts=n * 3600, arrived=timeline.moment_of(n * 3600) + late)
    assert timeline.settle(first=False) is False
    assert timeline.moment_of(0) == START


def test_a_burst_at_the_beginning_sets_the_first_segment_back():
    timeline = Timeline(pts=0, at=START)
    for n in range(25):
        timeline.observe(pts=n * 3600, arrived=START)
    assert timeline.settle(first=True) is False
    assert timeline.moment_of(24 * 3600) == START


def test_a_clock_step_sets_the_anchor_anew_at_the_boundary():
    timeline = Timeline(pts=0, at=START)
    step = -3_600_000_000
    timeline.observe(pts=3600, arrived=timeline.moment_of(3600) + step)
    assert timeline.settle(first=False) is True
    assert timeline.moment_of(0) == START + step


def test_small_drift_is_left_alone():
    timeline = Timeline(pts=0, at=START)
    timeline.observe(pts=0, arrived=START + EASY_DRIFT_MICROS)
    assert timeline.settle(first=False) is False
    assert timeline.moment_of(0) == START


def test_a_busy_machine_moves_nothing_for_a_moment():
    timeline = Timeline(pts=0, at=START)
    for second in range(60):
        late = 300_000 if second % 5 in (1, 2) else 0
        timeline.observe(pts=second * 90_000, arrived=timeline.moment_of(second * 90_000) + late)
        timeline.settle(first=second == 0)
    assert timeline.moment_of(0) == START


def test_a_second_of_frames_held_up_for_long_moves_nothing():
    timeline = Timeline(pts=0, at=START)
    for second in range(60):
        late = 900_000 if second % 5 in (1, 2) else 0
        timeline.observe(pts=second * 90_000, arrived=timeline.moment_of(second * 90_000) + late)
        assert timeline.settle(first=second == 0) is False
    assert timeline.moment_of(0) == START


def test_frames_that_stay_late_set_the_anchor_anew():
    timeline = Timeline(pts=0, at=START)
    moved = []
    for second in range(8):
        timeline.observe(pts=second * 90_000, arrived=START + second * 1_000_000 + 2_000_000 * (second > 0))
        moved.append(timeline.settle(first=second == 0))
    assert moved.count(True) == 1
    assert timeline.moment_of(0) == START + 2_000_000


def test_a_clock_that_was_set_forward_is_followed_at_once():
    timeline = Timeline(pts=0, at=START)
    timeline.observe(pts=3600, arrived=timeline.moment_of(3600) + 5_000_000)
    assert timeline.lateness == 5_000_000
    assert timeline.settle(first=False, set_by=5_000_000) is True
    assert timeline.moment_of(0) == START + 5_000_000


@settings(max_examples=30)
@given(st.integers(-4_000, 4_000), st.integers(2, 10))
def test_a_camera_whose_clock_runs_wrong_is_followed_without_a_gap(millionths, seconds):
    """For an hour, as long as it is not off by more than a step in each segment: of two seconds, half a percent."""
    length = seconds
    assume(abs(millionths) * length <= LONGEST_SLEW_MICROS * 9 // 10)
    timeline = Timeline(pts=0, at=START)
    ended = START
    for number in range(3600 // length):
        begin = number * length
        for at in (begin, begin + length / 2):
            timeline.observe(pts=round(at * 90_000 * (1 + millionths / 1e6)), arrived=START + round(at * 1e6))
        assert timeline.settle(first=number == 0) is False
        ticks = [round(at * 90_000 * (1 + millionths / 1e6)) for at in (begin, begin + length)]
        started = timeline.moment_of(ticks[0])
        assert abs(started - ended) <= LONGEST_SLEW_MICROS + 1_000
        assert abs(started - (START + begin * 1_000_000)) < EASY_DRIFT_MICROS + 50_000
        ended = timeline.moment_of(ticks[1])
