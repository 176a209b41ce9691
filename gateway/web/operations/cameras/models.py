"""Operations on cameras, and watching them live: rules and models."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from gateway.web.answers import Answer, Listed, Status
from gateway.web.http.bodies import Id, Line, Number, ShortName, Word, WriteBody, Yes


class CameraFields(WriteBody):
    """The fields of a camera that can be written; others are ignored. null empties a text."""

    null_means: ClassVar[Mapping[str, JsonValue]] = MappingProxyType({"description": "", "location": ""})

    name: ShortName | None = None
    type: Number | Word | None = None
    description: Line | None = None
    location: Line | None = None
    enabled: Yes | None = None


class NewCamera(CameraFields):
    """A camera to be created at central."""

    name: ShortName


class ChangedCamera(CameraFields):
    """Changed fields of a camera."""

    id: Id


class CameraRecord(BaseModel):
    """A camera: central's own fields, overlaid by the site's.

    `stream` is its address for WebRTC (WHEP), `hls_url` for HLS; both are "" for a camera of another site. Both
    addresses hold a token, so that players need no session.
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
    """The present state of a camera."""

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
    """The present state of a camera."""

    status: CameraStatus


class LiveQuery(BaseModel):
    """The delivery directives of HLS (RFC 8216bis, 6.2.5): wait until `index.m3u8` has this segment, or part of it."""

    model_config = ConfigDict(frozen=True)

    number: Annotated[int, Field(ge=0, lt=2**63)] | None = Field(default=None, alias="_HLS_msn")
    part: Annotated[int, Field(ge=0, lt=2**31)] | None = Field(default=None, alias="_HLS_part")
