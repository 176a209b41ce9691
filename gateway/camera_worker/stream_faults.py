"""What is wrong with a camera's stream while it is recorded all the same. Pure."""

from __future__ import annotations

from collections import deque

from drivers.contract import MonotonicSeconds
from gateway.domain.footage import StreamFault

_WITHIN_SECONDS = 60.0
_AGAIN = 3
"""One hole, or one jump, is a cable that was moved or a camera that was set; three within a minute come again."""
_SIGNS = dict.fromkeys(StreamFault, _AGAIN) | {StreamFault.NO_ENTRY_POINTS: 1}
"""A stream without an entry point shows it after ten seconds of waiting for one: that need not come again."""
QUIET_SECONDS = 30.0
"""A fault is over once there was no sign of it for so long: half the time of three signs, so that one that comes at an
even pace is told once."""


class StreamFaults:
    """The faults of one camera's stream. Instants come with each call."""

    def __init__(self) -> None:
        self._signs = {fault: deque[MonotonicSeconds](maxlen=count) for fault, count in _SIGNS.items()}
        self._present: set[StreamFault] = set()

    def sign(self, fault: StreamFault, now: MonotonicSeconds) -> None:
        """Note a sign of a fault."""
        signs = self._signs[fault]
        signs.append(now)
        if len(signs) == signs.maxlen and now - signs[0] <= _WITHIN_SECONDS:
            self._present.add(fault)

    def present(self, now: MonotonicSeconds) -> tuple[StreamFault, ...]:
        """Return the faults that count now, in the order of their kinds."""
        self._present = {fault for fault in self._present if now - self._signs[fault][-1] < QUIET_SECONDS}
        return tuple(fault for fault in StreamFault if fault in self._present)
