"""Pauses of operations that central asked for with 429 and `Retry-After` (RFC 6585, RFC 9110)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from gateway.central.client.answers import CentralBusy, Verdict

DEFAULT_SECONDS: Final = 5.0
LONGEST_SECONDS: Final = 60.0
"""A longer rest would keep revoked cards valid for longer."""


class Rests:
    """Pauses for each operation: central may limit one and serve the others."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._until: dict[str, float] = {}

    def noted(self, operation: str, verdict: Verdict, *, seconds: float = DEFAULT_SECONDS) -> Verdict:
        """Pause an operation for `seconds` if the verdict asks for that; return the verdict."""
        if isinstance(verdict, CentralBusy):
            self._until[operation] = self._monotonic() + seconds
        return verdict

    def check(self, operation: str) -> None:
        """Raise CentralBusy while the operation is paused; the request counts as not sent."""
        left = self._until.get(operation, float("-inf")) - self._monotonic()
        if left > 0:
            text = f"{operation}: central asked for fewer requests; the next one goes in {left:.0f} s"
            raise CentralBusy(text, sent=False)
        self._until.pop(operation, None)


def asked_rest(headers: Mapping[str, str]) -> float:
    """Return the seconds that central asks to wait, at most `LONGEST_SECONDS`; the default for a date or no header."""
    said = headers.get("Retry-After", "").strip()
    if not (said.isascii() and said.isdecimal()):
        return DEFAULT_SECONDS
    return LONGEST_SECONDS if len(said) > 3 else min(float(said), LONGEST_SECONDS)
