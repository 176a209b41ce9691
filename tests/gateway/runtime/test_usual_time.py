"""The limits at which an operation counts as slow, and as well again."""

from __future__ import annotations

from gateway.central.central_link import notices
from gateway.central.client.state import CentralState, slow_from
from gateway.domain.problems import ProblemKind
from gateway.runtime.timings import UsualTime


def after(times, *seconds):
    for each in seconds:
        times.took(each)
    return times.slow_seconds


def test_three_slow_ones_of_five_are_slow_and_fewer_are_not():
    assert not after(UsualTime(limit_seconds=3), 9, 9, 9, 9), "too few to tell"
    assert not after(UsualTime(limit_seconds=3), 9, 0, 9, 0, 0)
    assert after(UsualTime(limit_seconds=3), 9, 0, 4, 0, 4) == 3


def test_slow_stays_slow_until_most_take_less_than_half_of_the_limit():
    times = UsualTime(limit_seconds=3)
    assert after(times, *[3.1] * 5)
    assert after(times, *[2.0] * 5), "at the border it is told once"
    assert not after(times, *[1.4] * 3)


def test_what_is_slow_of_central_follows_a_short_time_out():
    assert slow_from(15) == 3
    assert slow_from(4) == 2


def test_a_slow_central_is_a_notice_while_it_answers_at_all():
    state = CentralState(reachable=True, slow_answers=3.0)
    (notice,) = notices(state, None, clock_alert_seconds=30, unreadable_events=0)
    assert notice.kind is ProblemKind.CENTRAL_SLOW
    assert str(notice.text) == "most answers of central take more than 3 s"
    away = CentralState(reachable=False, slow_answers=3.0)
    assert list(notices(away, None, clock_alert_seconds=30, unreadable_events=0)) == []
