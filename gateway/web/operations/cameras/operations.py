"""Operations on cameras, and watching them live: rules and models."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from gateway.web.http.bodies import Body, ById, Id, Line, Number, ShortName, Word, WriteBody, Yes
from gateway.web.operation import OPEN, UNCONFIRMED, Operation, ViewKind, needs
from gateway.web.operations.answers import Answer, Listed, Status


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


CAMERA_LIST = Operation(
    "POST",
    "/v1/camera/list",
    needs("can_view_cameras"),
    "cameras",
    purpose="List cameras",
    body=Body,
    answer=CamerasAnswer,
    reads=True,
)
CAMERA = Operation(
    "POST",
    "/v1/camera",
    needs("can_view_cameras"),
    "camera",
    purpose="One camera by its id",
    body=ById,
    answer=CameraAnswer,
    reads=True,
)
CAMERA_PUT = Operation(
    "PUT",
    "/v1/camera",
    needs("can_add_cameras"),
    "camera",
    purpose="Create a camera of central's",
    body=NewCamera,
    answer=CameraAnswer,
)
CAMERA_PATCH = Operation(
    "PATCH",
    "/v1/camera",
    needs("can_edit_cameras"),
    "camera",
    purpose="Update a camera",
    body=ChangedCamera,
    answer=CameraAnswer,
)
CAMERA_DELETE = Operation(
    "DELETE",
    "/v1/camera",
    needs("can_delete_cameras"),
    "camera",
    purpose="Delete a camera of central's",
    body=ById,
    answer=CameraAnswer,
)
# The specification does not confirm this permission; a camera's state needs the same one as the camera itself.
CAMERA_STATUS = Operation(
    "GET",
    "/v1/camera/status/{id}",
    UNCONFIRMED & needs("can_view_cameras"),
    "status",
    purpose="What a camera of the site does now",
    answer=CameraStatusAnswer,
)
CAMERA_THUMBNAIL = Operation(
    "GET",
    "/v1/camera/thumbnail/{id}",
    needs("can_view_cameras"),
    "thumbnail",
    head=True,
    purpose="A camera's newest picture",
    answer_type="image/jpeg",
)

CAMERA_LIVE = Operation(
    "GET",
    "/v1/camera/live/{id}/{file}",
    needs("can_view_cameras"),
    "live",
    head=True,
    purpose="What is recorded now as HLS: master.m3u8 and what it names",
    query=LiveQuery,
    answer_type="application/vnd.apple.mpegurl",
    other_types=("video/MP2T",),
    refuses=(403,),
    view=ViewKind.LIVE,
)
CAMERA_VIEW_RULE = needs("can_view_cameras")
# The WHEP operations are open here: to open a view, `Whep` checks for a session with that rule or a camera's token. The
# address of an open view is its own secret.
CAMERA_WHEP = Operation(
    "POST",
    "/v1/camera/whep/{id}",
    OPEN,
    purpose="Watch a camera live by WebRTC (WHEP)",
    body_type="application/sdp",
    answer_type="application/sdp",
    status=201,
    refuses=(401, 406, 429),
)
CAMERA_WHEP_OPTIONS = Operation("OPTIONS", "/v1/camera/whep/{id}", OPEN)
CAMERA_WHEP_MORE = Operation(
    "PATCH",
    "/v1/camera/whep/{id}/{view}",
    OPEN,
    purpose="Further candidates of a viewer",
    body_type="application/trickle-ice-sdpfrag",
    status=204,
    refuses=(412, 422, 428),
)
CAMERA_WHEP_END = Operation("DELETE", "/v1/camera/whep/{id}/{view}", OPEN, purpose="End watching")
CAMERA_WHEP_SESSION_OPTIONS = Operation("OPTIONS", "/v1/camera/whep/{id}/{view}", OPEN)
