"""Wall time for what is deleted by its age: a clock that is set forward makes nothing old. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.runtime.clock import Stamp

_MICROS = 1_000_000
TOLERANCE_SECONDS = 600
"""So far ahead is a correction like any other."""
BELIEVED_AFTER_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class SettledTime:
    """Wall time as it was, carried on by the clock that nobody sets; frozen, each method gives what is known then.

    Set back, wall time is followed at once: nothing is deleted for it. Set forward, it is believed when it has been so
    for a day, and at once when it was never trusted before: a machine without a battery starts in the past.

    Attributes:
        micros: wall micros at `uptime`.
        uptime: monotonic seconds.
        trusted: whether wall time was trusted once.
        doubted_since: monotonic seconds since when wall time is ahead, None while it is not.
    """

    micros: int
    uptime: float
    trusted: bool
    doubted_since: float | None = None

    def at(self, uptime: float) -> int:
        """Return the wall micros of that moment."""
        return self.micros + int((uptime - self.uptime) * _MICROS)

    def seen(self, wall: Stamp, uptime: float) -> SettledTime:
        """Take a reading of both clocks."""
        followed = SettledTime(wall.micros, uptime, self.trusted or wall.trusted)
        if wall.micros - self.at(uptime) <= TOLERANCE_SECONDS * _MICROS or (wall.trusted and not self.trusted):
            return followed
        since = uptime if self.doubted_since is None else self.doubted_since
        if wall.trusted and uptime - since >= BELIEVED_AFTER_SECONDS:
            return followed
        return SettledTime(self.micros, self.uptime, self.trusted, since)
