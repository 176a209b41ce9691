"""A device that is lost: told once, and why it still is as often as that changes."""

from __future__ import annotations

import re

from drivers.contract import (
    DeviceFault,
    DeviceLost,
    LossExplained,
    MonotonicSeconds,
    ProtocolViolation,
    Report,
    TooLate,
)

_NUMBERS = re.compile(r"\d+(\.\d+)?")


def is_answering(error: Exception) -> bool:
    """Return whether the error shows that the device answers."""
    return isinstance(error, DeviceFault | ProtocolViolation | TooLate)


class Loss:
    """Reports of one device's absence. It has no clock of its own: instants come with each call.

    Args:
        device_id: whose reports these are.
        apart: seconds between two explanations. One that comes sooner is dropped, so 0 for who says each but once.
    """

    def __init__(self, *, device_id: int, apart: float = 1.0) -> None:
        self._device_id = device_id
        self._apart = apart
        self._told: tuple[str, bool] | None = None
        self._told_at: MonotonicSeconds = float("-inf")

    @property
    def is_told(self) -> bool:
        """True if the device was reported lost and not found since."""
        return self._told is not None

    def over(self) -> None:
        """Note that the device is there."""
        self._told = None

    def told(self, reason: str, *, at: MonotonicSeconds, answers: bool = False) -> tuple[Report, ...]:
        """Return the reports due to the device's being away for this reason; numbers alone make no other reason."""
        known, says = self._told, (_NUMBERS.sub("", reason), answers)
        if known is None:
            self._told, self._told_at = says, at
            return (DeviceLost(self._device_id, reason, at, answers),)
        if known == says or at - self._told_at < self._apart:
            return ()
        self._told, self._told_at = says, at
        return (LossExplained(self._device_id, reason, at, answers),)
