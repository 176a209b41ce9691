"""The silence of a camera between two pictures, and when it is too long. Pure."""

from __future__ import annotations

_TIMES = 3
"""A camera may be silent for so many times its longest usual time between two pictures."""
_LONGEST_SECONDS = 120.0
_FADES = 0.9
"""The part of the longest time that still counts at the next picture, so that a single pause is soon forgotten."""


class Silence:
    """The arrivals of one connection's pictures. `now` is when it was made, in monotonic seconds."""

    def __init__(self, now: float) -> None:
        self.heard_at = now
        """When the last picture came."""
        self._arrivals = 0
        self._longest = 0.0

    def heard(self, now: float) -> None:
        """Note that pictures came. Those that come at one moment are a burst of what the camera had."""
        if now == self.heard_at and self._arrivals:
            return
        if self._arrivals:
            self._longest = max(now - self.heard_at, self._longest * _FADES)
        self._arrivals += 1
        self.heard_at = now

    def is_too_long(self, now: float, *, seconds: float) -> bool:
        """Return whether the camera is silent for longer than it may be: `seconds`, or more if it sends rarely.

        Until the second picture nobody knows how often it sends.
        """
        usual = seconds if self._arrivals == 1 else self._longest
        return now - self.heard_at > max(seconds, min(_TIMES * usual, _LONGEST_SECONDS))
