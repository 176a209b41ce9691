"""Pauses that central asks for: of one operation with 429, of all with 502, 503 and 504 (RFC 6585, RFC 9110)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final

from gateway.central.client.answers import CentralBusy, CentralFailed, Verdict
from gateway.domain.errors import CentralUnavailable
from gateway.runtime.supervision import Backoff

DEFAULT_SECONDS: Final = 5.0
LONGEST_SECONDS: Final = 60.0
"""A longer rest would keep revoked cards valid for longer."""

_BETWEEN = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT})


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
            text = f"{operation}: central's front answers in its place; the next request goes in {left:.0f} s"
            raise CentralUnavailable(text, sent=False)
        left = self._until.get(operation, float("-inf")) - now
        if left > 0:
            text = f"{operation}: central asked for fewer requests; the next one goes in {left:.0f} s"
            raise CentralBusy(text, sent=False)
        self._until.pop(operation, None)


def asked_rest(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that central asks to wait, at most `LONGEST_SECONDS`; None for a date or no header."""
    said = headers.get("Retry-After", "").strip()
    if not (said.isascii() and said.isdecimal()):
        return None
    return LONGEST_SECONDS if len(said) > 3 else min(float(said), LONGEST_SECONDS)
