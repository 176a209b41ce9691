"""State of the line to central, and the operations that central does not permit to the gateway's own account."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import structlog

from gateway.central.client.answers import CentralDenied, Verdict
from gateway.central.client.clock import ClockOffset
from gateway.domain.errors import CentralUnavailable
from gateway.runtime.clock import Clock, Stamp

log = structlog.get_logger(__name__)


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
    clock_offset: ClockOffset | None = None
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
