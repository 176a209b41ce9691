"""Faults of a camera's stream that do not stop its recording. Pure."""

from __future__ import annotations

from collections import deque

from drivers.contract import MonotonicSeconds
from gateway.domain.footage import StreamFault

_WITHIN_SECONDS = 60.0
_AGAIN = 3
"""Signs within a minute that make a fault. A single one may be a moved cable or a camera whose clock was set."""
_SIGNS = dict.fromkeys(StreamFault, _AGAIN) | {StreamFault.NO_ENTRY_POINTS: 1, StreamFault.OFF_PACE: 1}
"""The number of signs for each fault. One is enough for what shows itself only after a while."""
QUIET_SECONDS = 30.0
"""A fault is over after this long without a sign. Signs that come evenly, three a minute, are closer together, so that
the fault is reported once and stays."""


class StreamFaults:
    """The present faults of one camera's stream. Instants come with each call."""

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
        """Return the present faults, in the order of `StreamFault`."""
        if not self._present:
            return ()
        self._present = {fault for fault in self._present if now - self._signs[fault][-1] < QUIET_SECONDS}
        return tuple(fault for fault in StreamFault if fault in self._present)
