"""The bound on lines of one kind."""

from __future__ import annotations

from gateway.runtime.logs import LogRate


def test_what_comes_again_and_again_is_written_a_few_times_and_then_counted():
    rate = LogRate(most=3)
    said = [rate.admits("drivers", "garbled", now=float(number)) for number in range(10)]
    assert [admitted for admitted, _ in said] == [True] * 3 + [False] * 7
    assert rate.admits("drivers", "silent", now=9.0) == (True, 0)
    assert rate.admits("drivers", "garbled", now=59.9) == (False, 0)
    assert rate.admits("drivers", "garbled", now=60.0) == (True, 8)
    assert rate.admits("drivers", "garbled", now=61.0) == (True, 0)


def test_any_number_of_kinds_takes_bounded_room():
    rate = LogRate(most=1)
    assert sum(rate.admits("library", f"text {number}", now=1.0)[0] for number in range(10_000)) == 501
    assert rate.admits("library", "another", now=70.0) == (True, 0)  # the kinds of a minute ago are forgotten
