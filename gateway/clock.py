"""Time, injected. Intervals come from the monotonic clock; stamps are wall time with the trust it had.

Nothing else in the product reads a clock of the system.
"""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PLAIN_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (UTC all the same; what writes a thousand moments is quicker so)
_TIME_ERROR = 5
_TIMEX_BYTES = 512
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_TIMESYNC_MARK = Path("/run/systemd/timesync/synchronized")
_TRUST_CHECK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Stamp:
    """A moment in wall time.

    Attributes:
        micros: microseconds since 1970-01-01 UTC.
        trusted: whether the clock was known to be synchronised when this was stamped.
    """

    micros: int
    trusted: bool

    def as_datetime(self) -> datetime:
        """The moment as an aware UTC datetime."""
        return _EPOCH + timedelta(microseconds=self.micros)


class Clock(Protocol):
    """Both clocks of the process."""

    def monotonic(self) -> float:
        """Seconds; never steps, comparable only within this process's life."""
        ...

    def wall(self) -> Stamp:
        """Now, in UTC, with its trust."""
        ...


class SystemClock:
    """The machine's clocks. Wall time is trusted once the kernel or timesyncd says that it is synchronised."""

    def __init__(self) -> None:
        self._trusted = False
        self._checked_at = float("-inf")

    def monotonic(self) -> float:
        """Seconds on CLOCK_MONOTONIC, the clock of the event loop too."""
        return time.monotonic()

    def wall(self) -> Stamp:
        """Now; the question of trust is asked again at most every 10 s."""
        now = time.monotonic()
        if now - self._checked_at >= _TRUST_CHECK_SECONDS:
            self._checked_at = now
            self._trusted = _is_synchronised()
        return Stamp(micros=time.time_ns() // 1_000, trusted=self._trusted)


def _is_synchronised() -> bool:
    """Whether adjtimex(2), read without changing anything, or timesyncd's mark says so."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        state = libc.adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    except (OSError, AttributeError):
        state = _TIME_ERROR
    return state not in (-1, _TIME_ERROR) or _TIMESYNC_MARK.exists()


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """By how many micros wall time is ahead of monotonic time in a run of the machine, and whether that is true."""

    boot_id: str
    micros: int
    trusted: bool


def offset_of(clock: Clock, boot_id: str) -> ClockOffset:
    """As it is now."""
    wall = clock.wall()
    return ClockOffset(boot_id=boot_id, micros=wall.micros - int(clock.monotonic() * 1_000_000), trusted=wall.trusted)


def boot_id() -> str:
    """Which run of the machine this is, in which monotonic times can be compared; "" where the kernel does not say."""
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except OSError:
        return ""


def iso_utc(micros: int) -> str:
    """ISO 8601 in UTC with milliseconds, as the interface writes moments: `2026-01-31T12:00:00.000Z`."""
    return (_PLAIN_EPOCH + timedelta(microseconds=micros)).isoformat(timespec="milliseconds") + "Z"
