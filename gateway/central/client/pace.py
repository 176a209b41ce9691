"""Manners of a site among many: the pace of its requests, and its pauses.

Central asks for a pause of one operation with 429, and of all with 502, 503 and 504 (RFC 6585, RFC 9110). After
central's return the site waits before it sends what waited meanwhile.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final

from gateway.central.client.answers import CentralBusy, CentralFailed, Verdict
from gateway.central.client.state import CentralState
from gateway.domain.errors import CentralUnavailable
from gateway.runtime.supervision import Backoff

_BURST_SECONDS = 1.0
_HELD_SHARE = 0.1
HELD_SECONDS: Final = 60.0
"""The longest wait after central's return."""
DEFAULT_SECONDS: Final = 5.0
LONGEST_SECONDS: Final = 60.0
"""A longer rest would keep revoked cards valid for longer."""

_BETWEEN = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT})


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


class Rests:
    """Pauses for each operation, since central may limit one and serve the others, and for all of them.

    A service in front of central that answers in its place is asked less often with each such answer.
    """

    def __init__(self, *, monotonic: Callable[[], float], between: Backoff | None = None) -> None:
        self._monotonic = monotonic
        self._between = between or Backoff(first=1.0, longest=LONGEST_SECONDS)
        self._until: dict[str, float] = {}
        self._all_until = float("-inf")
        self._times = 0

    def noted(self, operation: str, verdict: Verdict, *, status: int, seconds: float | None = None) -> Verdict:
        """Pause an operation, or all, if an answer asks for that; return its verdict.

        `seconds` is what the answer's `Retry-After` says, None without one.
        """
        now = self._monotonic()
        if isinstance(verdict, CentralBusy):
            self._until[operation] = now + (DEFAULT_SECONDS if seconds is None else seconds)
        elif status in _BETWEEN and isinstance(verdict, CentralUnavailable) and not isinstance(verdict, CentralFailed):
            self._times += 1
            self._all_until = now + (self._between.wait(self._times) if seconds is None else seconds)
        else:
            self._times, self._all_until = 0, float("-inf")
        return verdict

    def check(self, operation: str) -> None:
        """Raise while the operation is paused: CentralBusy, or CentralUnavailable while all are.

        The request counts as not sent.
        """
        now = self._monotonic()
        if (left := self._all_until - now) > 0:
            text = f"central's front answers in its place; the next request goes in {left:.0f} s"
            raise CentralUnavailable(text, operation=operation, sent=False)
        left = self._until.get(operation, float("-inf")) - now
        if left > 0:
            text = f"central asked for fewer requests; the next one goes in {left:.0f} s"
            raise CentralBusy(text, operation=operation, sent=False)
        self._until.pop(operation, None)


def asked_rest(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that central asks to wait, at most `LONGEST_SECONDS`; None for a date or no header."""
    said = headers.get("Retry-After", "").strip()
    if not (said.isascii() and said.isdecimal()):
        return None
    return LONGEST_SECONDS if len(said) > 3 else min(float(said), LONGEST_SECONDS)
