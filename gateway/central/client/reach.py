"""Whether central is reached, and when people are told so."""

from __future__ import annotations

from dataclasses import replace

import structlog

from gateway.central.client.state import CentralState
from gateway.runtime.clock import Clock

log = structlog.get_logger(__name__)

_CALM_SECONDS = 10.0


class Reach:
    """Follows what each exchange showed.

    A loss and a recovery are told at once, and logged once each. A line that breaks again within ten seconds of a
    recovery flickers: it is told as lost when that has lasted ten seconds.
    """

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._turned_at = self._recovered_at = float("-inf")

    def noted(self, before: CentralState, *, reachable: bool, error: str) -> CentralState:
        """The state after an exchange that reached central or did not; `error` is "" after a success."""
        now = self._clock.monotonic()
        state = replace(before, last_error=error) if error != before.last_error else before
        if reachable != before.reachable:
            self._turned_at = now
            state = replace(state, reachable=reachable, since=self._clock.wall())
        if reachable == before.told or (not reachable and self._flickers(now)):
            return state
        if not reachable:
            log.warning("central_lost", error=error)
        elif before.told is False:
            self._recovered_at = now
            log.info("central_recovered")
        return replace(state, told=reachable)

    def _flickers(self, now: float) -> bool:
        return self._turned_at - self._recovered_at < _CALM_SECONDS and now - self._turned_at < _CALM_SECONDS
