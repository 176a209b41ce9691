"""The making of proof packages from the site's own events and footage."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Self

from gateway.domain.errors import CameraUnavailable, NotFoundError
from gateway.domain.events import RecordedEvent
from gateway.domain.footage import leaf_of, link_of
from gateway.domain.passages import CameraEvent
from gateway.proof_package.package import (
    MOST_BETWEEN,
    MOST_CLIPS,
    Clip,
    EventEntry,
    GapEntry,
    MissingEntry,
    SegmentEntry,
    write_package,
)
from gateway.proof_package.seal import SiteKey
from gateway.recording import Recording
from gateway.runtime.clock import Clock, iso_utc
from gateway.store import Segment, Store
from gateway.store.events.events import Events
from gateway.store.events.passages import Passages
from gateway.store.footage.camera_events import CameraEvents

_MOST_KEPT = 10
_UNHASHED = "0" * 64


@dataclass(frozen=True, slots=True)
class _Story:
    """All events of a visit, its clips, and the clips that cannot be included."""

    visit: tuple[EventEntry, ...]
    clips: list[Clip]
    missing: list[MissingEntry]


class ProofPackages:
    """The maker of packages: one at a time; the last ten are kept in the data folder."""

    def __init__(
        self,
        *,
        events: Events,
        passages: Passages,
        camera_events: CameraEvents,
        recording: Recording,
        folder: Path,
        site_name: Callable[[], str],
        clock: Clock,
    ) -> None:
        """`folder`: the data folder, which holds the site's key and the packages."""
        self._events = events
        self._passages = passages
        self._camera_events = camera_events
        self._recording = recording
        self._folder = folder
        self._site = site_name
        self._clock = clock
        self._one = asyncio.Lock()

    @classmethod
    def of(
        cls, store: Store, *, recording: Recording, folder: Path, site_name: Callable[[], str], clock: Clock
    ) -> Self:
        """Build it over a store."""
        return cls(
            events=store.events,
            passages=store.passages,
            camera_events=store.camera_events,
            recording=recording,
            folder=folder,
            site_name=site_name,
            clock=clock,
        )

    async def of_event(self, event_id: int, *, by: str) -> Path:
        """Make the package of an event for an account.

        Raises NotFoundError, StoreError, and CameraUnavailable while footage is still coming.
        """
        event = await self._events.get(event_id)
        if event is None:
            raise NotFoundError(f"there is no event {event_id}")
        async with self._one:
            story = await self._story(event)
            path = self._folder / "proof_packages" / f"event-{event_id}.zip"
            stamp = self._clock.wall()
            made = (iso_utc(stamp.micros), by, stamp.trusted)
            await asyncio.to_thread(self._write, path, _entry(event), story, made)
        return path

    def _write(self, path: Path, event: EventEntry, story: _Story, made: tuple[str, str, bool]) -> None:
        write_package(
            path,
            event=event,
            visit=story.visit,
            clips=story.clips,
            missing=story.missing,
            site=self._site(),
            made=made,
            gateway=version("edge-gateway"),
            key=SiteKey.of(self._folder),
        )
        kept = sorted(path.parent.glob("event-*.zip"), key=lambda one: one.stat().st_mtime_ns)
        for old in kept[:-_MOST_KEPT]:
            old.unlink(missing_ok=True)

    async def _story(self, event: RecordedEvent) -> _Story:
        """Return the event's visit with its clips, the event's own first, and with the reasons for missing clips.

        Raises CameraUnavailable while footage is still coming.
        """
        visit = await self._passages.story(event)
        story = _Story(tuple(_entry(item) for item in visit), [], [])
        camera_events = await self._camera_events.of_events(tuple(item.id for item in visit))
        for item in sorted(camera_events, key=lambda one: one.event_id != event.id):
            reason = f"a package holds {MOST_CLIPS} clips at most"
            if len(story.clips) < MOST_CLIPS:
                try:
                    story.clips.append(await self._clip(item))
                    continue
                except NotFoundError as error:
                    reason = str(error)
                except CameraUnavailable as error:
                    if not item.ready:
                        raise
                    reason = str(error)
            story.missing.append(
                MissingEntry(
                    camera_id=item.camera_id, camera=self._name(item.camera_id), event_id=item.event_id, reason=reason
                )
            )
        return story

    async def _clip(self, item: CameraEvent) -> Clip:
        clip, parts = await self._recording.clip(item), await self._recording.parts(item)
        segments = [part for _, part in parts]
        entries = await self._linked(item.camera_id, segments)
        begin, end = item.pinned_from, item.pinned_until
        gaps = (await self._recording.missing((item,)))[item.id]
        return Clip(
            camera_id=item.camera_id,
            camera=self._name(item.camera_id),
            path=clip,
            segments=tuple((path, entries[part.id]) for path, part in parts),
            event_id=item.event_id,
            begin=iso_utc(begin),
            end=iso_utc(end),
            gaps=tuple(GapEntry(begin=iso_utc(g.begin), micros=g.end - g.begin, reason=str(g.why)) for g in gaps),
        )

    def _name(self, camera_id: int) -> str:
        names = (camera.name for camera in self._recording.cameras() if camera.camera_id == camera_id)
        return next(names, f"camera {camera_id}")

    async def _linked(self, camera_id: int, segments: list[Segment]) -> dict[int, SegmentEntry]:
        """Return the segments' entries by id, each with the chain's leaves between the segment before it and itself."""
        entries: dict[int, SegmentEntry] = {}
        before: int | None = None
        for segment in sorted(segments, key=lambda one: one.place.number if one.place else 0):
            between: tuple[str, ...] | None = ()
            if segment.place is not None:
                number = segment.place.number
                if before is not None:
                    near = number - before <= MOST_BETWEEN
                    between = await self._recording.leaves(camera_id, after=before, before=number) if near else None
                before = number
            entries[segment.id] = _segment(segment, between)
        return entries


def _entry(event: RecordedEvent) -> EventEntry:
    return EventEntry(
        id=event.id,
        type=event.type,
        name=event.name,
        description=event.description,
        lane_id=event.lane_id,
        device_id=event.device_id,
        date_at=iso_utc(event.date_at),
        clock_trusted=event.clock_trusted,
        data=event.data,
        trace=event.trace,
    )


def _segment(segment: Segment, between: tuple[str, ...] | None) -> SegmentEntry:
    entry = SegmentEntry(
        path=segment.path,
        started_at=iso_utc(segment.started_at),
        duration_micros=segment.duration,
        clock_trusted=segment.clock_trusted,
        gap_before=segment.gap.value,
        sha256=_UNHASHED,
        between=between,
    )
    if segment.place is None:
        return entry
    link = link_of(segment.place.previous, leaf_of(path=segment.path, sha256=segment.sha256))
    place = {"number": segment.place.number, "previous": segment.place.previous, "link": link}
    return entry.model_copy(update=place)
