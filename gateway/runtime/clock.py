"""Time, as an injected dependency. Intervals are monotonic time; stamps are wall time and whether it was trusted.

No other module of the product reads a clock of the system.
"""

from __future__ import annotations

import contextlib
import ctypes
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Protocol

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PLAIN_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (UTC too; formatting thousands of times is quicker without a zone)
_TIME_ERROR = 5
_TIMEX_BYTES = 512
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
WATCH_MARK = Path("/run/edge-gateway-clock/synchronized")
"""Renewed by `gateway.app.clock_watch`, because ProtectClock in the gateway's unit forbids it to ask the kernel."""
MARKS = (Path("/run/systemd/timesync/synchronized"), WATCH_MARK)
_TRUST_CHECK_SECONDS = 10.0
_STEP_MICROS = 500_000
_SAME_MICROS = 100_000
_TOLD_STEP_SECONDS = 1.0
_STEP_TOLD_FOR = 900.0


@dataclass(frozen=True, slots=True)
class Stamp:
    """A wall time.

    Attributes:
        micros: microseconds since 1970-01-01 UTC.
        trusted: whether the clock was known to be synchronised when this was stamped.
        least: the earliest time that it can be (micros), which a clock that was never set may not have reached; None:
            the same as `micros`.
    """

    micros: int
    trusted: bool
    least: int | None = None

    @property
    def at_least(self) -> int:
        """The earliest time that it can be. Expiry is judged by this, so that an uncertain clock expires nothing."""
        return self.micros if self.least is None else self.least

    def as_datetime(self) -> datetime:
        """Convert to an aware UTC datetime."""
        return _EPOCH + timedelta(microseconds=self.micros)


class Clock(Protocol):
    """Monotonic and wall time of the process."""

    def monotonic(self) -> float:
        """Return monotonic seconds, which never step; comparable only within this process's life."""
        ...

    def wall(self) -> Stamp:
        """Return the present wall time."""
        ...


class KeptTime:
    """Wall time that follows the machine's clock only while that is trusted.

    Otherwise it continues from the last trusted time by monotonic time, whatever the machine's clock is set to. Before
    the first trusted time it follows the machine's clock, but is never earlier than the earliest possible time.

    Args:
        released: when the program was made (micros), before which it cannot be now. A box that has never known the time
            stamps by its own clock all the same, so that its records can be corrected once the clock is set.
    """

    def __init__(self, *, released: int = 0) -> None:
        self._released = released
        self._ahead: int | None = None
        self._least: int | None = None

    def recall(self, last: TrustedTime, *, boot_id: str) -> None:
        """Continue from the last trusted time of an earlier run of the program.

        In the same boot, monotonic time tells the present time. After another boot, the last trusted time is only the
        earliest possible time.
        """
        if boot_id and last.boot_id == boot_id:
            self._ahead = last.at - last.monotonic
        else:
            self._least = last.at

    def stamp(self, machine: int, *, monotonic: int, trusted: bool) -> Stamp:
        """Return the wall time when the machine's clock shows `machine` (all in micros)."""
        if trusted:
            self._ahead = machine - monotonic
            return Stamp(machine, trusted=True)
        if self._ahead is not None:
            return Stamp(monotonic + self._ahead, trusted=False)
        if self._least is None:
            self._least = machine - monotonic
        least = monotonic + self._least
        return Stamp(max(machine, least), trusted=False, least=max(least, self._released))


class MachineClock:
    """The machine's own clocks, and the signs that the wall clock is synchronised."""

    def monotonic(self) -> float:
        """Return seconds on CLOCK_MONOTONIC, which is also the event loop's clock."""
        return time.monotonic()

    def wall(self) -> int:
        """Return micros since 1970-01-01 UTC as the machine's clock is set."""
        return time.time_ns() // 1_000

    def is_synchronised(self) -> bool:
        """Return whether the kernel says that the clock is synchronised (adjtimex(2), without a change)."""
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            state = libc.adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
        except (OSError, AttributeError):
            state = _TIME_ERROR
        return state not in (-1, _TIME_ERROR)

    def marked(self) -> int | None:
        """Return when timesyncd or the clock watch marked the clock as synchronised, in nanoseconds by that clock."""
        newest = None
        for mark in MARKS:
            with contextlib.suppress(OSError):  # missing, or invisible to this user
                newest = max(newest or 0, mark.stat().st_mtime_ns)
        return newest


class SystemClock:
    """The machine's clocks. Wall time is trusted once the kernel or a mark says that it is synchronised."""

    def __init__(self, machine: MachineClock | None = None, *, released: int = 0) -> None:
        self._machine = machine or MachineClock()
        self._kept = KeptTime(released=released)
        self._trusted = False
        self._mark_before: int | None = None
        self._ahead: int | None = None
        self._step = 0.0
        self._stepped_at = float("-inf")
        self._checked_at = float("-inf")

    def recall(self, last: TrustedTime, *, boot_id: str) -> None:
        """Continue from the last trusted time of an earlier run; see `KeptTime.recall`."""
        self._kept.recall(last, boot_id=boot_id)

    def monotonic(self) -> float:
        """Return seconds on CLOCK_MONOTONIC, which is also the event loop's clock."""
        return self._machine.monotonic()

    def wall(self) -> Stamp:
        """Return the present wall time. Trust is checked again every 10 s at most, and whenever the clock was set.

        When the clock is set, the kernel withdraws its statement. A mark file stays, so it counts again only once it
        was renewed.
        """
        now, machine = self._machine.monotonic(), self._machine.wall()
        monotonic = int(now * 1_000_000)
        step = 0 if self._ahead is None else machine - monotonic - self._ahead
        was_set = abs(step) > _STEP_MICROS
        self._ahead = machine - monotonic
        if was_set:
            self._note_step(step / 1_000_000, now)
            self._mark_before = self._machine.marked()
        if was_set or now - self._checked_at >= _TRUST_CHECK_SECONDS:
            self._checked_at = now
            marked = self._machine.marked()
            self._trusted = self._machine.is_synchronised() or marked not in (None, self._mark_before)
        return self._kept.stamp(machine, monotonic=monotonic, trusted=self._trusted)

    def stepped(self) -> float:
        """Return by how many seconds the trusted clock was last set; 0 after a quarter of an hour.

        Changes of less than a second do not count, because time servers correct clocks that way. Nor does the first
        setting after a start, because the clock was not trusted before it.
        """
        return self._step if self._machine.monotonic() - self._stepped_at < _STEP_TOLD_FOR else 0.0

    def _note_step(self, seconds: float, now: float) -> None:
        if self._trusted and abs(seconds) >= _TOLD_STEP_SECONDS:
            self._step, self._stepped_at = seconds, now


class WallTimes:
    """Wall times of moments that are kept as monotonic seconds. When the clock is set, they move with it.

    Between settings a moment keeps the same wall time, so that an unchanged value is serialised alike each time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead = self._measured()

    def ahead(self) -> int:
        """Return by how many micros wall time is ahead of monotonic time."""
        measured = self._measured()
        if abs(measured - self._ahead) > _SAME_MICROS:
            self._ahead = measured
        return self._ahead

    def of(self, moment: float) -> int:
        """Return the wall micros of a moment, as the clock is set now."""
        return int(moment * 1_000_000) + self.ahead()

    def _measured(self) -> int:
        return self._clock.wall().micros - int(self._clock.monotonic() * 1_000_000)


@dataclass(frozen=True, slots=True)
class TrustedTime:
    """A time at which the clock was trusted: wall (`at`) and monotonic micros, and the boot of the latter."""

    boot_id: str
    monotonic: int
    at: int


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """Wall time minus monotonic time (micros) in one boot, and whether the wall time is trusted."""

    boot_id: str
    micros: int
    trusted: bool


def offset_of(clock: Clock, boot_id: str) -> ClockOffset:
    """Return the present offset of a clock."""
    wall = clock.wall()
    return ClockOffset(boot_id=boot_id, micros=wall.micros - int(clock.monotonic() * 1_000_000), trusted=wall.trusted)


def boot_id() -> str:
    """Return the id of the machine's present boot, within which monotonic times are comparable; "" if unknown."""
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except OSError:
        return ""


def iso_utc(micros: int) -> str:
    """Format wall micros as ISO 8601 in UTC with milliseconds, as the interface does: `2026-01-31T12:00:00.000Z`."""
    return (_PLAIN_EPOCH + timedelta(microseconds=micros)).isoformat(timespec="milliseconds") + "Z"


def micros_of(text: str, zone: tzinfo | None = None) -> int:
    """Parse an ISO 8601 moment to wall micros; one without an offset is in `zone`. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        if zone is None:
            raise ValueError("it has no offset")
        moment = moment.replace(tzinfo=zone)
    return (moment - _EPOCH) // timedelta(microseconds=1)
