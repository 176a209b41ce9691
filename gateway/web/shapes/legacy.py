"""The legacy family: what is asked and what is told. Ids are text here."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from gateway.domain.announcements import AnnouncedType
from gateway.domain.durations import length_of
from gateway.web.http.bodies import Body, following

_PRINTED = r"^[^\x00-\x1f\x7f]*$"
_NOT_BLANK = r"^[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$"
_Printed = Annotated[
    str,
    Field(strict=True, json_schema_extra={"pattern": _PRINTED}),
    following(_PRINTED, "must be without control characters"),
]
Word = Annotated[
    _Printed,
    Field(min_length=1, max_length=128, json_schema_extra={"pattern": _NOT_BLANK}),
    following(_NOT_BLANK, "must not be blank"),
]
Line = Annotated[_Printed, Field(max_length=1000)]


class Told(BaseModel):
    """Base of answers. A failure is `{error}`, one sentence, with its status."""

    model_config = ConfigDict(frozen=True)


class Refused(Told):
    """Any failure."""

    error: str


class GrantBody(Body):
    """Let a user pass the lane of a device. `duration`: hours, `90 minutes`, `P1D`, or `permanent`; else 24 hours."""

    user_id: Word
    device_id: Word
    duration: Line = "24"

    @field_validator("user_id")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be blank")
        return value.strip()

    @field_validator("duration")
    @classmethod
    def _length(cls, value: str) -> str:
        length_of(value)
        return value

    @property
    def length(self) -> int | None:
        """Micros, None for permanent."""
        return length_of(self.duration)


class AccessIdBody(Body):
    """A grant by its code."""

    access_id: Word


class UnlockBody(Body):
    """Open a gate once: the gate itself, or any device of its lane."""

    device_id: Word


class GrantTold(Told):
    """A grant. `expires_at` is null for a permanent one; `grant` is what events call it."""

    status: Literal["active", "revoked"]
    access_id: str
    expires_at: str | None


class PermissionTold(GrantTold):
    """A grant that stands."""

    user_id: str
    device_id: str
    location: str
    granted_at: str
    granted_by: str
    grant: int


class PermissionsTold(Told):
    """Every grant that stands, the newest first."""

    permissions: tuple[PermissionTold, ...]
    total: int


class RevokedTold(Told):
    """The grant opens nothing from now on."""

    status: Literal["revoked"]
    access_id: str


class UnlockTold(Told):
    """The command is recorded; `recorded` false: it is carried out, and the disk does not take it now."""

    status: Literal["accepted"]
    command_id: str
    device_id: str
    recorded: bool
    requested_at: str
    expires_at: str


class DeviceBody(Body):
    """A device to register with central."""

    name: Word
    type: Word
    location: Line | None = None
    serial_number: Line | None = None


class DeviceTold(Told):
    """A device. Where central does not say, `created_at` is since when the site knows it, and `serial_number` null."""

    id: str
    name: str
    type: str
    location: str
    status: str
    created_at: str
    serial_number: str | None


class DevicesTold(Told):
    """Every device."""

    devices: tuple[DeviceTold, ...]
    total: int


class StreamQuery(BaseModel):
    """How a camera is to be watched."""

    protocol: Literal["webrtc", "hls"] = "webrtc"


class StreamTold(Told):
    """Where a camera is watched, by WHEP or HLS, with the token in the address.

    `resolution` is null before the first footage.
    """

    stream_url: str
    protocol: Literal["webrtc", "hls"]
    resolution: str | None
    token: str
    expires_at: str


class CameraTold(Told):
    """A camera. `status` is `online`, `offline` or `unknown`, as for devices."""

    id: str
    name: str
    status: str
    location: str
    detail: str


class CamerasTold(Told):
    """Every camera."""

    cameras: tuple[CameraTold, ...]
    total: int


class PageQuery(BaseModel):
    """Which part of a list; `total` tells of all. At most 500 at a time."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    page: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    page_limit: Annotated[int, Field(ge=1)] = 500

    @property
    def limit(self) -> int:
        """How many at most."""
        return min(self.page_limit, 500)

    @property
    def offset(self) -> int:
        """How many to pass over."""
        return (self.page - 1) * self.limit


class RecordingsQuery(PageQuery):
    """Which recordings: of a day or between two moments, in the site's time zone; of one camera."""

    date: Line = ""
    start_date: Line = ""
    end_date: Line = ""
    camera: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    camera_id: Annotated[int, Field(ge=0, lt=2**63)] | None = None


class RecordingTold(Told):
    """Recorded footage of an event. `clip_url` takes the same key, or a session of `/v1`."""

    id: str
    camera_id: str
    name: str
    description: str
    started_at: str
    ended_at: str
    ready: bool
    clip_url: str


class RecordingsTold(Told):
    """Recordings, the newest first."""

    recordings: tuple[RecordingTold, ...]
    total: int


class WebhookBody(Body):
    """A receiver to register. Without a secret one is drawn, and told once."""

    url: Annotated[str, Field(strict=True, min_length=1, max_length=2000)]
    events: Annotated[tuple[AnnouncedType, ...], Field(min_length=1, max_length=20, fail_fast=True)]
    secret: Annotated[_Printed, Field(min_length=8, max_length=256)] | None = None


class WebhookCreated(Told):
    """A new webhook, with the secret: it is told here and nowhere else."""

    id: str
    url: str
    events: tuple[str, ...]
    secret: str


class WebhookTold(WebhookCreated):
    """A webhook, its secret masked. `waiting`, `delivered`, `failed` and `dropped` count its messages."""

    status: Literal["enabled", "disabled"]
    reason: str
    last_error: str
    created_at: str
    created_by: str
    waiting: int
    delivered: int
    failed: int
    dropped: int


class WebhooksTold(Told):
    """Every webhook, the oldest first."""

    webhooks: tuple[WebhookTold, ...]
    total: int


class WebhookDeleted(Told):
    """The webhook is gone, with all that waited for it."""

    status: Literal["deleted"]
    id: str
