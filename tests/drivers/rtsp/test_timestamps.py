import random
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivers.rtsp.audio_clock import SenderReport
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
    assert all(abs(step - STEP) < 5 for step in steps[510:])
    assert abs(told[-1][0] - told[0][0] - 1_999 * STEP) < STEP
    assert times.repaired == 0


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


def sent(stamped, rates, *, seconds=90, clock=90_000, late=lambda number: 0.0, batch=0.0, factor=1.0):
    """Run pictures that a camera stamps `stamped` a second and sends at these rates, one after the other.

    Return the error of each picture's time in seconds, with its time, and the timestamps. `batch`: the seconds for
    which a reader collects pictures. `factor`: the pace that an earlier connection showed.
    """
    times, errors, waiting, at, number, begin = Timestamps(factor=factor), [], [], 0.0, 0, None
    while at < seconds:
        waiting.append((at, round(number * clock / stamped) & 0xFFFFFFFF))
        if not batch or int((at + 0.001) / batch) > int((waiting[0][0] + 0.001) / batch) or len(waiting) == 1:
            for filmed, raw in waiting:
                pts, _ = times.times(raw, 100.0 + at + late(number), clock=clock)
                begin = pts if begin is None else begin
                errors.append((filmed, round((pts - begin) / 90_000 - filmed, 6)))
            waiting = []
        number += 1
        at += 1 / rates[min(len(rates) - 1, int(at * len(rates) / seconds))]
    return errors, times


@pytest.mark.parametrize(
    ("stamped", "rate"), [(25, 21), (12, 8.4), (20, 25), (25, 24.25), (25, 12.5), (25, 49), (30, 5), (25, 25), (25, 24)]
)
def test_timestamps_at_another_pace_are_scaled_to_real_time(stamped, rate):
    for clock, batch in product((8_000, 90_000), (0.0, 0.5)):
        errors, times = sent(stamped, [rate], clock=clock, batch=batch)
        assert abs(times.pace.factor - stamped / rate) < 0.01 * stamped / rate
        assert times.repaired == 0
        settled = [error for at, error in errors if at > 30]
        assert max(settled) - min(settled) < 0.4
        assert all(abs(error) < 0.6 for error in settled)
        is_off = stamped != rate
        assert (abs(times.pace.told(190.0) - rate / stamped) < 0.02) if is_off else times.pace.told(190.0) == 1.0


def test_a_pace_that_an_earlier_connection_showed_counts_from_the_first_picture():
    errors, times = sent(25, [21], factor=25 / 21)
    assert max(abs(error) for _, error in errors) < 0.02
    assert abs(times.pace.told(190.0) - 21 / 25) < 0.01


def test_a_pace_that_was_remembered_and_is_over_is_corrected():
    errors, times = sent(25, [25], factor=25 / 21)
    assert abs(times.pace.factor - 1) < 0.01
    assert all(abs(error) < 0.6 for at, error in errors if at > 30)


def test_a_pace_that_changes_is_followed():
    errors, times = sent(25, [25, 15, 25, 20], seconds=240)
    assert abs(times.pace.factor - 1.25) < 0.01
    assert max(abs(error) for _, error in errors) < 2
    assert abs(errors[-1][1]) < 0.3


def test_pictures_that_come_unevenly_keep_their_times():
    """A network delays each picture by up to 0.3 s; the camera's clock is right."""
    chance = random.Random(7)
    errors, times = sent(25, [25], seconds=600, late=lambda _: chance.random() * 0.3)
    assert times.pace.factor == 1.0
    assert {error for _, error in errors} == {0.0}


def test_pictures_that_catch_up_show_no_pace():
    """The network stops for 8 s, and what waited comes in 8 s at twice the rate; this again and again."""
    times, told = Timestamps(), []
    for number in range(4_500):
        filmed = number * 0.04
        since = filmed % 30 - 10
        arrived = filmed if since < 0 or since > 16 else filmed - since + 8 + since / 2
        told.append(times.times(number * STEP, 100.0 + arrived)[0])
    assert times.pace.factor == 1.0
    assert {after - before for before, after in pairwise(told)} == {STEP}


def test_a_delay_that_grows_at_once_shows_no_pace():
    errors, times = sent(1, [1], seconds=300, late=lambda number: 0.9 * (number > 50))
    assert times.pace.factor == 1.0
    assert {error for _, error in errors} == {0.0}


def test_reports_of_a_true_clock_doubt_a_delay_that_grows():
    """The network carries nine pictures in the time of ten, and the camera's reports say that its clock is right."""
    doubted, believed = Timestamps(), Timestamps()
    for number in range(200):
        arrived = 100.0 + number * 0.04 * 1.1
        for times in (doubted, believed):
            if number % 50 == 0 and times is doubted:
                seconds = number * 0.04
                times.reported(SenderReport(int(seconds * 2**32) + 2**60, number * STEP))
            times.times(number * STEP, arrived)
    assert doubted.pace.factor == 1.0
    assert believed.pace.factor > 1.05


@pytest.mark.parametrize("pictures", [2, 3])
@pytest.mark.parametrize("apart", [0.0, 0.02])
def test_pictures_that_share_a_timestamp_are_spread_over_its_time(pictures, apart):
    times, told = Timestamps(), []
    for stamp in range(250):
        at = [100.0 + stamp * 0.04 + number * min(apart, 0.039 / pictures) for number in range(pictures)]
        told += [times.times(stamp * STEP, arrived)[0] for arrived in at]
    assert abs(told[-1] - told[0] - 250 * STEP) <= STEP
    steps = {after - before for before, after in pairwise(told[50:])}
    assert max(steps) - min(steps) < STEP // 10
    assert times.repaired <= pictures


def test_reordered_pictures_are_scaled_too():
    times, told = Timestamps(reordering=2), []
    order = [place for group in range(300) for place in (3 * group + 3, 3 * group + 1, 3 * group + 2)]
    for number, place in enumerate([0, *order]):
        told.append((*times.times(place * STEP, 100.0 + number / 21), place))
    assert abs(times.pace.factor - 25 / 21) < 0.01
    assert times.repaired == 0
    assert [place for _, _, place in sorted(told)] == sorted(place for _, _, place in told)
    assert all(before[1] < after[1] for before, after in pairwise(told))
