"""Wall time for deletions by age, which a clock that is set forward does not affect at once. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.runtime.clock import Stamp

_MICROS = 1_000_000
TOLERANCE_SECONDS = 600
"""A clock set forward by up to this is followed at once, as any other correction."""
BELIEVED_AFTER_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class SettledTime:
    """The last believed wall time, continued by the monotonic clock. Frozen: `seen` returns the next value.

    A clock that is set back is followed at once, because that deletes nothing. A clock that is set forward is believed
    after a day. It is believed at once if wall time becomes trusted for the first time, because a machine without a
    battery starts in the past.

    Attributes:
        micros: the believed wall micros at `uptime`.
        uptime: the monotonic seconds of the last believed reading.
        trusted: whether wall time has ever been trusted.
        doubted_since: since when wall time is ahead (monotonic seconds), None while it is not.
    """

    micros: int
    uptime: float
    trusted: bool
    doubted_since: float | None = None

    def at(self, uptime: float) -> int:
        """Return the believed wall micros at a monotonic time in seconds."""
        return self.micros + int((uptime - self.uptime) * _MICROS)

    def seen(self, wall: Stamp, uptime: float) -> SettledTime:
        """Return the settled time after a reading of both clocks."""
        followed = SettledTime(wall.micros, uptime, self.trusted or wall.trusted)
        if wall.micros - self.at(uptime) <= TOLERANCE_SECONDS * _MICROS or (wall.trusted and not self.trusted):
            return followed
        since = uptime if self.doubted_since is None else self.doubted_since
        if wall.trusted and uptime - since >= BELIEVED_AFTER_SECONDS:
            return followed
        return SettledTime(self.micros, self.uptime, self.trusted, since)
