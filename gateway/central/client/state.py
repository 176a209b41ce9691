"""State of the line to central, and the operations that central does not permit to the gateway's own account.

The offset of central's clock is measured by the `Date` header of its answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import lru_cache

import structlog

from gateway.central.client.answers import CentralDenied, Verdict
from gateway.domain.errors import CentralUnavailable
from gateway.runtime.clock import Clock, Stamp
from gateway.texts import Text, text

log = structlog.get_logger(__name__)

_DATE_SECONDS = 1.0  # a Date is cut to whole seconds
_MOST_DOUBT = 5.0
_LASTS_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class CentralState:
    """State of the line to central, for the page.

    Attributes:
        reachable: whether the last exchange reached it; None before the first.
        reported: the same as events have reported it; while the line flickers, a loss is reported only once it lasts.
        since: when `reachable` took its value (monotonic seconds).
        away_seconds: how long the last loss lasted; 0 before the first.
        last_error: why the last exchange failed; "" after a success. A loss has the same words for each request.
        signed_in_at: when the last sign-in succeeded.
        sign_in_refused: why central refuses to sign the gateway's account in, "" while it does not.
        not_permitted: operations that the gateway's account may not use, each with central's words.
        clock_offset: by how much central's clock is ahead; None while that is unknown.
        slow_answers: the limit in seconds that most of its answers exceed; 0 while they come in time.
    """

    reachable: bool | None = None
    reported: bool | None = None
    since: float | None = None
    away_seconds: float = 0.0
    last_error: str = ""
    signed_in_at: Stamp | None = None
    sign_in_refused: str = ""
    not_permitted: tuple[tuple[str, str], ...] = ()
    clock_offset: CentralOffset | None = None
    slow_answers: float = 0.0


_CALM_SECONDS = 10.0
_SLOW_SECONDS = 3.0
_TIME_OUT_SHARE = 0.5


def slow_from(timeout_seconds: float) -> float:
    """Return the seconds from which on central's answer is slow: 3 s, or half of a short time-out.

    They count to the answer's first line, so that a long list is not slow. A person who waits for central would see
    nothing for so long.
    """
    return min(_SLOW_SECONDS, _TIME_OUT_SHARE * timeout_seconds)


class Reach:
    """Detector of the loss and the recovery of central, fed by each exchange.

    A loss and a recovery are reported at once, and logged once each. A line that breaks again within ten seconds of a
    recovery flickers: it is reported as lost when the break has lasted ten seconds.
    """

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._turned_at = self._recovered_at = float("-inf")

    def noted(self, before: CentralState, *, reachable: bool, error: str) -> CentralState:
        """Return the state after an exchange that reached central or did not; `error` is "" after a success."""
        now = self._clock.monotonic()
        state = replace(before, last_error=error) if error != before.last_error else before
        if reachable != before.reachable:
            lasted = now - self._turned_at if reachable and before.reachable is False else state.away_seconds
            self._turned_at = now
            state = replace(state, reachable=reachable, since=now, away_seconds=lasted)
        if reachable == before.reported or (not reachable and self._flickers(now)):
            return state
        if not reachable:
            log.warning("central_lost", error=error)
        elif before.reported is False:
            self._recovered_at = now
            log.info("central_recovered")
        return replace(state, reported=reachable)

    def _flickers(self, now: float) -> bool:
        return self._turned_at - self._recovered_at < _CALM_SECONDS and now - self._turned_at < _CALM_SECONDS


_RENEWAL_SECONDS = 900.0


class Permissions:
    """Operations that central denies to the account, until it permits them."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._renewed_for: dict[str, float] = {}
        self.denied: tuple[tuple[str, str], ...] = ()

    def may_sign_in_for(self, operation: str) -> bool:
        """Return whether to try a fresh session for a missing permission; at most once in a while."""
        now = self._monotonic()
        if now - self._renewed_for.get(operation, float("-inf")) < _RENEWAL_SECONDS:
            return False
        self._renewed_for[operation] = now
        return True

    def note(self, operation: str, verdict: Verdict) -> None:
        """Note whether the account may use the operation. An answer that does not show it changes nothing."""
        known = dict(self.denied)
        if isinstance(verdict, CentralDenied):
            known[operation] = verdict.said
        elif isinstance(verdict, CentralUnavailable) or known.pop(operation, None) is None:
            return
        else:
            self._renewed_for.pop(operation, None)
        if (denied := tuple(sorted(known.items()))) != self.denied:
            self.denied = denied
            if isinstance(verdict, CentralDenied):
                log.warning("central_does_not_permit", operation=operation, said=verdict.said)


@dataclass(frozen=True, slots=True)
class CentralOffset:
    """A measured offset: central's clock is `seconds` ahead of this machine's, give or take `doubt` seconds.

    `at` is when it was measured.
    """

    seconds: float
    doubt: float
    at: Stamp

    def says_more_than(self, other: CentralOffset | None) -> bool:
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


def offset_from(headers: Mapping[str, str], *, wall: Stamp, took: float) -> CentralOffset | None:
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
    return CentralOffset(seconds=seconds + _DATE_SECONDS / 2 - middle, doubt=doubt, at=wall)


@lru_cache(maxsize=8)  # hundreds of answers come in a second, and all say the same
def _seconds_of(text: str) -> float | None:
    """Parse a `Date` header into seconds since 1970; None when it is not a date."""
    try:
        date = parsedate_to_datetime(text)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
