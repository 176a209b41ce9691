"""Operations on camera events and their footage: rules and models."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from gateway.web.answers import Answer, CursorListed
from gateway.web.http.bodies import Body, Cursored, Id, Name, Text, WriteBody
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
    sync: Literal["in_step", "waiting", "refused", "site_only", "in_doubt", "taken_back"] = "in_step"
    sync_error: str = ""


class CameraEventAnswer(Answer):
    """One camera event."""

    event: CameraEventRecord


class CameraEventsAnswer(CursorListed):
    """Camera events, newest first."""

    events: tuple[CameraEventRecord, ...]
