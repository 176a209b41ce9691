"""Watch over cameras and workers: their reports change states and lead to rows and events."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

import structlog

from gateway.domain.errors import StoreError
from gateway.domain.events import Event, EventKind
from gateway.domain.footage import (
    CameraCondition,
    GapReason,
    Missing,
    PartWritten,
    SegmentFinished,
    WorkerBeat,
    WorkerReport,
)
from gateway.recording.cameras import CameraSnapshot, CameraState
from gateway.recording.index import FootageIndex, UnreportedGap
from gateway.recording.readiness import Coverage
from gateway.recording.worker_pool import CameraWorker
from gateway.runtime.clock import Clock, WallTimes
from gateway.store import Changes
from gateway.texts import text

log = structlog.get_logger(__name__)

_ADOPTING_SECONDS = 3.0  # after that the sweep adopts the rest: a slow disk or store must not delay a worker's start


class CameraWatch:
    """The listener of the workers: it keeps each camera's state, and passes segments and events on to the index."""

    def __init__(
        self,
        *,
        names: Mapping[int, str],
        index: FootageIndex,
        changes: Changes,
        clock: Clock,
        events_only: frozenset[int] = frozenset(),
        live: Callable[[PartWritten | SegmentFinished], None] = lambda _: None,
    ) -> None:
        """Keep the collaborators.

        Args:
            names: the names of the site's cameras by id, in the order in which they are shown.
            index: writes segments and events.
            changes: bumped when a camera's state changes.
            clock: wall and monotonic time.
            events_only: the cameras that are recorded for events only; footage missing between events is no gap.
            live: takes the parts and segments that are watched live.
        """
        now = clock.wall().micros
        self._states = {
            camera_id: CameraState(camera_id=camera_id, name=name, since=now, events_only=camera_id in events_only)
            for camera_id, name in names.items()
        }
        self._index = index
        self._changes = changes
        self._clock = clock
        self._wall_times = WallTimes(clock)
        self._live = live
        started = int(clock.monotonic() * 1_000_000)
        self._changed_at = dict.fromkeys(self._states, started)
        self._off: Mapping[int, str] = MappingProxyType({})
        self._lost_workers: set[str] = set()
        self._gaps: Counter[int] = Counter()
        self._missing_seconds: defaultdict[int, float] = defaultdict(float)

    def snapshots(self) -> tuple[CameraSnapshot, ...]:
        """Return snapshots of all cameras."""
        return tuple(
            replace(
                state.snapshot(),
                since=self._changed_at[number] + self._wall_times.ahead(),
                gaps=self._gaps[number],
                missing_seconds=self._missing_seconds[number],
            )
            for number, state in self._states.items()
        )

    def coverage(self, camera_id: int) -> Coverage:
        """Return up to when a camera has footage, and whether more may come."""
        until = self._index.covered_until(camera_id)
        state = self._states.get(camera_id)
        if state is None:
            return Coverage(until=until, more_may_come=False, since=0)
        more_may_come = state.condition in (CameraCondition.STARTING, CameraCondition.RECORDING)
        in_memory = state.events_only and state.condition is CameraCondition.DISK_FAILED
        return Coverage(
            until=until,
            more_may_come=more_may_come,
            since=state.since,
            in_memory=in_memory,
            uptime_until=self._index.covered_uptime(camera_id),
            uptime_since=self._changed_at.get(camera_id, 0),
        )

    def explained(self, camera_id: int, missing: Missing) -> Missing:
        """Return a gap with its reason made more precise by the present state of its camera, if it lasts until now."""
        state = self._states.get(camera_id)
        if missing.reason not in (GapReason.AWAY, GapReason.NEVER):
            return missing
        if state is None:
            return replace(missing, reason=GapReason.REMOVED)
        says_more = missing.reason is GapReason.AWAY or state.why_away in (GapReason.REFUSED, GapReason.UNSUPPORTED)
        if state.why_away is GapReason.NONE or not says_more:
            return missing
        return replace(missing, reason=state.why_away, lasts=state.condition is not CameraCondition.RECORDING)

    def footage_is_indexed(self, unreported: Iterable[UnreportedGap] = ()) -> None:
        """Take over the footage of the reconciled index. `unreported`: gaps to report, without an event yet."""
        now = self._clock.wall()
        for gap in unreported:
            state = self._states.get(gap.camera_id)
            if state is not None and not state.events_only:
                self._tell(state.missed(gap.since, gap.until, GapReason.STARTED, now))
        for camera_id in tuple(self._states):
            self._extend(camera_id, self._index.covered_until(camera_id))

    def footage_has_moved(self) -> None:
        """Read the ends of footage again, because its times were corrected."""
        for camera_id, state in self._states.items():
            until = self._index.covered_until(camera_id)
            if until is not None:
                self._states[camera_id] = replace(state, footage_until=until)
        self._changes.bump()

    def change(self, names: Mapping[int, str], *, events_only: frozenset[int]) -> None:
        """Set the site's cameras. Known cameras keep their state."""
        now = self._clock.wall()
        states: dict[int, CameraState] = {}
        for camera_id, name in names.items():
            only_events = camera_id in events_only
            if (known := self._states.get(camera_id)) is not None:
                whole = known.recorded_whole(now) if known.events_only and not only_events else known
                states[camera_id] = replace(whole, name=name, events_only=only_events)
                continue
            added = CameraState(
                camera_id=camera_id,
                name=name,
                since=now.micros,
                events_only=only_events,
                footage_until=self._index.covered_until(camera_id),
            )
            states[camera_id] = added.connected_anew()  # the site file may have had the camera earlier
            self._changed_at[camera_id] = int(self._clock.monotonic() * 1_000_000)
        self._states = states
        self._changes.bump()

    def connected_anew(self, camera_ids: Iterable[int]) -> None:
        """Mark these cameras as reconnecting because the site file changed them."""
        for camera_id in camera_ids:
            if (state := self._states.get(camera_id)) is not None:
                self._states[camera_id] = state.connected_anew()

    def turn_off(self, faults: Mapping[int, tuple[CameraCondition, str]]) -> None:
        """Set the cameras that no worker records, each with its condition and a sentence. Workers report the others."""
        now = self._clock.wall()
        self._off = MappingProxyType({camera_id: detail for camera_id, (_, detail) in faults.items()})
        for camera_id, (condition, detail) in faults.items():
            if camera_id in self._states:
                self._settle(*self._states[camera_id].failed(condition, detail, now))

    def worker_reported(self, worker: CameraWorker, report: WorkerReport) -> None:
        """Take in a report of a worker."""
        if isinstance(report, WorkerBeat):
            self._lost_workers.discard(worker.name)
            return
        if isinstance(report, PartWritten):
            self._live(report)
            return
        state = self._states.get(report.camera_id)
        now = self._clock.wall()
        if isinstance(report, SegmentFinished):
            self._live(report)
            if state is None:  # of a camera that the site no longer has; its footage is kept all the same
                self._index.offer(report)
                return
            after, segment, events = state.recorded(report, now)
            self._index.offer(segment)
            self._settle(after, events)
        elif state is not None and report.camera_id not in self._off:
            self._settle(*state.reported(report, now))

    async def worker_lost(self, worker: CameraWorker, reason: str) -> None:
        """Record a worker's death once until it lives again, and adopt the files that it could not report."""
        now = self._clock.wall()
        cameras = [self._states[camera_id] for camera_id in sorted(worker.cameras & self._states.keys())]
        if worker.name not in self._lost_workers:
            self._lost_workers.add(worker.name)
            named = ", ".join(state.name for state in cameras)
            self._index.tell(
                Event(
                    kind=EventKind.WORKER_LOST,
                    date_at=now.micros,
                    clock_trusted=now.trusted,
                    text=text("event.worker_lost", worker=worker.name, why=reason, cameras=named),
                    data={"worker": worker.name, "reason": reason},
                )
            )
        for state in cameras:
            if state.camera_id not in self._off:
                self._settle(state.worker_lost(now), ())
        if worker.cameras <= self._off.keys():
            return  # their disk is away and must not be touched; files are adopted when it is back
        try:
            async with asyncio.timeout(_ADOPTING_SECONDS):
                found = await self._index.adopt(worker.cameras)
        except (StoreError, TimeoutError) as error:
            log.warning("footage_not_adopted", worker=worker.name, error=str(error) or "the disk is slow")
            return
        for segment in found:
            self._extend(segment.camera_id, segment.started_at + segment.duration)

    def _extend(self, camera_id: int, until: int | None) -> None:
        state = self._states.get(camera_id)
        if state is not None and until is not None:
            self._states[camera_id] = replace(state, footage_until=max(until, state.footage_until or 0))

    def _settle(self, state: CameraState, events: tuple[Event, ...]) -> None:
        before = self._states[state.camera_id]
        self._states[state.camera_id] = state
        if state.condition is not before.condition:
            self._changed_at[state.camera_id] = int(self._clock.monotonic() * 1_000_000)
        for event in events:
            self._tell(event)
        if not state.looks_like(before):
            self._changes.bump()

    def _tell(self, event: Event) -> None:
        """Queue an event of a camera, and count missing footage."""
        if event.kind is EventKind.FOOTAGE_GAP:
            self._gaps[event.device_id] += 1
            self._missing_seconds[event.device_id] += max(0.0, float(event.data["seconds"] or 0))
        self._index.tell(event)
