"""Manners of a site among many: a pace of requests, and a wait before it sends what waited while central was away."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Final

from gateway.central.client.state import CentralState

_BURST_SECONDS = 1.0
_HELD_SHARE = 0.1
HELD_SECONDS: Final = 60.0
"""The longest wait after central's return."""


class Pace:
    """Pace of at most `per_second` requests on average, after a burst of one second's number; None sets no limit."""

    def __init__(self, per_second: float | None, *, monotonic: Callable[[], float]) -> None:
        self._gap = 1 / per_second if per_second else 0.0
        self._monotonic = monotonic
        self._free_at = float("-inf")

    async def turn(self, *, urgent: bool = False) -> None:
        """Wait for the turn of one request. An urgent one counts and does not wait; others wait for it."""
        now = self._monotonic()
        turn = max(self._free_at, now - _BURST_SECONDS)
        self._free_at = turn + self._gap
        if not urgent and turn > now:
            await asyncio.sleep(turn - now)


class ReturnHold:
    """Wait of a random length after central's return, which all sites notice at about the same time.

    It takes at most `longest` seconds, and at most a tenth of the loss: after a short one little waits.
    """

    def __init__(
        self, *, state: Callable[[], CentralState], monotonic: Callable[[], float], longest: float = 0.0
    ) -> None:
        self._longest = longest
        self._state = state
        self._monotonic = monotonic
        self._answers_since = state().since
        self._until = float("-inf")

    def left(self) -> float:
        """Return the seconds for which what waited is still held; 0 when it may go."""
        state, now = self._state(), self._monotonic()
        if state.reachable and state.since != self._answers_since:
            self._answers_since = state.since
            most = min(state.away_seconds * _HELD_SHARE, self._longest)
            self._until = now + random.uniform(0, most)  # noqa: S311 (spreads load)
        return max(self._until - now, 0.0)
