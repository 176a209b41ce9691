"""Lengths of time as people and programs write them: hours, "30 minutes", ISO 8601, or "permanent". Pure."""

from __future__ import annotations

import re
from typing import Final

LONGEST: Final = 10 * 366 * 86_400_000_000
"""Ten years in micros. Anything longer is to be given as permanent."""

_MINUTE, _HOUR, _DAY, _WEEK = 60, 3600, 86_400, 604_800
_UNITS: Final = {
    **dict.fromkeys(("m", "min", "minute"), _MINUTE),
    **dict.fromkeys(("h", "hr", "hour"), _HOUR),
    **dict.fromkeys(("d", "day"), _DAY),
    **dict.fromkeys(("w", "week"), _WEEK),
}
_PLAIN = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*([a-z]{0,8})", re.IGNORECASE)
_ISO = re.compile(
    r"P(?:(?P<weeks>\d{1,6})W|(?:(?P<days>\d{1,6})D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d{1,6}(?:\.\d{1,6})?)H)?(?:(?P<minutes>\d{1,9})M)?(?:(?P<seconds>\d{1,9})S)?)?)",
    re.IGNORECASE,
)


def length_of(text: str) -> int | None:
    """Return the length in micros, or None for a permanent one.

    It may be a bare number of hours; a text such as `90 minutes`, `8h`, `2 days` or `1 week`; or an ISO 8601 duration
    without years and months, whose length depends on when they begin. Raises ValueError with one sentence for anything
    else.
    """
    plain = text.strip()
    if plain.lower() in {"permanent", "permanently", "forever"}:
        return None
    seconds = _seconds(plain)
    if seconds is None:
        raise ValueError('must be hours such as "8", a length such as "90 minutes", "2 days" or "PT8H", or "permanent"')
    if not 0 < seconds * 1_000_000 <= LONGEST:
        raise ValueError('must be more than nothing and at most ten years, or "permanent"')
    return round(seconds * 1_000_000)


def _seconds(text: str) -> float | None:
    if plain := _PLAIN.fullmatch(text):
        unit = plain[2].lower() or "h"
        size = _UNITS.get(unit) or _UNITS.get(unit.removesuffix("s") if len(unit) > 2 else unit)
        return float(plain[1]) * size if size else None
    if (iso := _ISO.fullmatch(text)) and any(iso.groups()):
        parts = {name: float(value) for name, value in iso.groupdict(default="0").items()}
        days = parts["weeks"] * 7 + parts["days"]
        return days * _DAY + parts["hours"] * _HOUR + parts["minutes"] * _MINUTE + parts["seconds"]
    return None
