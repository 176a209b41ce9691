"""The segment index: rows for durable files, written in batches, and reconciled with the disk at the start.

Nothing here holds up a camera worker. While the store takes no data, segments beyond the queue's limit are left out.
Their files are adopted later, because a segment's name has what its row needs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import structlog

from gateway.domain.errors import StoreError
from gateway.domain.events import Event, EventKind
from gateway.domain.footage import SegmentFinished
from gateway.recording import media_files
from gateway.recording.chain import FootageChain, keep_leaves
from gateway.recording.media_files import FinishedFile, HourFolder, MediaFolder
from gateway.runtime.clock import Clock, Stamp, boot_id, iso_utc, offset_of
from gateway.store import Entry, Journal, Segment
from gateway.store.footage.segments import Segments
from gateway.texts import text

_MICROS = 1_000_000
log = structlog.get_logger(__name__)

_MOST_WAITING = 5_000
_BATCH = 256
_BATCH_SECONDS = 0.1
_SWEEP_SECONDS = 120.0
_RETRY_SECONDS = 1.0
_HOUR_MICROS = 3_600_000_000
_SETTLED_MICROS = 60_000_000
_EVER = 2**62
_GAP_MICROS = 1_000_000
_LAST_MICROS = 600_000_000


@dataclass(frozen=True, slots=True)
class _Lost:
    """Lost footage of one camera: number of files, total duration in micros, and the time it spans (wall micros)."""

    files: int
    duration: int
    since: int
    until: int


@dataclass(frozen=True, slots=True)
class LostFootage:
    """Lost footage by camera. `with_` adds more."""

    _cameras: Mapping[int, _Lost] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def files(self) -> int:
        """The number of lost files."""
        return sum(lost.files for lost in self._cameras.values())

    def with_(self, segments: Iterable[Segment]) -> LostFootage:
        """Return the lost footage with these segments added."""
        cameras = dict(self._cameras)
        for segment in segments:
            so_far = cameras.get(segment.camera_id, _Lost(0, 0, segment.started_at, segment.ended_at))
            cameras[segment.camera_id] = replace(
                so_far,
                files=so_far.files + 1,
                duration=so_far.duration + segment.duration,
                since=min(so_far.since, segment.started_at),
                until=max(so_far.until, segment.ended_at),
            )
        return LostFootage(MappingProxyType(cameras))

    def events(self, now: Stamp) -> tuple[Event, ...]:
        """Return one event for each camera."""
        return tuple(_event(camera_id, lost, now) for camera_id, lost in sorted(self._cameras.items()))


def _event(camera_id: int, lost: _Lost, now: Stamp) -> Event:
    seconds = round(lost.duration / _MICROS, 3)
    return Event(
        kind=EventKind.FOOTAGE_GAP,
        date_at=now.micros,
        clock_trusted=now.trusted,
        text=text(
            "event.footage_gone",
            camera=str(camera_id),
            seconds=f"{seconds:.1f}",
            since=iso_utc(lost.since),
            until=iso_utc(lost.until),
        ),
        device_id=camera_id,
        data={
            "seconds": seconds, "reason": "lost", "from": lost.since, "until": lost.until, "files": lost.files,
        },
    )  # fmt: skip


class UnreportedGap(NamedTuple):
    """A gap in a camera's footage between these times (wall micros), for which there is no event yet."""

    camera_id: int
    since: int
    until: int


class FootageIndex:
    """Writer of workers' reports into the store, in order: rows of segments, and the events that follow.

    Call `recover` once before workers start, and keep `run` alive as a task.

    Attributes:
        rows: the rows of footage.
        media: the media folder.
        clock: wall and monotonic time.
    """

    def __init__(
        self,
        *,
        segments: Segments,
        journal: Journal,
        media: Path,
        clock: Clock,
        chain: FootageChain | None = None,
        added: Callable[[frozenset[int]], None] = lambda _: None,
    ) -> None:
        """Keep the collaborators.

        `chain` is woken when files were adopted, because their hashes are unknown. `added` is called with the ids of
        cameras that have new rows.
        """
        self._chain = chain
        self._added = added
        self.rows = segments
        self._journal = journal
        self.media = media
        self.clock = clock
        self._segments: deque[SegmentFinished] = deque()
        self._events: deque[Event] = deque()
        self._offered = asyncio.Event()
        self._written = asyncio.Event()
        self._written.set()
        self._covered: dict[int, int] = {}
        self._boot_id = boot_id()
        self._covered_uptime: dict[int, int] = {}
        self._left_out = 0

    def covered_until(self, camera_id: int) -> int | None:
        """Return the wall micros up to which the camera's footage has rows, None without any."""
        return self._covered.get(camera_id)

    def covered_uptime(self, camera_id: int) -> int | None:
        """Return the monotonic micros up to which the camera's footage of this boot has rows, None without any."""
        return self._covered_uptime.get(camera_id)

    async def look_again(self) -> None:
        """Read again up to when each camera has footage, after times were corrected. Raises StoreError."""
        await self.flush()
        for camera_id in tuple(self._covered):
            latest = await self.rows.latest(camera_id, before=self._not_after())
            if latest is not None:
                self._covered[camera_id] = latest.ended_at

    def offer(self, segment: SegmentFinished) -> None:
        """Queue a durable segment for a row."""
        if len(self._segments) >= _MOST_WAITING:
            self._left_out += 1
            return
        self._segments.append(segment)
        self._wake()

    def tell(self, event: Event) -> None:
        """Queue an event to be recorded."""
        if len(self._events) >= _MOST_WAITING:
            log.error("event_not_recorded", kind=event.kind.name, description=event.description)
            return
        self._events.append(event)
        self._wake()

    async def flush(self) -> None:
        """Wait until everything queued so far is on disk."""
        await self._written.wait()

    async def run(self) -> None:
        """Write queued segments and events until cancelled. Writes that the store refuses are tried again."""
        while True:
            await self._offered.wait()
            await asyncio.sleep(_BATCH_SECONDS)
            self._offered.clear()
            while self._segments or self._events:
                try:
                    await self._write()
                except StoreError as error:
                    log.warning("footage_not_recorded", error=str(error), waiting=len(self._segments))
                    await asyncio.sleep(_RETRY_SECONDS)
            if self._left_out:
                log.warning("segments_left_to_be_adopted", segments=self._left_out)
                self._left_out = 0
            self._written.set()

    async def recover(self, cameras: tuple[int, ...]) -> tuple[UnreportedGap, ...]:
        """Reconcile rows and files: finish deletions, drop rows without a file, adopt files without a row.

        Return the gaps before adopted files. No event tells of them, because these files were written but never
        reported, for example when the gateway died twice within seconds.

        Call it while no worker runs, and only if the media folder is known to be the right one. Raises StoreError.
        """
        garbage = await self.rows.garbage()
        await self.delete(garbage)
        lost = await self._drop_lost()
        cut = await self._set_aside(cameras)
        for camera_id in cameras:
            latest = await self.rows.latest(camera_id, before=self._not_after())
            if latest is not None:
                self._covered[camera_id] = latest.ended_at
        found, unreported = 0, list[UnreportedGap]()
        ends = dict(self._covered)
        async for segments in self._adopted(None, since="", ended_before=_EVER):
            found += len(segments)
            for segment in segments:
                ended_at = ends.get(segment.camera_id)
                if ended_at is not None and segment.started_at - ended_at > _GAP_MICROS:
                    unreported.append(UnreportedGap(segment.camera_id, ended_at, segment.started_at))
                ends[segment.camera_id] = max(ended_at or 0, segment.started_at + segment.duration)
        if garbage or lost or cut or found:
            log.info(
                "footage_recovered",
                deletions_finished=len(garbage), rows_without_file=lost, files_cut_off=cut, files_adopted=found,
            )  # fmt: skip
        return tuple(unreported)

    async def adopt(self, cameras: frozenset[int]) -> tuple[SegmentFinished, ...]:
        """Add rows for unreported files of these cameras since their newest footage, and return the segments.

        Call it while the worker of these cameras does not run. Raises StoreError.
        """
        await self.flush()
        return await self._adopt_newest(cameras, ended_before=_EVER)

    async def sweep(self, cameras: frozenset[int]) -> None:
        """Add rows for files that stay unreported for a minute, because a report may get lost. Raises StoreError."""
        settled = self.clock.wall().micros - _SETTLED_MICROS
        await self._adopt_newest(cameras, ended_before=settled)

    async def sweep_on(self, cameras: Callable[[], frozenset[int]], folder: MediaFolder) -> None:
        """Sweep every two minutes until cancelled, unless the media folder cannot be used. Raises StoreError."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            if not folder.fault:
                await self.sweep(cameras())

    async def delete(self, segments: tuple[Segment, ...]) -> None:
        """Delete the files of segments, store their leaves, then remove their rows. Raises StoreError."""
        if not segments:
            return
        before = utc_hour(self.clock.wall().micros - 2 * _HOUR_MICROS)
        paths = [segment.path for segment in segments]
        try:
            await asyncio.to_thread(media_files.remove, self.media, paths, empty_before=before)
            await asyncio.to_thread(keep_leaves, self.media, segments)
        except OSError as error:
            raise StoreError(text("refused.footage_not_deleted", why=str(error.strerror))) from error
        await self.rows.forget(segments)

    def _wake(self) -> None:
        self._written.clear()
        self._offered.set()

    async def _write(self) -> None:
        segments = list(islice(self._segments, _BATCH))
        if segments:
            await self.rows.add(segments)
            self._cover(segments)
            self._added(frozenset(segment.camera_id for segment in segments))
            _drop_first(self._segments, len(segments))
        events = tuple(islice(self._events, _BATCH))
        if events:
            await self._journal.record(Entry(events=events))
            _drop_first(self._events, len(events))

    def _not_after(self) -> int:
        """Return the latest credible end of footage (wall micros); a later one comes from a clock that was ahead."""
        return self.clock.wall().micros + _HOUR_MICROS

    def _cover(self, segments: Sequence[SegmentFinished]) -> None:
        not_after = self._not_after()
        for segment in segments:
            ended_at = segment.started_at + segment.duration
            if segment.boot_id == self._boot_id != "":
                uptime = segment.monotonic + segment.duration
                self._covered_uptime[segment.camera_id] = max(uptime, self._covered_uptime.get(segment.camera_id, 0))
            if ended_at > not_after:
                continue
            self._covered[segment.camera_id] = max(ended_at, self._covered.get(segment.camera_id, 0))

    async def _drop_lost(self) -> int:
        at, lost = 0, LostFootage()
        is_there = _Presence(self.media)
        try:
            while page := await self.rows.after(at):
                at = page[-1].id
                missing = await asyncio.to_thread(is_there.missing, page)
                if missing:
                    await self._keep_leaves(missing)
                    await self.rows.forget(missing)
                    lost = lost.with_(missing)
        finally:
            for event in lost.events(self.clock.wall()):
                self.tell(event)
        return lost.files

    async def _set_aside(self, cameras: tuple[int, ...]) -> int:
        """Set aside files of the last minutes whose size is no longer the confirmed one; return their number."""
        cut = 0
        for camera_id in cameras:
            latest = await self.rows.latest(camera_id, before=self._not_after())
            if latest is None:
                continue
            rows = await self.rows.between(camera_id, latest.ended_at - _LAST_MICROS, latest.ended_at)
            sizes = [(row.path, row.size) for row in rows]
            paths = await asyncio.to_thread(media_files.cut_off, self.media, sizes)
            if paths:
                log.error("segments_cut_off", camera_id=camera_id, segments=len(paths))
                broken = [row for row in rows if row.path in paths]
                await self._keep_leaves(broken)
                await self.rows.forget(broken)
                await self._rename(paths)
                cut += len(paths)
        return cut

    async def _rename(self, paths: frozenset[str]) -> None:
        try:
            await asyncio.to_thread(media_files.set_aside, self.media, paths)
        except OSError as error:
            raise StoreError(text("refused.media_unwritable", why=str(error.strerror))) from error

    async def _keep_leaves(self, segments: Sequence[Segment]) -> None:
        try:
            await asyncio.to_thread(keep_leaves, self.media, segments)
        except OSError as error:
            raise StoreError(text("refused.media_unwritable", why=str(error.strerror))) from error

    async def _adopt_newest(self, cameras: frozenset[int], *, ended_before: int) -> tuple[SegmentFinished, ...]:
        now = self.clock.wall().micros
        oldest = min((self._covered.get(camera_id, now) for camera_id in cameras), default=now)
        found: list[SegmentFinished] = []
        since = utc_hour(min(oldest, now) - _HOUR_MICROS)
        async for segments in self._adopted(cameras, since=since, ended_before=ended_before):
            found += segments
        if found:
            log.info("footage_adopted", files=len(found))
        return tuple(found)

    async def _adopted(
        self, cameras: frozenset[int] | None, *, since: str, ended_before: int
    ) -> AsyncIterator[tuple[SegmentFinished, ...]]:
        """Add rows for unreported files and yield their segments, hour by hour. Raises StoreError."""
        try:
            for folder in await asyncio.to_thread(_folders, self.media, cameras, since):
                files = await asyncio.to_thread(media_files.segment_files, self.media, folder)
                if files:
                    yield await self._adopt_hour(folder, files, ended_before=ended_before)
        except OSError as error:
            raise StoreError(text("refused.media_unreadable", why=str(error.strerror))) from error

    async def _adopt_hour(
        self, folder: HourFolder, files: tuple[FinishedFile, ...], *, ended_before: int
    ) -> tuple[SegmentFinished, ...]:
        known = await self.rows.known(f"{folder.camera_id}/{folder.hour}")
        found = media_files.adopted(
            files,
            known=known,
            ended_before=ended_before,
            offset=offset_of(self.clock, boot_id()),
        )
        broken = frozenset(file.path for file in files if not file.is_whole and file.path not in known)
        if broken:
            log.error("files_cut_off", camera_id=folder.camera_id, files=len(broken))
            await self._rename(broken)
        if found:
            await self.rows.add(found)
            self._cover(found)
            if self._chain is not None:
                self._chain.wake()
        return found


class _Presence:
    """Check of segments against the disk, by folder listings. Blocking.

    Segments come in the order of recording, with all cameras mixed, so the next ones are mostly in the same folders as
    the last ones. The listings of the last call are therefore kept.
    """

    def __init__(self, media: Path) -> None:
        self.media = media
        self._listed: dict[str, frozenset[str]] = {}

    def missing(self, rows: Sequence[Segment]) -> list[Segment]:
        """Return those of `rows` whose file is missing."""
        places = [row.path.rpartition("/") for row in rows]
        before = self._listed
        self._listed = {
            folder: before[folder] if folder in before else _names(self.media / folder)
            for folder in {folder for folder, _, _ in places}
        }
        found = zip(rows, places, strict=True)
        return [row for row, (folder, _, name) in found if name not in self._listed[folder]]


def _names(folder: Path) -> frozenset[str]:
    try:
        return frozenset(file.name for file in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()


def _folders(media: Path, cameras: frozenset[int] | None, since: str) -> list[HourFolder]:
    return list(media_files.hour_folders(media, cameras=cameras, since=since))


def _drop_first(waiting: deque[Any], count: int) -> None:
    for _ in range(count):
        waiting.popleft()


def utc_hour(micros: int) -> str:
    """Return the UTC hour of a time (wall micros) as yyyymmddhh, which is the name of an hour folder."""
    return Stamp(micros=max(micros, 0), trusted=False).as_datetime().strftime("%Y%m%d%H")
