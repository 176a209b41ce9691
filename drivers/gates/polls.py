"""Judgement of a device's polls, pure, for every family: when it counts as lost, and which reports are due.

Rules:
- Lost after 3 failed polls in a row, or after 2 s without an answer, whichever is first; reported once, and again with
  each other reason. A poll that was not even sent is no reason where a better one is known.
- Back with the first answer: reported once, with all that is known.
- Each missed poll is reported until then, and every point again with the next answer.
- A point with a staleness of its own is unknown that long after the last answer.
- Every point is unknown from the moment in which the line is lost, until it is read again.
- A change is reported with the poll that shows it; what did not change is reported again after 1 s.
- Between its limit switches a gate moves away from the limit that it left last; an acknowledged command that came
  later overrides that. On a limit, only the limit counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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


def limit_position(
    *, closed: PointState, opened: PointState, before: GatePosition, commanded: GatePosition | None
) -> GatePosition:
    """Return the position by two limit switches; both at once, or one unknown, says nothing."""
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
    """Return the position of a gate on no limit.

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


class Watch:
    """The reports due to one device's polls. No clock of its own: instants come with each call.

    `stale` says for some points how many seconds after the last answer they are unknown.
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
        """The instant at which the device counts as lost without an answer before."""
        return self._answered_at + LOST_AFTER_SECONDS

    def answered(
        self, position: GatePosition | None, points: Mapping[str, PointState], *, at: MonotonicSeconds
    ) -> tuple[Report, ...]:
        """Return the reports due to a poll asked at `at` and answered; `position` is None for what is no gate."""
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
        """Return the reports due to a poll that raised this."""
        return self.missed(str(error), at=at, asked=not isinstance(error, UnitRests), answers=is_answering(error))

    def missed(self, reason: str, *, at: MonotonicSeconds, asked: bool, answers: bool = False) -> tuple[Report, ...]:
        """Return the reports due to a poll that failed.

        Args:
            reason: why, for people.
            at: when.
            asked: False when it was not even sent because the unit rests.
            answers: whether something is there, as `DeviceLost` says.
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
        """Return the reports due to a lost line, however soon it is back: the points are unknown until read again.

        The device may have been without power, and a loop detector that starts sees no vehicle at first.
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


def poll_deadline(watch: Watch, *, now: MonotonicSeconds) -> MonotonicSeconds:
    """Return until when a poll may wait for the line: not past the instant at which the device would count as lost."""
    return min(now + _POLL_PATIENCE, watch.lost_at) if watch.lost_at > now else now + _POLL_PATIENCE
