"""The problems of backups to the place that the site file names. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.domain.problems import ProblemKind
from gateway.problems.problem import Problem, gateway_problem
from gateway.texts import text

_HOUR = 3600 * 1_000_000


@dataclass(frozen=True, slots=True)
class LastBackup:
    """The last backup to the place that the site file names.

    Attributes:
        good_at: when the last good one was finished (wall micros), 0 for none yet.
        failing_since: when the first one failed after that (wall micros), 0 if the last one was good.
        kind: the kind of problem of the last failure, None if the last one was good.
        why: the last failure in one sentence, "" if the last one was good.
    """

    good_at: int = 0
    failing_since: int = 0
    kind: ProblemKind | None = None
    why: str = ""


def problems_of_backups(last: LastBackup | None, *, now: int, overdue_hours: float) -> Iterator[Problem]:
    """Yield the problem that the last backup failed, or that no good one came for long.

    Args:
        last: None if no backup was tried yet; then none is expected.
        now: the time, trusted or not: a box without a time server needs backups too.
        overdue_hours: the age from which the last good backup is too old; 0 for never.
    """
    if last is None:
        return
    if last.kind is not None:
        yield gateway_problem(last.kind, text("problem.backup_failed.text", why=last.why), since=last.failing_since)
        return
    hours = (now - last.good_at) / _HOUR
    if overdue_hours and hours > overdue_hours:
        age = text("span.hours", count=round(hours)) if hours < 48 else text("span.days", count=round(hours / 24))
        due = last.good_at + int(overdue_hours * _HOUR)
        yield gateway_problem(ProblemKind.BACKUP_OVERDUE, text("problem.backup_overdue.text", span=age), since=due)
