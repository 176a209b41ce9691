"""Days and moments in requests: ISO 8601, in the site's time zone unless they have an offset.

A command may say in its header `Sent-At` when it was sent. A network may hold a request back for long after its sender
has given it up, and a gate must not move then.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from aiohttp import web

from gateway.domain.server_lines import CentralStatus
from gateway.runtime.clock import Clock
from gateway.texts import text
from gateway.web.http.errors import RequestRefused

HEADER = "Sent-At"
LATEST_SECONDS = 5
_SLACK = 60_000_000  # a client's clock may be a little ahead
_DOUBTED = 10 * 365 * 86_400 * 1_000_000  # how far behind an unsynchronised clock may be
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


def refuse_late(request: web.Request, clock: Clock) -> None:
    """Refuse a command whose `Sent-At`, by the gateway's clock, is more than five seconds off; without one, do nothing.

    Raises RequestRefused: 409 for a late command, 400 for a header that is no moment.
    """
    sent = request.headers.get(HEADER)
    if sent is None:
        return
    try:
        at = from_micros(sent, ZoneInfo("UTC"))
    except (ValueError, OverflowError) as error:
        raise RequestRefused(400, f"{HEADER}: {error}") from error
    if abs(clock.wall().micros - at) > LATEST_SECONDS * 1_000_000:
        raise RequestRefused(409, text("refused.command_late"))


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
