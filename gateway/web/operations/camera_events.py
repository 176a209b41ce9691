"""Camera events and their footage: rules, models and handlers, and the record that answers contain."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Final, Literal, NamedTuple

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from gateway.domain.errors import CentralRefused, NotFoundError
from gateway.domain.events import Event, EventKind, Scalar
from gateway.domain.evidence import Evidence
from gateway.domain.footage import Missing, extent_of
from gateway.domain.passages import CameraEvent, Moment
from gateway.domain.writes import CAMERA_EVENT_DELETE as WRITE_DELETE
from gateway.domain.writes import CAMERA_EVENT_UPDATE as WRITE_UPDATE
from gateway.domain.writes import JsonObject, WaitingWrite
from gateway.runtime.clock import iso_utc
from gateway.store import LONGEST_PIN, CameraEventFilter, Entry
from gateway.texts import Words, text
from gateway.web.answers import Answer, CursorListed
from gateway.web.auth.callers import Caller
from gateway.web.auth.view_tokens import TokenView
from gateway.web.context import InterfaceContext
from gateway.web.families import Family, operation
from gateway.web.http.bodies import Body, ById, Cursored, Id, Name, SentChange, Text, WriteBody
from gateway.web.http.dates import asked_period
from gateway.web.http.errors import RequestRefused, success_listed
from gateway.web.http.files import JPEG, MP4, as_file, as_playlist, as_segment, in_time
from gateway.web.operation import VIEW_FOOTAGE, ViewKind, needs
from gateway.web.operations.evidence import EvidenceRecord, evidence_record
from gateway.web.operations.records import Standing, standings, sync_state

_KIND: Final = "camera_event"
_SEGMENT_FILE = re.compile(r"([0-9]{1,18})\.ts")
_SECOND = 1_000_000
_SLACK = 60 * _SECOND  # a client's clock may be a little ahead
_NOT_FOUND = 404

_Ids = Annotated[tuple[Id, ...], Field(max_length=1000, fail_fast=True)]
_Name = Annotated[Name, Field(max_length=200)]


class _Span(NamedTuple):
    """A moment, and the begin and end of its footage, in wall micros UTC."""

    moment: int
    begin: int
    end: int


class CameraEventListBody(Cursored):
    """A filter of camera events. `camera_id` and `camera_ids` are one filter, and so are `event_id` and `event_ids`.

    Cursors are this gateway's own: the interface reads this list by pages.
    """

    camera_id: Id | None = None
    camera_ids: _Ids = ()
    event_id: Id | None = None
    event_ids: _Ids = ()
    start_date: Text = ""
    end_date: Text = ""
    incident: Annotated[bool, Field(strict=True)] | None = None


class NewCameraEvent(Body):
    """A moment that somebody marks; now, if `date_at` is left out. Its footage from `start_date` to `end_date` is kept.

    Without these two, the same time before and after the moment is kept as for any event of the site.
    """

    camera_id: Id
    name: _Name = "Moment marked"
    description: Text = ""
    date_at: Text = ""
    start_date: Text = ""
    end_date: Text = ""
    incident: Annotated[bool, Field(strict=True)] = False


class ChangedCameraEvent(WriteBody):
    """Changed fields of a camera event. With `incident`, its footage is kept as long as that of incidents."""

    id: Id
    name: _Name | None = None
    description: Text | None = None
    incident: Annotated[bool, Field(strict=True)] | None = None


class FootageGap(BaseModel):
    """A span of a camera event's time for which there is no footage, with the `reason` in words."""

    model_config = ConfigDict(frozen=True)

    start_date: str
    end_date: str
    seconds: float
    reason: str


class CameraEventRecord(BaseModel):
    """A camera event, with the paths of its media. `ready`: no more footage will come.

    `footage` says how complete the footage is, and `gaps` what is missing; with "none" the paths are "". `clip_url` and
    `vod_url` are absolute addresses with a token, so that players need no session.
    """

    model_config = ConfigDict(frozen=True)

    id: int
    central_id: int | None
    camera_id: int
    event_id: int
    lane_id: str
    name: str
    description: str
    date_at: str
    start_date: str
    end_date: str
    clock_trusted: bool
    ready: bool
    incident: bool
    clip: str
    clip_url: str
    thumbnail: str
    vod: str
    vod_url: str
    footage: Literal["coming", "whole", "part", "none"] = "coming"
    gaps: tuple[FootageGap, ...] = ()
    evidence: tuple[EvidenceRecord, ...] = ()
    sync: Literal["in_step", "waiting", "refused", "site_only", "in_doubt", "taken_back"] = "in_step"
    sync_error: str = ""


class CameraEventAnswer(Answer):
    """One camera event."""

    event: CameraEventRecord


class CameraEventsAnswer(CursorListed):
    """Camera events, newest first."""

    events: tuple[CameraEventRecord, ...]


class CameraEventsFamily(Family):
    """The handlers of `/v1/camera/event`. An id in a request may be the site's or central's."""

    def __init__(self, context: InterfaceContext) -> None:
        super().__init__(context)
        self._before = round(context.site.events.clip_before_seconds * _SECOND)
        self._after = round(context.site.events.clip_after_seconds * _SECOND)

    @operation(
        "POST",
        "/v1/camera/event/list",
        VIEW_FOOTAGE,
        "events",
        purpose="List camera events, newest first",
        answer=CameraEventsAnswer,
        reads=True,
    )
    async def _list(self, wanted: CameraEventListBody, request: web.Request, caller: Caller) -> web.StreamResponse:
        page = await self.context.store.camera_events.page(
            self._filter(wanted), before=wanted.cursor_id, offset=wanted.offset, limit=wanted.limit
        )
        known = page.events
        ids = [item.id for item in known]
        evidence = await self.context.store.evidence.of(ids)
        waiting = (await self.context.store.pending_writes.arriving(_KIND, ids)).waiting
        standing = await self._standings(known, waiting)
        missing = await self.context.recording.missing(item for item in known if item.ready)
        events = (
            camera_event_record(
                item,
                evidence=evidence,
                waiting=waiting.get(item.id, ()),
                missing=missing.get(item.id),
                standing=standing.get(item.id, "in_step"),
                address=self._address(request, caller, item),
            )
            for item in known
        )
        cursor = {"next_cursor": known[-1].id} if known else {}
        return await success_listed(request, "events", events, count=page.count, **cursor)

    @operation(
        "POST",
        "/v1/camera/event",
        VIEW_FOOTAGE,
        "event",
        purpose="One camera event by the site's id or central's",
        reads=True,
    )
    async def _get(self, wanted: ById, request: web.Request, caller: Caller) -> CameraEventAnswer:
        return CameraEventAnswer(event=await self._shown(await self._known(wanted.id), request, caller))

    @operation(
        "PUT",
        "/v1/camera/event",
        needs("can_add_camera_events"),
        "event",
        purpose="Mark a moment of a camera, so that its footage is kept",
    )
    async def _create(self, wanted: NewCameraEvent, request: web.Request, caller: Caller) -> CameraEventAnswer:
        names = {camera.camera_id: camera.name for camera in self.context.recording.cameras()}
        name = names.get(wanted.camera_id)
        if name is None:
            raise NotFoundError(f"this site records no camera {wanted.camera_id}")
        now = self.context.clock.wall()
        at = self._span(wanted, now.micros)
        await self.context.writes.admit()
        stated = bool(wanted.date_at.strip())
        event = Event(
            kind=EventKind.INCIDENT_MARKED if wanted.incident else EventKind.MOMENT_MARKED,
            date_at=at.moment,
            clock_trusted=self.context.moments.may_have_been(at.moment) if stated else now.trusted,
            text=text("event.moment_marked", who=caller.username, camera=name, name=wanted.name),
            device_id=wanted.camera_id,
            data={"username": caller.username, "camera_id": wanted.camera_id},
        )
        moment = Moment(
            camera_id=wanted.camera_id,
            name=wanted.name,
            description=wanted.description,
            pinned_from=at.begin,
            pinned_until=at.end,
            clock_trusted=event.clock_trusted,
        )
        recorded = await self.context.store.journal.record(Entry(events=(event,), moments=(moment,)))
        return CameraEventAnswer(
            event=await self._shown(await self._known(recorded.camera_event_ids[0]), request, caller)
        )

    @operation(
        "PATCH",
        "/v1/camera/event",
        needs("can_edit_camera_events"),
        "event",
        purpose="Change what a camera event says",
    )
    async def _change(
        self, change: SentChange[ChangedCameraEvent], request: web.Request, caller: Caller
    ) -> CameraEventAnswer:
        known = await self._known(change.id)
        shown = (await self._shown(known, request, caller)).model_dump(mode="json")
        sent = change.to(shown).fields
        said: JsonObject = {name: value for name, value in sent.items() if not change.leaves(name, shown)}
        if said:
            await self.context.writes.write(WRITE_UPDATE, {"id": known.id, **said})
            changed = text(
                "event.camera_event_changed", who=caller.username, event=str(known.id), fields=", ".join(said)
            )
            before = {f"{name}_before": getattr(known, name) for name in said}
            await self._tell(EventKind.CAMERA_EVENT_CHANGED, known, caller, changed, before)
        return CameraEventAnswer(event=await self._shown(await self._known(known.id), request, caller))

    @operation(
        "DELETE",
        "/v1/camera/event",
        needs("can_delete_camera_events"),
        "event",
        purpose="Delete a camera event; its footage is held no longer",
    )
    async def _delete(self, wanted: ById, request: web.Request, caller: Caller) -> CameraEventAnswer:
        """Delete a camera event. The event and the passage that it belongs to stay."""
        known = await self._known(wanted.id)
        shown = await self._shown(known, request, caller)
        try:
            sync = (await self.context.writes.write(WRITE_DELETE, {"id": known.id})).sync_of_deleted
        except CentralRefused as error:
            if error.status != _NOT_FOUND:
                raise
            now = self.context.clock.wall().micros  # central no longer has it, so delete it only here
            await self.context.store.pending_writes.hold(WRITE_DELETE, known.id, {}, now=now, sends=False)
            sync = "in_step"
        deleted = text(
            "event.camera_event_deleted",
            who=caller.username,
            camera_event=str(known.id),
            event=str(known.event_id),
            name=known.name,
        )
        files = ", ".join(item.sha256 for item in shown.evidence)
        facts: dict[str, Scalar] = {"name": known.name, "proved_event_id": known.event_id, "evidence_sha256": files}
        await self._tell(EventKind.CAMERA_EVENT_DELETED, known, caller, deleted, facts)
        await self.context.recording.forget(known.id)
        return CameraEventAnswer(event=shown.model_copy(update={"sync": sync, "sync_error": ""}))

    @operation(
        "GET",
        "/v1/camera/event/thumbnail/{id}",
        VIEW_FOOTAGE,
        "thumbnail",
        head=True,
        purpose="A picture of the moment",
        answer_type="image/jpeg",
    )
    async def _thumbnail(self, camera_event_id: int) -> web.StreamResponse:
        known = await self._known(camera_event_id)
        async with in_time():
            return as_file(await self.context.recording.event_thumbnail(known), JPEG)

    @operation(
        "GET",
        "/v1/camera/event/clip/{id}",
        VIEW_FOOTAGE,
        "clip",
        head=True,
        purpose="The recorded clip",
        answer_type="video/mp4",
        refuses=(403,),
        view=ViewKind.RECORDED,
    )
    async def _clip(self, camera_event_id: int) -> web.StreamResponse:
        known = await self._known(camera_event_id)
        async with in_time():
            return as_file(await self.context.recording.clip(known), MP4)

    @operation(
        "GET",
        "/v1/camera/event/vod/{id}/{file}",
        VIEW_FOOTAGE,
        "vod",
        head=True,
        purpose="The recorded footage as HLS: master.m3u8 and what it names",
        answer_type="application/vnd.apple.mpegurl",
        other_types=("video/MP2T",),
        refuses=(403,),
        view=ViewKind.RECORDED,
    )
    async def _vod(self, camera_event_id: int, file: str, request: web.Request) -> web.StreamResponse:
        known = await self._known(camera_event_id)
        async with in_time():
            if file == "master.m3u8":
                return await as_playlist(request, await self.context.recording.vod_master(known))
            if file == "index.m3u8":
                text = await self.context.recording.vod_media(known)
                return await as_playlist(request, text, lasting="#EXT-X-ENDLIST" in text)
            if segment := _SEGMENT_FILE.fullmatch(file):
                return await as_segment(await self.context.recording.vod_segment(known, int(segment[1])))
        raise NotFoundError(f"camera event {known.id} has no such file")

    async def _shown(self, known: CameraEvent, request: web.Request, caller: Caller) -> CameraEventRecord:
        evidence = await self.context.store.evidence.of((known.id,))
        missing = await self.context.recording.missing((known,) if known.ready else ())
        waiting = await self.context.store.pending_writes.waiting(_KIND, known.id)
        standing = await self._standings((known,), {known.id: waiting})
        return camera_event_record(
            known,
            evidence=evidence,
            waiting=waiting,
            missing=missing.get(known.id),
            standing=standing.get(known.id, "in_step"),
            address=self._address(request, caller, known),
        )

    def _address(self, request: web.Request, caller: Caller, known: CameraEvent) -> Callable[[str], str]:
        """Return a function that makes an address with a token from a path of this camera event's footage."""
        view = TokenView(ViewKind.RECORDED, known.id)
        return lambda path: self.context.auth.viewers.address(request, path, view, caller)

    async def _standings(
        self, known: Iterable[CameraEvent], waiting: Mapping[int, Sequence[WaitingWrite]]
    ) -> Mapping[int, Standing]:
        records = () if self.context.writes.alone else ((item.id, item.central_id) for item in known)
        return await standings(self.context.store.pending_writes, _KIND, records, waiting)

    async def _tell(
        self, kind: EventKind, known: CameraEvent, caller: Caller, said: Words, facts: Mapping[str, Scalar]
    ) -> None:
        now = self.context.clock.wall()
        event = Event(
            kind=kind,
            date_at=now.micros,
            clock_trusted=now.trusted,
            text=said,
            device_id=known.camera_id,
            lane_id=known.lane_id,
            data={"camera_event_id": known.id, "username": caller.username, **facts},
        )
        await self.context.store.journal.record(Entry(events=(event,)))

    def _filter(self, wanted: CameraEventListBody) -> CameraEventFilter:
        start, end = asked_period(wanted.start_date, wanted.end_date, self.context.zone)
        return CameraEventFilter(
            camera_ids=wanted.camera_ids + (() if wanted.camera_id is None else (wanted.camera_id,)),
            event_ids=wanted.event_ids + (() if wanted.event_id is None else (wanted.event_id,)),
            search=wanted.search.strip(),
            date_from=start,
            date_until=end,
            incident=wanted.incident,
        )

    def _span(self, wanted: NewCameraEvent, now: int) -> _Span:
        """Return the moment and the span of its footage. Raises RequestRefused for a span that is not allowed."""
        at = self.context.moments.read("date_at", wanted.date_at) if wanted.date_at.strip() else now
        begin, end = asked_period(wanted.start_date, wanted.end_date, self.context.zone)
        span = _Span(
            at, max(0, at - self._before) if begin is None else begin, at + self._after if end is None else end
        )
        if not 0 <= at <= now + _SLACK:
            raise RequestRefused(400, "date_at: must be a moment that has been")
        if not 0 <= span.begin <= at:
            raise RequestRefused(400, "start_date: must not be after date_at")
        if span.end < at:
            raise RequestRefused(400, "end_date: must not be before date_at")
        if span.end - span.begin > LONGEST_PIN:
            raise RequestRefused(400, "end_date: must be within an hour of start_date")
        return span

    async def _known(self, camera_event_id: int) -> CameraEvent:
        known = await self.context.store.camera_events.get(camera_event_id)
        if known is None:
            raise NotFoundError(f"there is no camera event {camera_event_id}")
        return known


def camera_event_record(
    event: CameraEvent,
    *,
    evidence: Iterable[Evidence] = (),
    waiting: Sequence[WaitingWrite] = (),
    missing: Sequence[Missing] | None = None,
    standing: Standing = "in_step",
    address: Callable[[str], str],
) -> CameraEventRecord:
    """Return a camera event as a record of the interface.

    Args:
        event: the camera event.
        evidence: evidence; that of other camera events is left out.
        waiting: its writes that wait for central.
        missing: the gaps in its footage; None while footage may still come.
        standing: its state at central if nothing of it waits.
        address: makes an address with a token from a path of its footage.
    """
    media = "/v1/camera/event"
    extent = "coming" if missing is None else extent_of(missing, event.pinned_from, event.pinned_until)
    there = extent != "none"
    clip, vod = f"{media}/clip/{event.id}", f"{media}/vod/{event.id}/master.m3u8"
    sync = sync_state(waiting, standing)
    return CameraEventRecord.model_validate(
        {
            "id": event.id,
            "central_id": event.central_id,
            "camera_id": event.camera_id,
            "event_id": event.event_id,
            "lane_id": event.lane_id,
            "name": event.name,
            "description": event.description,
            "date_at": iso_utc(event.date_at),
            "start_date": iso_utc(event.pinned_from),
            "end_date": iso_utc(event.pinned_until),
            "clock_trusted": event.clock_trusted,
            "ready": event.ready,
            "incident": event.incident,
            "clip": clip if there else "",
            "clip_url": address(clip) if there else "",
            "thumbnail": f"{media}/thumbnail/{event.id}" if there else "",
            "vod": vod if there else "",
            "vod_url": address(vod) if there else "",
            "footage": extent,
            "gaps": tuple(
                {
                    "start_date": iso_utc(gap.begin),
                    "end_date": iso_utc(gap.end),
                    "seconds": round((gap.end - gap.begin) / 1e6, 1),
                    "reason": str(gap.why),
                }
                for gap in missing or ()
            ),
            "evidence": tuple(evidence_record(item) for item in evidence if item.camera_event_id == event.id),
            **sync,
        }
    )
