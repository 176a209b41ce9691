"""Dates and times in central's records, which may come in several forms. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta, tzinfo
from functools import lru_cache

from pydantic import JsonValue

from gateway.sync.values import text_of

_DATE_ONLY = re.compile(r"\d{4}-\d{2}-\d{2}")
_NO_DATE = re.compile(r"(0000-00-00.*)?")
_LONG_AGO = -62_135_596_800_000_000  # the year 1, as far back as dates go
_MILLISECONDS_FROM = 100_000_000_000  # as seconds that would be the year 5138
_NUMBERS_BELOW = 1_000_000_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_TEXTS_KNOWN = 4096  # a list's cards have few different dates

Read = tuple[int | None, bool]


def read_moment(value: JsonValue, zone: tzinfo, *, ends: bool) -> Read:
    """Wall micros or None for no bound, and whether the value could be read. A last day lasts until its end.

    Without an offset it is of this zone.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not 0 < value < _NUMBERS_BELOW:
            return None, value == 0
        return int(value * (1_000 if value >= _MILLISECONDS_FROM else 1_000_000)), True
    if isinstance(value, dict | list):
        return None, not value  # a date in parts is no absent one
    return _read_text(text_of(value), zone, ends)


def is_no_date(text: str) -> bool:
    """Whether it is empty, or a database's way to write that there is no date."""
    return _NO_DATE.fullmatch(text) is not None


@lru_cache(_TEXTS_KNOWN)
def _read_text(text: str, zone: tzinfo, ends: bool) -> Read:  # noqa: FBT001 (a cache tells calls apart by their form)
    if is_no_date(text):
        return None, True
    try:
        moment = datetime.fromisoformat(text)
        if _DATE_ONLY.fullmatch(text):
            moment = datetime.combine(moment.date() + timedelta(days=1 if ends else 0), time(), zone)
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except OverflowError:
        return (_LONG_AGO if text.startswith("0001") else None), True  # the year 9999: for ever
    except ValueError:
        return None, False
    return (moment - _EPOCH) // _MICROSECOND, True
