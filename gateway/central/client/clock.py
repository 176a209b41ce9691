"""Offset of central's clock, measured by the `Date` header of its answers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import lru_cache

from gateway.runtime.clock import Stamp
from gateway.texts import Text, text

_DATE_SECONDS = 1.0  # a Date is cut to whole seconds
_MOST_DOUBT = 5.0
_LASTS_SECONDS = 600.0

CLOCKS_AGREE = "central's clock and this machine's agree again"


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """A measured offset: central's clock is `seconds` ahead of this machine's, give or take `doubt` seconds.

    `at` is when it was measured.
    """

    seconds: float
    doubt: float
    at: Stamp

    def says_more_than(self, other: ClockOffset | None) -> bool:
        """Return whether this measurement replaces the known one: it is surer, the other is old, or they disagree."""
        if other is None or self.doubt <= other.doubt:
            return True
        is_old = abs(self.at.micros - other.at.micros) > _LASTS_SECONDS * 1_000_000
        return is_old or abs(self.seconds - other.seconds) > self.doubt + other.doubt

    def exceeds(self, limit: float) -> bool:
        """Return whether the clocks certainly differ by more than this many seconds."""
        return abs(self.seconds) - self.doubt > limit

    def sentence(self) -> Text:
        """Describe the offset in a sentence."""
        way = "ahead" if self.seconds > 0 else "behind"
        return text(f"problem.central_clock_differs.{way}", span=_length(abs(self.seconds)))


def _length(seconds: float) -> str:
    """Format a duration in its two largest units."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    while len(parts) > 1 and not parts[0][0]:
        del parts[0]
    return " ".join(f"{number} {unit}" for number, unit in parts[:2] if number) or "0 s"


def offset_from(headers: Mapping[str, str], *, wall: Stamp, took: float) -> ClockOffset | None:
    """Measure the offset by the headers of an answer that came at `wall`, `took` seconds after the request.

    Return None without a `Date`, for an answer from a cache, whose Date is old, and for one that took too long to be
    exact.
    """
    text = headers.get("Date")
    if text is None or "Age" in headers:
        return None
    seconds = _seconds_of(text)
    if seconds is None:
        return None
    doubt = (_DATE_SECONDS + took) / 2
    if doubt > _MOST_DOUBT:
        return None
    middle = wall.micros / 1_000_000 - took / 2
    return ClockOffset(seconds=seconds + _DATE_SECONDS / 2 - middle, doubt=doubt, at=wall)


@lru_cache(maxsize=8)  # hundreds of answers come in a second, and all say the same
def _seconds_of(text: str) -> float | None:
    """Parse a `Date` header into seconds since 1970; None when it is not a date."""
    try:
        date = parsedate_to_datetime(text)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
