"""The last transactions of a line, with their bytes: a bounded ring that costs a tuple each."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from drivers.bus.line_quality import Failure
from drivers.bus.transactions import Priority
from drivers.contract import MonotonicSeconds

KEPT = 300
_LONGEST = 512


@dataclass(frozen=True, slots=True)
class Turn:
    """A transaction that is over, or bytes that nobody asked for.

    Attributes:
        number: counts up from 1.
        at: when the request was written, or the bytes came.
        took: seconds until the answer, or until it was given up.
        unit: who was asked, None for bytes that nobody asked for.
        priority: that of the request.
        request: what was sent.
        received: what came, its first 512 bytes.
        failure: why the answer does not count; None when it does, or for bytes that nobody asked for.
    """

    number: int
    at: MonotonicSeconds
    took: float
    unit: int | None
    priority: Priority | None
    request: bytes
    received: bytes
    failure: Failure | None


class RecentTurns:
    """The last 300 of them."""

    def __init__(self) -> None:
        self._turns: deque[Turn] = deque(maxlen=KEPT)
        self._last = 0

    def note(
        self,
        at: MonotonicSeconds,
        *,
        took: float = 0.0,
        unit: int | None = None,
        priority: Priority | None = None,
        request: bytes = b"",
        received: bytes = b"",
        failure: Failure | None = None,
    ) -> None:
        """Note one."""
        self._last += 1
        self._turns.append(Turn(self._last, at, took, unit, priority, request, received[:_LONGEST], failure))

    def since(self, number: int) -> tuple[Turn, ...]:
        """Return those after this number that are still held, oldest first."""
        missing = self._last - number
        if missing <= 0:
            return ()
        return tuple(self._turns)[-missing:]
