"""Throttling in virtual time."""

from drivers.throttle import Throttle


def test_waits_double_up_to_a_minute_after_the_free_ones():
    throttle, now, waits = Throttle(free=2), 0.0, []
    for _ in range(10):
        throttle.failed("x", now=now)
        waits.append(throttle.wait("x", now=now))
        now += waits[-1]
    assert waits == [0, 0, 2, 4, 8, 16, 32, 60, 60, 60]
    assert throttle.wait("y", now=now) == 0


def test_success_and_time_forgive():
    throttle = Throttle(free=1)
    for _ in range(3):
        throttle.failed("x", now=0)
    assert throttle.wait("x", now=0) > 0
    throttle.succeeded("x")
    assert throttle.wait("x", now=0) == 0
    throttle.failed("x", now=10)
    throttle.failed("x", now=10_000)
    assert throttle.wait("x", now=10_000) == 0


def test_memory_is_bounded():
    throttle = Throttle(free=0)
    for number in range(10_000):
        throttle.failed(number, now=0)
    assert throttle.wait(0, now=0) == 0
    assert throttle.wait(9_999, now=0) > 0
