"""Moments that people and programs name: read in the site's time zone, and judged by the best clock there is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from gateway.domain.central_status import CentralStatus
from gateway.runtime.clock import Clock
from gateway.web.http.dates import from_micros
from gateway.web.http.errors import RequestRefused

_SLACK = 60_000_000  # whoever asks may have a clock that is a little ahead
_DOUBTED = 10 * 365 * 86_400 * 1_000_000  # how far behind a clock may be that nothing has set


@dataclass(frozen=True, slots=True)
class Named:
    """A moment that somebody named.

    Attributes:
        micros: wall micros UTC.
        has_been: whether that is known; where no clock can tell, it is only believed.
    """

    micros: int
    has_been: bool


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Judges moments.

    What is to come is refused by this machine's clock while that is trusted, and by central's while it is not but
    central answers. With neither, only what nobody can mean is refused, and anything after this machine's own present
    is not known to have been.
    """

    clock: Clock
    central_status: Callable[[], CentralStatus] | None
    zone: ZoneInfo

    def read(self, place: str, text: str) -> int:
        """Parse a moment, or a day as its first one, in wall micros UTC. Raises RequestRefused, naming `place`."""
        try:
            return from_micros(text, self.zone)
        except (ValueError, OverflowError) as error:
            raise RequestRefused(400, f"{place}: {error}") from error

    def past(self, place: str, text: str) -> Named:
        """Parse a moment in the past. Raises RequestRefused, naming `place`, for any other."""
        moment = self.read(place, text)
        latest = self._latest()
        now = self.clock.wall().micros
        if not 0 <= moment <= (now + _DOUBTED if latest is None else latest):
            raise RequestRefused(400, f"{place}: must be a moment that has been")
        return Named(moment, has_been=moment <= (now + _SLACK if latest is None else latest))

    def may_have_been(self, micros: int) -> bool:
        """Return whether no clock that can be trusted says that a moment is still to come."""
        latest = self._latest()
        return latest is None or micros <= latest

    def _latest(self) -> int | None:
        """Return the latest moment that can have been; None when no clock can tell."""
        now = self.clock.wall()
        if now.trusted:
            return now.micros + _SLACK
        ahead = None if self.central_status is None else self.central_status().clock_ahead
        return None if ahead is None else now.micros + round(ahead * 1_000_000) + _SLACK
