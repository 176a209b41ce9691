from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from drivers.rtsp.timestamps import Timestamps

STEP = 3_600


def run(raws, *, reordering=0, pace=0.04):
    times = Timestamps(reordering=reordering)
    return [times.times(raw & 0xFFFFFFFF, 100.0 + number * pace) for number, raw in enumerate(raws)], times


def test_true_timestamps_are_kept_through_the_wrap():
    told, times = run([0xFFFFFFFF - 5 * STEP + number * STEP for number in range(20)])
    assert {after[0] - before[0] for before, after in pairwise(told)} == {STEP}
    assert all(pts == dts for pts, dts in told)
    assert times.repaired == 0


def test_a_burst_of_what_a_camera_had_cached_is_true():
    told, times = run([number * STEP for number in range(300)], pace=0.0)
    assert times.repaired == 0
    assert told[-1][0] - told[0][0] == 299 * STEP


def test_a_long_pause_is_as_long_as_it_was():
    times = Timestamps()
    assert times.times(0, 10.0)[0] == 0
    assert times.times(90_000 * 30, 40.0)[0] == 90_000 * 30
    assert times.repaired == 0


def test_a_jump_is_replaced_by_the_time_that_passed():
    for jump in (20_000_000, -20_000_000, 200_000):
        told, times = run([number * STEP + (number >= 5) * jump for number in range(10)])
        assert times.repaired == 1
        assert all(abs(after[0] - before[0] - STEP) < 5 for before, after in pairwise(told))


def test_a_count_in_another_unit_than_was_announced_gives_way_to_the_arrivals():
    told, times = run([number * STEP // 10 for number in range(2_000)])
    steps = [after[0] - before[0] for before, after in pairwise(told)]
    assert all(abs(step - STEP) < 5 for step in steps[510:])  # it is judged over 20 s
    assert times.repaired > 1_400


def test_a_network_that_holds_pictures_up_changes_no_time():
    """For 8 s of each 20 nothing comes, and then all of it at once; the count is right."""
    times = Timestamps()
    told = []
    for number in range(3_000):
        filmed = number * 0.04
        arrived = filmed if filmed % 20 < 12 else filmed - filmed % 20 + 20
        told.append(times.times(number * STEP, 100.0 + arrived)[0])
    assert times.repaired == 0
    assert {after - before for before, after in pairwise(told)} == {STEP}


def test_a_long_pause_says_nothing_of_the_pace():
    times = Timestamps()
    at = [0.04 * number + 30.0 * (number // 100) for number in range(1_000)]
    told = [times.times(round(90_000 * second), 10.0 + second)[0] for second in at]
    assert times.repaired == 0
    assert told[-1] == round(90_000 * at[-1])


def test_slips_do_not_add_up():
    told, times = run([number * STEP - (number % 5 == 4) * STEP for number in range(1_000)])
    assert times.repaired == 200
    assert abs(told[-1][0] - told[0][0] - 999 * STEP) <= STEP


def test_a_picture_that_slips_and_comes_late_shifts_none_after_it():
    times = Timestamps()
    told = []
    for number in range(50):
        late = 0.7 * (number == 20)
        told.append(times.times(number * STEP - (number == 20) * STEP, 100.0 + number * 0.04 + late)[0])
    assert times.repaired == 1
    assert {after - before for before, after in pairwise(told)} == {STEP}


def test_a_count_that_stays_a_little_behind_is_a_new_count():
    """The camera counts on from four pictures ago; pictures then arrive at times that vary."""
    times = Timestamps()
    told = []
    for number in range(200):
        late = 0.03 * (number % 7 == 3)
        told.append(times.times(number * STEP - (number >= 20) * 4 * STEP, 100.0 + number * 0.04 + late)[0])
    assert times.repaired <= 20
    assert {after - before for before, after in pairwise(told[40:])} == {STEP}
    assert abs(told[-1] - told[0] - 199 * STEP) < STEP


def test_a_count_that_stands_still_goes_on_by_arrival():
    told, _ = run([7] * 500)
    assert abs(told[-1][0] - told[0][0] - 499 * STEP) < 500


def test_reordered_pictures_get_decoding_times_that_grow():
    order = [0, 3, 1, 2, 6, 4, 5, 9, 7, 8]
    told, times = run([number * STEP for number in order], reordering=2)
    assert [pts // STEP for pts, _ in told] == order
    assert times.repaired == 0
    assert [dts // STEP for _, dts in told] == [-2, -1, 0, 1, 2, 3, 4, 5, 6, 7]


@given(st.lists(st.integers(0, 0xFFFFFFFF), max_size=60), st.integers(0, 4), st.floats(0, 0.5))
def test_whatever_is_told_decoding_times_grow_and_come_before_presentation(raws, reordering, pace):
    told, _ = run(raws, reordering=reordering, pace=pace)
    assert all(before[1] < after[1] for before, after in pairwise(told))
    assert all(dts <= pts for pts, dts in told)
