"""Operations on camera events and their footage: rules and models."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from gateway.web.http.bodies import Body, ById, Cursored, Id, Name, Text, WriteBody
from gateway.web.operation import Operation, ViewKind, needs
from gateway.web.operations.answers import Answer, CursorListed
from gateway.web.operations.evidence import (
    EvidenceRecord,
)

_Ids = Annotated[tuple[Id, ...], Field(max_length=1000, fail_fast=True)]
_Name = Annotated[Name, Field(max_length=200)]


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
    sync: Literal["in_step", "waiting", "refused", "site_only", "taken_back"] = "in_step"
    sync_error: str = ""


class CameraEventAnswer(Answer):
    """One camera event."""

    event: CameraEventRecord


class CameraEventsAnswer(CursorListed):
    """Camera events, newest first."""

    events: tuple[CameraEventRecord, ...]


CAMERA_EVENT_LIST = Operation(
    "POST",
    "/v1/camera/event/list",
    needs("can_view_camera_events"),
    "events",
    purpose="List camera events, newest first",
    body=CameraEventListBody,
    answer=CameraEventsAnswer,
    reads=True,
)
CAMERA_EVENT = Operation(
    "POST",
    "/v1/camera/event",
    needs("can_view_camera_events"),
    "event",
    purpose="One camera event by the site's id or central's",
    body=ById,
    answer=CameraEventAnswer,
    reads=True,
)
CAMERA_EVENT_PUT = Operation(
    "PUT",
    "/v1/camera/event",
    needs("can_add_camera_events"),
    "event",
    purpose="Mark a moment of a camera, so that its footage is kept",
    body=NewCameraEvent,
    answer=CameraEventAnswer,
)
CAMERA_EVENT_PATCH = Operation(
    "PATCH",
    "/v1/camera/event",
    needs("can_edit_camera_events"),
    "event",
    purpose="Change what a camera event says",
    body=ChangedCameraEvent,
    answer=CameraEventAnswer,
)
CAMERA_EVENT_DELETE = Operation(
    "DELETE",
    "/v1/camera/event",
    needs("can_delete_camera_events"),
    "event",
    purpose="Delete a camera event; its footage is held no longer",
    body=ById,
    answer=CameraEventAnswer,
)
CAMERA_EVENT_THUMBNAIL = Operation(
    "GET",
    "/v1/camera/event/thumbnail/{id}",
    needs("can_view_camera_events"),
    "thumbnail",
    head=True,
    purpose="A picture of the moment",
    answer_type="image/jpeg",
)
CAMERA_EVENT_CLIP = Operation(
    "GET",
    "/v1/camera/event/clip/{id}",
    needs("can_view_camera_events"),
    "clip",
    head=True,
    purpose="The recorded clip",
    answer_type="video/mp4",
    refuses=(403,),
    view=ViewKind.RECORDED,
)
CAMERA_EVENT_VOD = Operation(
    "GET",
    "/v1/camera/event/vod/{id}/{file}",
    needs("can_view_camera_events"),
    "vod",
    head=True,
    purpose="The recorded footage as HLS: master.m3u8 and what it names",
    answer_type="application/vnd.apple.mpegurl",
    other_types=("video/MP2T",),
    refuses=(403,),
    view=ViewKind.RECORDED,
)
