"""Readers that have read nothing for longer than they usually do, by their readings of each day. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from gateway.domain.day_counts import DayCount, Measure

_LEAST_DAYS = 10
"""A reader that has read something on fewer days is not known well enough."""
_EXPECTED = 10.0
"""So many readings must be missing: a reader that is rarely used has days without one."""


@dataclass(frozen=True, slots=True)
class SilentReader:
    """A reader that has read nothing for `days` whole days, though it usually reads `a_day`."""

    device_id: int
    days: int
    a_day: float


def silent_readers(counts: Iterable[DayCount], *, readers: Collection[int], today: str) -> Iterator[SilentReader]:
    """Yield the silent ones of these readers. Days on which nothing was read at the whole site do not count.

    A site with a single reader has no other to tell a closed site from a silent reader: there all days count, and
    weekends are among its usual pauses.
    """
    amounts = _amounts(counts, today)
    for reader in readers:
        own = amounts.get(reader, {})
        if len(own) >= _LEAST_DAYS:
            others = {day for number, days in amounts.items() if number != reader for day in days}
            yield from _judged(reader, own, others or _all_days(min(own), date.fromisoformat(today)))


def regular_readers(counts: Collection[DayCount], *, readers: Collection[int], today: str) -> frozenset[int]:
    """Return those of these readers that are read regularly: known well enough, and not silent."""
    amounts = _amounts(counts, today)
    known = {reader for reader in readers if len(amounts[reader]) >= _LEAST_DAYS}
    return frozenset(known - {one.device_id for one in silent_readers(counts, readers=known, today=today)})


def _amounts(counts: Iterable[DayCount], today: str) -> defaultdict[int, dict[date, int]]:
    """Return the readings of each reader on each day before `today`, days without any left out."""
    amounts: defaultdict[int, dict[date, int]] = defaultdict(dict)
    for one in counts:
        if one.measure is Measure.READINGS and one.day < today and one.amount:
            amounts[int(one.part)][date.fromisoformat(one.day)] = one.amount
    return amounts


def _judged(reader: int, own: dict[date, int], open_days: Collection[date]) -> Iterator[SilentReader]:
    known = sorted(day for day in {*open_days, *own} if day >= min(own))
    pauses = [0]
    for day in known:
        pauses = [*pauses, 0] if day in own else [*pauses[:-1], pauses[-1] + 1]
    *usual, now = pauses
    a_day = sum(own.values()) / (len(known) - now)
    if now > 2 * max(usual) and now * a_day >= _EXPECTED:
        yield SilentReader(reader, now, a_day)


def _all_days(first: date, until: date) -> set[date]:
    return {first + timedelta(days=number) for number in range((until - first).days)}
