"""Operations that central denies or fails with: paused, tried again more rarely, and clear once one goes through."""

from __future__ import annotations

import pytest

from gateway.central.push.outbox import PausedOperations
from gateway.runtime.supervision import Backoff

EVENTS, CARDS = ("camera_event", "create"), ("card", "update")


class Time:
    now = 1_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def paused(time):
    backoff = Backoff(first=10, longest=40)
    return PausedOperations(monotonic=time, denied_backoff=backoff, failing_backoff=backoff)


def test_a_denied_operation_is_paused_alone_and_for_a_time(paused, time):
    assert paused.denied(EVENTS)
    assert not paused.denied(EVENTS), "only the first denial is new"
    assert paused.now() == {EVENTS}
    assert 0 < paused.left() <= 20
    time.now += 20
    assert paused.now() == frozenset()
    assert paused.left() is None
    assert paused.is_doubtful(EVENTS)
    assert not paused.is_doubtful(CARDS)


def test_the_third_failure_in_a_row_pauses_and_is_told(paused):
    for times in (1, 2):
        assert paused.failed(EVENTS, "database is unavailable") == times
        assert paused.now() == frozenset()
        assert paused.failing() == ()
    paused.failed(EVENTS, "database is unavailable")
    assert paused.now() == {EVENTS}
    assert paused.failing() == ("database is unavailable",)


@pytest.mark.parametrize("denied", [True, False])
def test_an_operation_that_went_through_is_as_if_it_had_never_failed(paused, denied):
    for _ in range(3):
        paused.denied(EVENTS) if denied else paused.failed(EVENTS, "database is unavailable")
    paused.denied(CARDS)
    assert paused.went_through(EVENTS)
    assert paused.now() == {CARDS}
    assert not paused.is_doubtful(EVENTS)
    assert paused.failing() == ()
    assert not paused.went_through(EVENTS), "it was not paused any more"
    assert paused.failed(EVENTS, "once more") == 1


def test_one_failure_that_is_over_was_no_pause(paused):
    paused.failed(EVENTS, "once")
    assert not paused.went_through(EVENTS)
    assert not paused.is_doubtful(EVENTS)
