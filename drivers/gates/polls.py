"""Judgement of a device's polls, for every family: when it counts as lost, and which reports are due. Pure.

Rules:
- A device is lost after 3 failed polls in a row, or after 2 s without an answer, whichever comes first. The loss is
  reported once, and again when its reason changes. A poll that was not sent gives no new reason while one is known.
- The device is back with its first answer, which is reported once with its position and all its points.
- Until the device is lost, each missed poll is reported. The next answer then reports every point again.
- A point with its own age limit (`stale_ms`) is unknown that long after the last answer.
- When the line is lost, every point is unknown at once, until it is read again.
- A change is reported with the poll that shows it. An unchanged value is reported again after 1 s.
- On a limit switch, only the limit counts. Between the limits a gate moves away from the limit that it left last,
  unless a command acknowledged since then says otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from drivers.bus.transactions import UnitRests
from drivers.contract import (
    DeviceConnected,
    DriverError,
    GateMoved,
    GatePosition,
    MonotonicSeconds,
    PointChanged,
    PointState,
    PollMissed,
    Report,
)
from drivers.losses import Loss, is_answering

LOST_AFTER_POLLS = 3
LOST_AFTER_SECONDS = 2.0
REFRESH_SECONDS = 1.0
_POLL_PATIENCE = 1.0

CLOSE_WATCH_SECONDS = 0.02
"""The interval between two polls of a device that is watched closely; a slow line makes it longer."""


def limit_position(
    *, closed: PointState, opened: PointState, before: GatePosition, commanded: GatePosition | None
) -> GatePosition:
    """Return the position by two limit switches; UNKNOWN when both are on, or one is unknown.

    Args:
        closed: the switch that is on while the gate is closed.
        opened: the switch that is on while the gate is open.
        before: the position that the poll before showed.
        commanded: as for `position_between`.
    """
    match closed, opened:
        case PointState.ON, PointState.OFF:
            return GatePosition.CLOSED
        case PointState.OFF, PointState.ON:
            return GatePosition.OPEN
        case PointState.OFF, PointState.OFF:
            return position_between(before, commanded)
        case _:
            return GatePosition.UNKNOWN


def position_between(before: GatePosition, commanded: GatePosition | None) -> GatePosition:
    """Return the position of a gate between its limits.

    Args:
        before: the position that the poll before showed.
        commanded: the position to which the last command acknowledged since then leads: OPENING, CLOSING or STOPPED;
            None when there was no command.
    """
    if commanded is GatePosition.STOPPED:
        return GatePosition.STOPPED
    if before is GatePosition.CLOSED:
        return GatePosition.OPENING
    if before is GatePosition.OPEN:
        return GatePosition.CLOSING
    return commanded or before


class PollWatch:
    """The judge of one device's polls. It has no clock: instants come with each call.

    `stale` gives the age limits of some points: the seconds after the last answer from which a point is unknown.
    """

    def __init__(
        self, *, device_id: int, started_at: MonotonicSeconds, stale: Mapping[str, float] = MappingProxyType({})
    ) -> None:
        self._device_id = device_id
        self._stale = stale
        self._online: bool | None = None
        self._loss = Loss(device_id=device_id)
        self._newest: tuple[str, bool] | None = None
        self._failures = 0
        self._answered_at = started_at
        self._position = GatePosition.UNKNOWN
        self._position_reported_at = float("-inf")
        self._points: dict[str, tuple[PointState, MonotonicSeconds]] = {}

    @property
    def position(self) -> GatePosition:
        """The position of the last poll; UNKNOWN when the device is lost."""
        return self._position

    @property
    def is_online(self) -> bool:
        """True when the device answered and was not lost since."""
        return bool(self._online)

    @property
    def lost_at(self) -> MonotonicSeconds:
        """The instant at which the device counts as lost, unless it answers before."""
        return self._answered_at + LOST_AFTER_SECONDS

    def answered(
        self, position: GatePosition | None, points: Mapping[str, PointState], *, at: MonotonicSeconds
    ) -> tuple[Report, ...]:
        """Return the reports due to an answered poll. `at` is when it was asked; `position` is None for no gate."""
        reports: list[Report] = []
        if not self._online:
            reports.append(DeviceConnected(self._device_id, at))
        self._online, self._newest = True, None
        self._loss.over()
        self._failures = 0
        self._answered_at = at
        if position is not None and (
            position is not self._position or at - self._position_reported_at >= REFRESH_SECONDS
        ):
            self._position, self._position_reported_at = position, at
            reports.append(GateMoved(self._device_id, position, at))
        for name, state in points.items():
            known = self._points.get(name)
            if known is None or known[0] is not state or at - known[1] >= REFRESH_SECONDS:
                self._points[name] = (state, at)
                reports.append(PointChanged(self._device_id, name, state, at))
        return tuple(reports)

    def failed(self, error: DriverError, *, at: MonotonicSeconds) -> tuple[Report, ...]:
        """Return the reports due to a poll that failed with this error."""
        return self.missed(str(error), at=at, asked=not isinstance(error, UnitRests), answers=is_answering(error))

    def missed(self, reason: str, *, at: MonotonicSeconds, asked: bool, answers: bool = False) -> tuple[Report, ...]:
        """Return the reports due to a poll that failed.

        Args:
            reason: why it failed, for people.
            at: when it failed.
            asked: False when the poll was not sent because the unit rests.
            answers: whether the device is there but cannot be used, as in `DeviceLost`.
        """
        self._failures += asked
        if asked or self._newest is None:
            self._newest = reason, answers
        reason, answers = self._newest
        if self._online is False:
            return self._loss.lost(reason, at=at, answers=answers) if asked else ()
        if self._failures < LOST_AFTER_POLLS and at < self.lost_at:
            missed = (PollMissed(self._device_id, self._failures, at),) if asked else ()
            self._points = {name: (state, float("-inf")) for name, (state, _) in self._points.items()}
            return (*missed, *self._gone_stale(at))
        self._online = False
        self._position, self._position_reported_at = GatePosition.UNKNOWN, float("-inf")
        self._points.clear()
        return self._loss.lost(reason, at=at, answers=answers)

    def interrupted(self, *, at: MonotonicSeconds) -> tuple[Report, ...]:
        """Return the reports due to a lost line: all points are unknown until they are read again.

        This holds however soon the line is back. The device may have been without power, and a loop detector that has
        just started may not see a vehicle that stands on its loop.
        """
        known = [name for name, (state, _) in self._points.items() if state is not PointState.UNKNOWN]
        self._points.update(dict.fromkeys(known, (PointState.UNKNOWN, at)))
        return tuple(PointChanged(self._device_id, name, PointState.UNKNOWN, at) for name in known)

    def _gone_stale(self, at: MonotonicSeconds) -> Iterator[Report]:
        for name, seconds in self._stale.items():
            state, _ = self._points.get(name, (PointState.UNKNOWN, at))
            if state is not PointState.UNKNOWN and at - self._answered_at >= seconds:
                self._points[name] = (PointState.UNKNOWN, at)
                yield PointChanged(self._device_id, name, PointState.UNKNOWN, at)


def poll_deadline(watch: PollWatch, *, now: MonotonicSeconds) -> MonotonicSeconds:
    """Return until when a poll may wait for the line: 1 s, but not past the instant at which the device is lost."""
    return min(now + _POLL_PATIENCE, watch.lost_at) if watch.lost_at > now else now + _POLL_PATIENCE


class PollPace:
    """The pace of one device's polls: when the next one is due.

    Args:
        poll_seconds: the interval between two polls while the device is not watched closely.
        monotonic: the clock.
    """

    def __init__(self, *, poll_seconds: float, monotonic: Callable[[], float]) -> None:
        self._poll_seconds = poll_seconds
        self._monotonic = monotonic
        self._wake = asyncio.Event()
        self._close_watch_until = float("-inf")

    def begin(self) -> MonotonicSeconds:
        """Begin a poll; return when the next one is due."""
        self._wake.clear()
        now = self._monotonic()
        return now + (CLOSE_WATCH_SECONDS if now < self._close_watch_until else self._poll_seconds)

    def watch_closely(self, *, until: MonotonicSeconds) -> None:
        """Poll as fast as the line allows until `until`."""
        if self._close_watch_until < self._monotonic():
            self._wake.set()
        self._close_watch_until = until

    def wake(self) -> None:
        """Make the next poll due at once."""
        self._wake.set()

    async def rest(self, *, until: MonotonicSeconds) -> None:
        """Wait until `until`, or until `wake` is called."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, until - self._monotonic())):
                await self._wake.wait()
