"""Date filters of clients: a day or a moment in ISO 8601, in the site's time zone unless it has an offset."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from gateway.web.http.errors import RequestRefused

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FOR_EVER = 2**63 - 1
_SHOWN = 1_000
"""Microseconds in a millisecond. Moments are shown to the millisecond, so an end filter includes its whole one."""


def from_micros(text: str, zone: ZoneInfo) -> int:
    """Return the first microsecond (UTC) of a start filter. Raises ValueError with the accepted forms."""
    return _micros(_moment(text, zone))


def until_micros(text: str, zone: ZoneInfo) -> int:
    """Return the first microsecond (UTC) after an end filter, which includes its day or its millisecond."""
    moment = _moment(text, zone)
    if not _DAY.fullmatch(text.strip()):
        return _micros(moment) + _SHOWN
    try:
        return _micros(
            moment + timedelta(days=1)
        )  # wall arithmetic: the next local midnight, also across a change of summer time
    except OverflowError:
        return _FOR_EVER


def asked_period(
    start_date: str, end_date: str, zone: ZoneInfo, *, names: tuple[str, str] = ("start_date", "end_date")
) -> tuple[int | None, int | None]:
    """Parse a request's start and end; return (first microsecond, first microsecond after), None for a blank date.

    Raises RequestRefused with the name of the wrong field, from `names`.
    """
    place = names[0]
    try:
        start = from_micros(start_date, zone) if start_date.strip() else None
        place = names[1]
        end = until_micros(end_date, zone) if end_date.strip() else None
    except ValueError as error:
        raise RequestRefused(400, f"{place}: {error}") from error
    return start, end


def _moment(text: str, zone: ZoneInfo) -> datetime:
    written = text.strip()
    try:
        if _DAY.fullmatch(written):
            day = date.fromisoformat(written)
            return datetime(day.year, day.month, day.day, tzinfo=zone)
        moment = datetime.fromisoformat(written)
    except ValueError as error:
        raise ValueError("must be a date like 2026-01-31 or a moment like 2026-01-31T12:00:00Z") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)


def _micros(moment: datetime) -> int:
    try:
        return (moment.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)
    except OverflowError as error:
        raise ValueError("is out of range") from error
