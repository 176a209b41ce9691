"""Plain values of central's records, which come as text, numbers, or either. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta, tzinfo
from functools import lru_cache

from pydantic import JsonValue

from gateway.domain.writes import FIRST_PROVISIONAL_ID, JsonObject

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}|\d{8}|\d{4}-W\d{2}-\d|\d{4}W\d{3}", re.ASCII)
_DAY_DIGITS = range(10_000_000, 100_000_000)  # YYYYMMDD; as seconds this would be 1970 to 1973
_RUN_TOGETHER = re.compile(r"(19|20|21)\d{12}", re.ASCII)  # YYYYMMDDhhmmss; as milliseconds: 2572 to 2667
_NUMBER = re.compile(r"\d{9,13}", re.ASCII)
_NO_DATE = re.compile(r"(0000-00-00.*|0{8}|0{14})?")
_LONG_AGO = -62_135_596_800_000_000  # the year 1, as far back as dates go
_MILLISECONDS_FROM = 100_000_000_000  # as seconds that would be the year 5138
_NUMBERS_BELOW = 1_000_000_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_TEXTS_KNOWN = 4096  # a list's cards have few different dates

Read = tuple[int | None, bool]


def read_moment(value: JsonValue, zone: tzinfo, *, ends: bool) -> Read:
    """Return a bound in wall micros, None for no bound, and whether the value could be read.

    `ends`: a day without a time means its end, otherwise its beginning. A moment without an offset is in `zone`. Days
    and moments to the second may come as digits only.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        if isinstance(value, int) and (value in _DAY_DIGITS or _RUN_TOGETHER.fullmatch(str(value))):
            return _read_text(str(value), zone, ends)
        return _read_number(value)
    if isinstance(value, dict | list):
        return None, not value  # an empty list or object is no bound; a date in parts cannot be read
    return _read_text(text_of(value), zone, ends)


def _read_number(value: float) -> Read:
    """Read a number as seconds since 1970, or as milliseconds."""
    if not 0 < value < _NUMBERS_BELOW:
        return None, value == 0
    return int(value * (1_000 if value >= _MILLISECONDS_FROM else 1_000_000)), True


def is_no_date(text: str) -> bool:
    """Return whether a value is empty, or a database's way to write that there is no date."""
    return _NO_DATE.fullmatch(text) is not None


@lru_cache(_TEXTS_KNOWN)
def _read_text(text: str, zone: tzinfo, ends: bool) -> Read:  # noqa: FBT001 (a cache tells calls apart by their form)
    if is_no_date(text):
        return None, True
    if _NUMBER.fullmatch(text):
        return _read_number(int(text))
    try:
        moment = datetime.fromisoformat(f"{text[:8]}T{text[8:]}" if _RUN_TOGETHER.fullmatch(text) else text)
        if _DAY.fullmatch(text):
            moment = datetime.combine(moment.date() + timedelta(days=1 if ends else 0), time(), zone)
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except OverflowError:
        return (_LONG_AGO if text.startswith("0001") else None), True  # the year 9999: for ever
    except ValueError:
        return None, False
    return (moment - _EPOCH) // _MICROSECOND, True


def text_of(value: JsonValue) -> str:
    """Return a plain value as text; "" for lists, objects and null."""
    if isinstance(value, str):
        return " ".join(value.split())
    return "" if value is None or isinstance(value, dict | list) else str(value)


def whole_of(value: JsonValue) -> int | None:
    """Return a whole number from 0 up, also from a text of digits; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if value >= 0 else None
    text = text_of(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def record_id(record: JsonObject) -> int | None:
    """Return the record's id as central gives them, None without a usable one."""
    value = record.get("id")
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 18:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 < value < FIRST_PROVISIONAL_ID else None
