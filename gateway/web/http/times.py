"""Moments in requests: parsed in the site's time zone, and checked to be past by the best clock there is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from gateway.domain.central_status import CentralStatus
from gateway.runtime.clock import Clock
from gateway.web.http.dates import from_micros
from gateway.web.http.errors import RequestRefused

_SLACK = 60_000_000  # a client's clock may be a little ahead
_DOUBTED = 10 * 365 * 86_400 * 1_000_000  # how far behind an unsynchronised clock may be


@dataclass(frozen=True, slots=True)
class PastMoment:
    """A moment from a request that is accepted as past.

    Attributes:
        micros: wall micros UTC.
        is_proven: True when a clock shows that it is past; False when no clock can tell.
    """

    micros: int
    is_proven: bool


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Parser of moments, which tells past from future.

    A future moment is refused by this machine's clock while that is trusted, else by central's clock if central has
    answered. With neither, only a moment more than ten years ahead of this machine's clock is refused, and
    `PastMoment.is_proven` is False for one that is ahead of it at all.
    """

    clock: Clock
    central_status: Callable[[], CentralStatus] | None
    zone: ZoneInfo

    def read(self, place: str, text: str) -> int:
        """Parse a moment, or a day as its first moment, to wall micros UTC. Raises RequestRefused, naming `place`."""
        try:
            return from_micros(text, self.zone)
        except (ValueError, OverflowError) as error:
            raise RequestRefused(400, f"{place}: {error}") from error

    def past(self, place: str, text: str) -> PastMoment:
        """Parse a past moment. Raises RequestRefused, naming `place`, for a future one or no moment at all."""
        moment = self.read(place, text)
        latest = self._latest()
        now = self.clock.wall().micros
        if not 0 <= moment <= (now + _DOUBTED if latest is None else latest):
            raise RequestRefused(400, f"{place}: must be a moment that has been")
        return PastMoment(moment, is_proven=moment <= (now + _SLACK if latest is None else latest))

    def may_have_been(self, micros: int) -> bool:
        """Return whether a moment is past, or no trusted clock can tell."""
        latest = self._latest()
        return latest is None or micros <= latest

    def _latest(self) -> int | None:
        """Return the present with a minute's slack, in wall micros UTC; None when no trusted clock can tell."""
        now = self.clock.wall()
        if now.trusted:
            return now.micros + _SLACK
        ahead = None if self.central_status is None else self.central_status().clock_ahead
        return None if ahead is None else now.micros + round(ahead * 1_000_000) + _SLACK
