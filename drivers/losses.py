"""The loss of a device: reported once, and again when the reason changes."""

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
    """Return whether the error is an answer of the device, which is therefore there."""
    return isinstance(error, DeviceFault | ProtocolViolation | TooLate)


class Loss:
    """The reported absence of one device. It has no clock: instants come with each call.

    Args:
        device_id: the id that the reports carry.
        apart: the least seconds between two reports of a loss; a new reason that comes sooner is dropped. 0 for a
            driver that gives each reason once.
    """

    def __init__(self, *, device_id: int, apart: float = 1.0) -> None:
        self._device_id = device_id
        self._apart = apart
        self._reported: tuple[str, bool] | None = None
        self._reported_at: MonotonicSeconds = float("-inf")

    @property
    def is_reported(self) -> bool:
        """True while the device is reported as lost."""
        return self._reported is not None

    def over(self) -> None:
        """Note that the device is back."""
        self._reported = None

    def lost(self, reason: str, *, at: MonotonicSeconds, answers: bool = False) -> tuple[Report, ...]:
        """Return the reports due to a loss for this reason. Reasons that differ only in numbers count as the same."""
        known, says = self._reported, (_NUMBERS.sub("", reason), answers)
        if known is None:
            self._reported, self._reported_at = says, at
            return (DeviceLost(self._device_id, reason, at, answers),)
        if known == says or at - self._reported_at < self._apart:
            return ()
        self._reported, self._reported_at = says, at
        return (LossExplained(self._device_id, reason, at, answers),)
