"""Readers that are silent for longer than they usually are, and those that only rest."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from gateway.domain.day_counts import DayCount, Measure, SilentReader, regular_readers, silent_readers

TODAY = date(2026, 11, 30)  # a Monday
READER, OTHER = 102, 104


def counts(reader: int, amounts: dict[int, int]) -> list[DayCount]:
    """Return a reader's readings by how many days ago."""
    return [
        DayCount((TODAY - timedelta(days=ago)).isoformat(), Measure.READINGS, str(reader), amount)
        for ago, amount in amounts.items()
    ]


def silent(own: dict[int, int], others: dict[int, int]) -> list[SilentReader]:
    known = [*counts(READER, own), *counts(OTHER, others)]
    return list(silent_readers(known, readers=(READER,), today=TODAY.isoformat()))


def test_a_busy_reader_that_reads_nothing_for_a_day_is_silent():
    own = dict.fromkeys(range(2, 22), 40)
    assert silent(own, dict.fromkeys(range(22), 40)) == [SilentReader(READER, 1, 40.0)]


@pytest.mark.parametrize(
    ("own", "others"),
    [
        (dict.fromkeys(range(1, 22), 40), dict.fromkeys(range(22), 40)),  # it read something yesterday
        (dict.fromkeys(range(2, 22), 1), dict.fromkeys(range(22), 40)),  # rarely used
        (dict.fromkeys(range(12, 26), 40), dict.fromkeys(range(12, 26), 40)),  # the site is closed
        (dict.fromkeys(range(2, 9), 40), dict.fromkeys(range(22), 40)),  # not known for long enough
        ({ago: 40 for ago in range(3, 24) if ago % 7 not in (1, 2)}, dict.fromkeys(range(24), 40)),  # its weekend
        ({ago: 40 for ago in range(3, 24) if ago % 7 not in (1, 2)}, {}),  # the weekend of a single reader
        ({}, dict.fromkeys(range(22), 40)),  # never used
    ],
)
def test_a_reader_that_rests_as_usual_is_not_silent(own, others):
    assert silent(own, others) == []


def test_the_only_reader_of_a_site_is_silent_after_twice_its_longest_pause():
    own = {ago: 40 for ago in range(6, 27) if ago % 7 not in (1, 2)}
    assert silent(own, {}) == [SilentReader(READER, 5, pytest.approx(40 * 15 / 21))]


@pytest.mark.parametrize(
    ("own", "is_regular"),
    [
        (dict.fromkeys(range(1, 11), 1), True),
        (dict.fromkeys(range(1, 10), 40), False),  # not known for long enough
        (dict.fromkeys(range(10), 40), False),  # today's do not count
        (dict.fromkeys(range(3, 22), 40), False),  # it is silent
    ],
)
def test_a_reader_is_read_regularly_if_it_is_known_and_not_silent(own, is_regular):
    known = [*counts(READER, own), *counts(OTHER, dict.fromkeys(range(22), 40))]
    found = regular_readers(known, readers=(READER,), today=TODAY.isoformat())
    assert found == ({READER} if is_regular else set())
