"""The last transactions of a line, with their bytes, in a ring of bounded size."""

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
    """A finished transaction, or bytes that no request asked for.

    Attributes:
        number: the position in the line's history, counted from 1.
        at: when the request was written, or the bytes came.
        took: seconds until the answer, or until the request was given up.
        unit: the address that was asked, None for bytes that no request asked for.
        priority: the request's priority, None likewise.
        request: the bytes sent, empty likewise.
        received: the first 512 of the bytes that came.
        failure: why the answer does not count, None when it does. Of bytes that no request asked for: LATE for a late
            answer, None for all others.
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
    """The last 300 turns of a line."""

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
        """Append a turn; the fields are those of `Turn`."""
        self._last += 1
        self._turns.append(Turn(self._last, at, took, unit, priority, request, received[:_LONGEST], failure))

    def since(self, number: int) -> tuple[Turn, ...]:
        """Return the turns with a greater number that are still held, oldest first."""
        missing = self._last - number
        if missing <= 0:
            return ()
        return tuple(self._turns)[-missing:]
