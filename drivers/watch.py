"""What polls of a device mean, pure: when it counts as lost, and which reports are due. For every family.

Rules:
- Lost after 3 failed polls in a row, or after 2 s without an answer, whichever is first; said once.
- Back with the first answer: said once, and all that is known is reported anew.
- A change is reported with the poll that shows it; what did not change is reported again after 1 s.
- Between its limits a gate moves away from the limit that it left last; an acknowledged command that came later says it
  better. On a limit, only the limit counts.
"""

from __future__ import annotations

from collections.abc import Mapping

from drivers.contract import (
    DeviceConnected,
    DeviceLost,
    GateMoved,
    GatePosition,
    MonotonicSeconds,
    PointChanged,
    PointState,
    Report,
)

LOST_AFTER_POLLS = 3
LOST_AFTER_SECONDS = 2.0
REFRESH_SECONDS = 1.0
POLL_PATIENCE = 1.0


class Presence:
    """Whether a polled device is there. No clock of its own: instants come with each call."""

    def __init__(self, *, device_id: int, started_at: MonotonicSeconds) -> None:
        self._device_id = device_id
        self._online: bool | None = None
        self._failures = 0
        self._heard_at = started_at

    @property
    def is_online(self) -> bool:
        """Whether it answered last, and is not lost since."""
        return self._online is True

    def poll_deadline(self, *, now: MonotonicSeconds) -> MonotonicSeconds:
        """Until when a poll may wait for the line: not past the instant at which the device would count as lost."""
        lost_at = self._heard_at + LOST_AFTER_SECONDS
        return min(now + POLL_PATIENCE, lost_at) if lost_at > now else now + POLL_PATIENCE

    def heard(self, *, at: MonotonicSeconds) -> tuple[Report, ...]:
        """It answered."""
        was_online, self._online = self._online, True
        self._failures = 0
        self._heard_at = at
        return () if was_online else (DeviceConnected(self._device_id, at),)

    def missed(self, reason: str, *, at: MonotonicSeconds, asked: bool) -> tuple[Report, ...]:
        """A poll failed; `asked` is False when it was not even sent because the unit rests."""
        self._failures += asked
        waits = self._failures < LOST_AFTER_POLLS and at < self._heard_at + LOST_AFTER_SECONDS
        if self._online is False or waits:
            return ()
        self._online = False
        return (DeviceLost(self._device_id, reason, at),)


class GateWatch:
    """Turns the polls of a gate into reports."""

    def __init__(self, *, device_id: int, started_at: MonotonicSeconds) -> None:
        self._device_id = device_id
        self.presence = Presence(device_id=device_id, started_at=started_at)
        self._position = GatePosition.UNKNOWN
        self._position_told_at = float("-inf")
        self._points: dict[str, tuple[PointState, MonotonicSeconds]] = {}

    @property
    def position(self) -> GatePosition:
        """The position of the last poll; UNKNOWN when the device is lost."""
        return self._position

    def heard(
        self, position: GatePosition, points: Mapping[str, PointState], *, at: MonotonicSeconds
    ) -> tuple[Report, ...]:
        """The reports due to a poll that was answered at `at`."""
        reports = [*self.presence.heard(at=at)]
        if position is not self._position or at - self._position_told_at >= REFRESH_SECONDS:
            self._position, self._position_told_at = position, at
            reports.append(GateMoved(self._device_id, position, at))
        for name, state in points.items():
            told = self._points.get(name)
            if told is None or told[0] is not state or at - told[1] >= REFRESH_SECONDS:
                self._points[name] = (state, at)
                reports.append(PointChanged(self._device_id, name, state, at))
        return tuple(reports)

    def missed(self, reason: str, *, at: MonotonicSeconds, asked: bool) -> tuple[Report, ...]:
        """The reports due to a poll that failed."""
        reports = self.presence.missed(reason, at=at, asked=asked)
        if reports:
            self._position, self._position_told_at = GatePosition.UNKNOWN, float("-inf")
            self._points.clear()
        return reports


def limit_position(
    *, closed: PointState, opened: PointState, before: GatePosition, commanded: GatePosition | None
) -> GatePosition:
    """The position by two limit switches; both at once, or one unknown, says nothing."""
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
    """The position of a gate on no limit.

    Args:
        before: what the poll before showed.
        commanded: what the last command acknowledged since then leads to: OPENING, CLOSING or STOPPED.
    """
    if commanded is GatePosition.STOPPED:
        return GatePosition.STOPPED
    if before is GatePosition.CLOSED:
        return GatePosition.OPENING
    if before is GatePosition.OPEN:
        return GatePosition.CLOSING
    return commanded or before
