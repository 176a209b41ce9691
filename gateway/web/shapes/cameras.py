"""Cameras: what is asked, written and told."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from gateway.web.http.bodies import Id, WriteBody
from gateway.web.shapes.answers import Answer, Listed
from gateway.web.shapes.devices import Line, Name, Number, Word, Yes

Status = Literal["online", "offline", "unknown"]


class CameraFields(WriteBody):
    """What can be written of a camera; any other field is passed over. null empties a text."""

    null_means: ClassVar[Mapping[str, JsonValue]] = MappingProxyType({"description": "", "location": ""})

    name: Name | None = None
    type: Number | Word | None = None
    description: Line | None = None
    location: Line | None = None
    enabled: Yes | None = None


class NewCamera(CameraFields):
    """A camera to be created at central."""

    name: Name


class ChangedCamera(CameraFields):
    """Which fields of a camera change."""

    id: Id


class CameraRecord(BaseModel):
    """A camera: central's own fields, and over them the site's.

    `stream` is where it is watched by WebRTC (WHEP), `hls_url` by HLS; both are "" for a camera of another site. Either
    address holds a token, so that players need no session.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    id: int
    name: str
    stream: str
    hls_url: str
    status: str
    at_site: bool
    sync: Literal["in_step", "waiting", "refused", "taken_back"] = "in_step"


class CameraAnswer(Answer):
    """One camera."""

    camera: CameraRecord


class CamerasAnswer(Listed):
    """Every camera."""

    cameras: tuple[CameraRecord, ...]


class CameraStatus(BaseModel):
    """What a camera does now."""

    model_config = ConfigDict(frozen=True)

    id: int
    name: str
    status: Status
    condition: str
    detail: str
    since: str
    last_segment_at: str | None
    bits_per_second: int
    reconnects: int


class CameraStatusAnswer(Answer):
    """What a camera does now."""

    status: CameraStatus
