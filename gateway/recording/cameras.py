"""The state of each camera, and the events that follow from its worker's reports. Pure: frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from gateway.domain.events import Event, EventKind, Scalar
from gateway.domain.footage import (
    TOUCHING_MICROS,
    CameraCondition,
    CameraReported,
    GapReason,
    SegmentFinished,
    StreamFault,
    why_missing,
)
from gateway.domain.wall_time import WallMicros
from gateway.runtime.clock import Stamp
from gateway.texts import Text, text

_MICROS = 1_000_000
_WHY_IN = {
    CameraCondition.UNREACHABLE: GapReason.NETWORK,
    CameraCondition.REFUSED: GapReason.REFUSED,
    CameraCondition.UNSUPPORTED: GapReason.UNSUPPORTED,
    CameraCondition.STALLED: GapReason.CAMERA,
    CameraCondition.DISK_FAILED: GapReason.DISK,
}
"""Why footage is missing in a condition, unless the worker reports a more precise reason."""
_BY_CAMERA = (GapReason.CAMERA, GapReason.NETWORK, GapReason.REFUSED, GapReason.UNSUPPORTED)
_STARTED_AGAIN = (GapReason.STARTED, GapReason.WORKER, GapReason.DISK, GapReason.CHANGED)


@dataclass(frozen=True, slots=True)
class CameraSnapshot:
    """A camera as seen from outside.

    Attributes:
        camera_id: the camera's id.
        name: its name in the site file.
        condition: its present condition.
        detail: a sentence about the condition, "" for none.
        since: since when it is in this condition (wall micros).
        last_segment_at: the end of its newest footage (wall micros), None without footage.
        bits_per_second: the rate of its stream, 0 while it does not record.
        reconnects: the number of reconnections since the gateway started.
        gaps: the number of gaps in its footage since the gateway started.
        missing_seconds: the total duration of these gaps.
        faults: faults of its stream in spite of which it records.
        pace: the seconds that its timestamps count in a real one.
    """

    camera_id: int
    name: str
    condition: CameraCondition
    detail: str
    since: WallMicros
    last_segment_at: WallMicros | None
    bits_per_second: int
    reconnects: int
    gaps: int = 0
    missing_seconds: float = 0.0
    faults: tuple[StreamFault, ...] = ()
    pace: float = 1.0


class LastEvent(Enum):
    """The last event about whether the camera records."""

    NOTHING = "nothing"
    RECORDING = "recording"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class CameraState:
    """One camera's state. Methods that take an occurrence return the state after it and the events that follow."""

    camera_id: int
    name: str
    since: int
    events_only: bool = False
    condition: CameraCondition = CameraCondition.STARTING
    detail: str = ""
    footage_until: int | None = None
    boot_id: str = ""
    uptime_until: int = 0
    bits_per_second: int = 0
    reconnects: int = 0
    faults: tuple[StreamFault, ...] = ()
    pace: float = 1.0
    _reconnects_before: int = 0
    _worker_was_lost: bool = False
    _disk_failed: bool = False
    _changed: bool = False
    whole_since: int = 0
    last_event: LastEvent = LastEvent.NOTHING
    unsupported_reported: bool = False
    why_away: GapReason = GapReason.NONE
    away_since: int = 0

    def snapshot(self) -> CameraSnapshot:
        """Return the camera as seen from outside."""
        return CameraSnapshot(
            camera_id=self.camera_id,
            name=self.name,
            condition=self.condition,
            detail=self.detail,
            since=self.since,
            last_segment_at=self.footage_until,
            bits_per_second=self.bits_per_second,
            reconnects=self.reconnects,
            faults=self.faults,
            pace=self.pace,
        )

    def looks_like(self, other: CameraState) -> bool:
        """Return whether no viewer must be told of a difference at once; figures and footage change all the time."""
        return (self.condition, self.detail, self.faults) == (other.condition, other.detail, other.faults)

    def reported(self, report: CameraReported, now: Stamp) -> tuple[CameraState, tuple[Event, ...]]:
        """Take in a report of the camera's condition and figures."""
        recording = report.condition is CameraCondition.RECORDING
        state = replace(
            self._in(report.condition, report.detail, now, report.why),
            bits_per_second=report.bits_per_second if recording else 0,
            faults=report.faults if recording else (),
            pace=report.pace,
            reconnects=self._reconnects_before + report.reconnects,
            _disk_failed=self._disk_failed or report.condition is CameraCondition.DISK_FAILED,
        )
        return _with_event(state, now)

    def failed(self, condition: CameraCondition, detail: str, now: Stamp) -> tuple[CameraState, tuple[Event, ...]]:
        """Mark the camera as one that cannot be recorded, for a reason that no worker reports."""
        disk_failed = self._disk_failed or condition is CameraCondition.DISK_FAILED
        state = replace(self._in(condition, detail, now), bits_per_second=0, faults=(), _disk_failed=disk_failed)
        return _with_event(state, now)

    def worker_lost(self, now: Stamp) -> CameraState:
        """Mark its worker as dead. The worker has an event for that; the camera gets one when it records again."""
        return replace(
            self._in(CameraCondition.STARTING, "the camera worker is being restarted", now),
            bits_per_second=0,
            faults=(),
            _reconnects_before=self.reconnects,
            _worker_was_lost=True,
            why_away=GapReason.WORKER if self.why_away is GapReason.NONE else self.why_away,
            last_event=LastEvent.NOTHING if self.last_event is LastEvent.RECORDING else self.last_event,
        )

    def recorded_whole(self, now: Stamp) -> CameraState:
        """Switch from events only to continuous recording. Footage missing from before is no gap."""
        return replace(self, events_only=False, whole_since=now.micros)

    def connected_anew(self) -> CameraState:
        """Mark the camera as changed in the site file, which is the reason of the gap until it records again."""
        return replace(self, _reconnects_before=self.reconnects, _changed=True)

    def recorded(self, segment: SegmentFinished, now: Stamp) -> tuple[CameraState, SegmentFinished, tuple[Event, ...]]:
        """Take in a durable segment; return it with the reason of the gap before it corrected."""
        restarted = segment.gap in (GapReason.STARTED, GapReason.WORKER)
        if restarted and self._disk_failed and self.footage_until is not None:
            # whatever else was restarted meanwhile, the first reason is that there was no disk to write to
            segment = segment.model_copy(update={"gap": GapReason.DISK})
        elif segment.gap is GapReason.STARTED and self._worker_was_lost:
            segment = segment.model_copy(update={"gap": GapReason.WORKER})
        elif segment.gap is GapReason.STARTED and self._changed:
            segment = segment.model_copy(update={"gap": GapReason.CHANGED})
        elif self._was_away_for_longer(segment):
            segment = segment.model_copy(update={"gap": self.why_away})
        ended_at = segment.started_at + segment.duration
        events = _gap(self, segment, now)
        # a segment that was open when the worker died, or the camera was changed, is reported after that, without a gap
        lost = self._worker_was_lost and segment.gap is GapReason.NONE
        changed = self._changed and segment.gap is GapReason.NONE
        # so is a segment that a hung disk takes when it works again, though the camera may be reconnected by then
        behind = self.condition is CameraCondition.DISK_FAILED or segment.started_at < self.since
        late = segment.gap is GapReason.NONE and behind
        state = replace(
            self,
            footage_until=ended_at,
            boot_id=segment.boot_id,
            uptime_until=segment.monotonic + segment.duration,
            _worker_was_lost=lost,
            _disk_failed=self._disk_failed and (lost or late),
            _changed=changed,
            why_away=GapReason.NONE,
        )
        return state, segment, events

    def _was_away_for_longer(self, segment: SegmentFinished) -> bool:
        """Return whether the camera's absence explains more of the gap than the reason in the segment."""
        if self.why_away not in _BY_CAMERA:
            return False
        if segment.gap is GapReason.STARTED:
            until = self.footage_until
            return until is None or segment.started_at - self.away_since > self.away_since - until
        return segment.gap in _BY_CAMERA and self.why_away in (GapReason.REFUSED, GapReason.UNSUPPORTED)

    def missed(self, since: int, until: int, reason: GapReason, now: Stamp) -> Event:
        """Make the event of footage that is missing between two times (wall micros)."""
        seconds = round((until - since) / _MICROS, 3)
        how = "overlaps" if seconds < 0 else "missing"
        said = text(f"event.footage.{how}", camera=self.name, seconds=f"{abs(seconds):.1f}", why=why_missing(reason))
        data: dict[str, Scalar] = {"seconds": seconds, "reason": reason.value, "from": since, "until": until}
        return _event(self.camera_id, EventKind.FOOTAGE_GAP, said, now, data)

    def _in(self, condition: CameraCondition, detail: str, now: Stamp, why: GapReason = GapReason.NONE) -> CameraState:
        since = self.since if condition is self.condition else now.micros
        state = replace(self, condition=condition, detail=detail, since=since)
        if condition not in _WHY_IN:
            return state
        away_since = now.micros if self.why_away is GapReason.NONE else self.away_since
        why_away = _WHY_IN[condition] if why is GapReason.NONE else why
        return replace(state, why_away=why_away, away_since=away_since)


def _with_event(state: CameraState, now: Stamp) -> tuple[CameraState, tuple[Event, ...]]:
    """Return the state with the event of a recovery or a loss, unless that was the last event already."""
    if state.condition is CameraCondition.STARTING:
        return state, ()
    if state.condition is CameraCondition.RECORDING:
        last_event, kind = LastEvent.RECORDING, EventKind.CAMERA_RECORDING
        said = text("event.camera_recording", camera=state.name)
    else:
        last_event, kind = LastEvent.LOST, EventKind.CAMERA_LOST
        said = text("event.camera_lost", camera=state.name, why=state.detail)
    # a lost camera that now sends a stream that cannot be recorded gets a second event: it will not recover by itself
    unsupported = last_event is LastEvent.LOST and state.why_away is GapReason.UNSUPPORTED
    if last_event is state.last_event and unsupported <= state.unsupported_reported:
        return state, ()
    data: dict[str, Scalar] = {"condition": state.condition.value}
    if last_event is LastEvent.LOST:
        data["reason"] = state.why_away.value
    unsupported_reported = unsupported or (last_event is state.last_event and state.unsupported_reported)
    return replace(state, last_event=last_event, unsupported_reported=unsupported_reported), (
        _event(state.camera_id, kind, said, now, data),
    )


def _gap(state: CameraState, segment: SegmentFinished, now: Stamp) -> tuple[Event, ...]:
    """Make the event of a gap that a segment ends; none before a camera's first footage.

    For a camera that is recorded for events only, footage between events is no gap. Its worker reports which footage
    was wanted and is missing.
    """
    if state.events_only and segment.gap_from is not None:
        if segment.gap not in _STARTED_AGAIN:
            return (state.missed(segment.gap_from, segment.started_at, segment.gap, now),)
        # A restarted worker knows which footage events want, but not what its predecessor had written.
        since = None if state.footage_until is None else max(segment.gap_from, _footage_before(state, segment))
        if since is None or segment.started_at - since <= TOUCHING_MICROS:
            return ()
        return (state.missed(since, segment.started_at, segment.gap, now),)
    if segment.gap is GapReason.NONE or state.footage_until is None or state.events_only:
        return ()
    since = state.footage_until
    if segment.boot_id and segment.boot_id == state.boot_id:
        # By monotonic time: that somebody set the wall clock does not mean that footage is missing.
        missing = segment.monotonic - state.uptime_until
        if segment.gap is GapReason.CLOCK and abs(missing) <= TOUCHING_MICROS:
            return ()
        since = segment.started_at - missing
    since = max(since, state.whole_since)
    return (state.missed(since, segment.started_at, segment.gap, now),)


def _footage_before(state: CameraState, segment: SegmentFinished) -> int:
    """Return the end of the footage before a segment, by its clock."""
    until = state.footage_until or 0
    if segment.boot_id and segment.boot_id == state.boot_id:
        by_uptime = segment.started_at - (segment.monotonic - state.uptime_until)
        # of files found on the disk after a worker's death, only wall times are known
        return max(until, by_uptime) if until <= segment.started_at else by_uptime
    return until


def _event(camera_id: int, kind: EventKind, said: Text, now: Stamp, data: Mapping[str, Scalar]) -> Event:
    return Event(
        kind=kind,
        date_at=now.micros,
        clock_trusted=now.trusted,
        text=said,
        device_id=camera_id,
        data=data,
    )
