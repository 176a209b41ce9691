"""Proof packages of events, for accounts that may see events and footage."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from aiohttp import web

from gateway.domain.errors import CameraUnavailable, NotFoundError
from gateway.domain.events import RecordedEvent
from gateway.domain.footage_chain import leaf_of, link_of
from gateway.domain.passages import CameraEvent
from gateway.proof_package import (
    MOST_BETWEEN,
    MOST_CLIPS,
    Clip,
    EventEntry,
    GapEntry,
    MissingEntry,
    SegmentEntry,
    SiteKey,
    write_package,
)
from gateway.recording import Recording
from gateway.runtime.clock import Clock, iso_utc
from gateway.store import Segment
from gateway.store.events.events import Events
from gateway.store.events.passages import Passages
from gateway.store.footage.camera_events import CameraEvents
from gateway.web.auth.admission import Route
from gateway.web.auth.callers import Caller
from gateway.web.http.bodies import path_id
from gateway.web.http.envelope import success
from gateway.web.http.errors import RequestRefused
from gateway.web.http.files import as_file, in_time
from gateway.web.operation import Operation, needs
from gateway.web.status.snapshot import trace_of

PROOF_PACKAGE = Operation(
    "GET", "/status/proof/{id}", needs("can_view_events") & needs("can_view_camera_events"), "proof"
)
FOOTAGE_CHAIN = Operation("GET", "/status/chain/{id}", needs("can_view_camera_events"), "leaves")


_MOST_KEPT = 10
_UNHASHED = "0" * 64


@dataclass(frozen=True, slots=True)
class _Story:
    """All events of a visit, its clips, and the clips that cannot be included."""

    visit: tuple[EventEntry, ...]
    clips: list[Clip]
    missing: list[MissingEntry]


class ProofPackages:
    """The handlers of `/status/proof/{event}`, a ZIP file, and `/status/chain/{camera}`.

    Packages are made one at a time; the last ten are kept in the data folder.
    """

    def __init__(
        self,
        *,
        events: Events,
        passages: Passages,
        camera_events: CameraEvents,
        recording: Recording,
        folder: Path,
        site_name: str,
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

    def routes(self) -> tuple[Route, ...]:
        """Return the operations of this family."""
        return (Route(PROOF_PACKAGE, self._get), Route(FOOTAGE_CHAIN, self._chain))

    async def _chain(self, request: web.Request, _: Caller) -> web.StreamResponse:
        """Answer `/status/chain/{camera}?after=…&before=…` with the chain's leaves between two segments' numbers."""
        camera_id = path_id(request)
        if camera_id not in {camera.camera_id for camera in self._recording.cameras()}:
            raise NotFoundError(f"this site has no camera {camera_id}")
        after, before = (_number(request.query.get(name, "")) for name in ("after", "before"))
        if not 0 <= before - after - 1 <= MOST_BETWEEN:
            raise RequestRefused(400, f"'after' and 'before': at most {MOST_BETWEEN} numbers are told between the two")
        leaves = await self._recording.leaves(camera_id, after=after, before=before)
        if leaves is None:
            raise NotFoundError(f"what stood between numbers {after} and {before} is not known any more")
        return success(leaves=leaves)

    async def _get(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        event_id = path_id(request)
        event = await self._events.get(event_id)
        if event is None:
            raise NotFoundError(f"there is no event {event_id}")
        async with in_time(), self._one:
            story = await self._story(event)
            path = self._folder / "proof_packages" / f"event-{event_id}.zip"
            stamp = self._clock.wall()
            made = (iso_utc(stamp.micros), caller.username, stamp.trusted)
            await asyncio.to_thread(self._write, path, _entry(event), story, made)
        answer = as_file(path, "application/zip")
        answer.headers["Content-Disposition"] = f'attachment; filename="{path.name}"'
        return answer

    def _write(self, path: Path, event: EventEntry, story: _Story, made: tuple[str, str, bool]) -> None:
        write_package(
            path,
            event=event,
            visit=story.visit,
            clips=story.clips,
            missing=story.missing,
            site=self._site,
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
            gaps=tuple(GapEntry(begin=iso_utc(g.begin), micros=g.end - g.begin, reason=g.why) for g in gaps),
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


def _number(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise RequestRefused(400, "'after' and 'before' are numbers of the chain")
    return int(text)


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
        trace=trace_of(event),
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
