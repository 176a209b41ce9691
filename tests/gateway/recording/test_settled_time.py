"""Wall time for what is deleted by its age."""

from __future__ import annotations

import pytest

from gateway.recording.retention import SettledTime
from gateway.runtime.clock import Stamp

START = 1_800_000_000_000_000
DAY_SECONDS = 86_400
YEAR = 365 * DAY_SECONDS * 1_000_000


def seen(known, *looks):
    """Looks as (monotonic seconds, micros that the clock is wrong by, whether it is trusted)."""
    for uptime, wrong, trusted in looks:
        known = known.seen(Stamp(START + uptime * 1_000_000 + wrong, trusted=trusted), uptime)
    return known


FRESH = SettledTime(START, 0.0, trusted=True)


def test_it_follows_a_clock_that_runs_or_is_corrected_a_little():
    known = seen(FRESH, (10, 0, True), (20, 5_000_000, True), (3600, -2_000_000, True))
    assert known.at(3600) == START + 3_598_000_000
    assert known.doubted_since is None


def test_a_clock_set_forward_is_believed_after_a_day():
    known = seen(FRESH, (10, 0, True), (20, YEAR, True), (DAY_SECONDS, YEAR, True))
    assert known.at(DAY_SECONDS) == START + DAY_SECONDS * 1_000_000
    assert known.doubted_since == 20
    assert seen(known, (DAY_SECONDS + 20, YEAR, True)).at(DAY_SECONDS) == START + DAY_SECONDS * 1_000_000 + YEAR


def test_a_day_is_counted_from_the_last_time_that_it_was_right():
    known = seen(FRESH, (20, YEAR, True), (5000, 0, True), (6000, YEAR, True), (DAY_SECONDS + 5000, YEAR, True))
    assert known.doubted_since == 6000


def test_one_set_back_is_followed_and_its_return_is_doubted():
    known = seen(FRESH, (20, -YEAR, True))
    assert known.at(20) == START + 20_000_000 - YEAR
    assert seen(known, (30, 0, True)).at(30) == START + 30_000_000 - YEAR


@pytest.mark.parametrize(("trusted", "believed"), [(True, True), (False, False)])
def test_a_clock_that_gets_its_time_for_the_first_time_is_believed_at_once(trusted, believed):
    known = seen(SettledTime(0, 0.0, trusted=False), (20, 0, trusted))
    assert (known.at(20) == START + 20_000_000) is believed


def test_an_untrusted_clock_that_was_set_forward_is_never_believed():
    known = seen(FRESH, (20, YEAR, False), (3 * DAY_SECONDS, YEAR, False))
    assert known.at(0) == START
