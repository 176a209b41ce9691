"""Cameras: what is asked, written and told."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from gateway.web.bodies import Body, Id
from gateway.web.shapes.answers import Answer, Listed

Status = Literal["online", "offline", "unknown"]
_Name = Annotated[str, Field(strict=True, min_length=1, max_length=120)]
_Line = Annotated[str, Field(strict=True, max_length=1000)]


class NewCamera(Body):
    """A camera to be created at central; any field beside these is central's."""

    name: _Name
    description: _Line | None = None
    location: _Line | None = None


class ChangedCamera(Body):
    """A camera whose fields change; any field beside these is central's."""

    id: Id
    name: _Name | None = None
    description: _Line | None = None
    location: _Line | None = None


class CameraRecord(BaseModel):
    """A camera: central's own fields, and over them the site's. `stream` is where it is watched, "" for nowhere."""

    model_config = ConfigDict(frozen=True, extra="allow")

    id: int
    name: str
    stream: str
    status: str
    at_site: bool
    sync: Literal["in_step", "waiting", "refused"] = "in_step"


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
