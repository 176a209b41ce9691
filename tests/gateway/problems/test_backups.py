"""Problems of backups: the last one failed, or no good one came for long."""

from __future__ import annotations

import pytest

from gateway.domain.problems import ProblemKind as K
from gateway.problems.found import LastBackup, problems_of_backups

NOW = 1_772_323_200_000_000
HOUR = 3_600_000_000
DAY = 24 * HOUR


def found(last, *, now=NOW, overdue_hours=30.0):
    return [
        (one.kind, str(one.text), one.since) for one in problems_of_backups(last, now=now, overdue_hours=overdue_hours)
    ]


def test_nothing_is_expected_before_the_first_backup():
    assert found(None) == []


@pytest.mark.parametrize(
    ("age", "text"),
    [
        (29 * HOUR, None),
        (31 * HOUR, "the last good backup is 31 hours old"),
        (9 * DAY, "the last good backup is 9 days old"),
    ],
)
def test_a_good_backup_becomes_too_old(age, text):
    due = NOW - age + 30 * HOUR
    assert found(LastBackup(good_at=NOW - age)) == ([] if text is None else [(K.BACKUP_OVERDUE, text, due)])


def test_nothing_is_overdue_where_none_is_wanted_or_the_clock_was_set_back():
    old = LastBackup(good_at=NOW - 9 * DAY)
    assert found(old, overdue_hours=0) == []
    assert found(old, now=NOW - 10 * DAY) == []


def test_a_failure_is_told_since_the_first_and_instead_of_the_age():
    last = LastBackup(NOW - 9 * DAY, NOW - 7 * DAY, K.BACKUP_NO_ROOM, "there is no room for the backup in /b")
    told = "the last backup failed: there is no room for the backup in /b"
    assert found(last) == [(K.BACKUP_NO_ROOM, told, NOW - 7 * DAY)]
    assert found(last, overdue_hours=0) == found(last)
