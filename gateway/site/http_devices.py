"""Devices that speak HTTP, as the site file describes them: a Hikvision barrier and plate cameras."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal, Self, TypeVar

from pydantic import Field, field_validator, model_validator

from gateway.domain.validation_messages import following
from gateway.site.fields import DevicePassword, Name, RecordId, SecretName, Section, Slug

Username = Annotated[Name, following(r"[^:]+", "must be without ':'")]
"""A colon cannot be sent in a user name (RFC 7616)."""


class HikvisionBarrierDevice(Section):
    """A Hikvision barrier, commanded over HTTP. It has no points."""

    id: RecordId
    name: Name
    driver: Literal["hikvision-barrier"]
    link: Slug
    username: Username
    password: DevicePassword
    channel: int = Field(default=1, ge=1, le=64)


class _PlateCamera(Section):
    id: RecordId
    name: Name
    link: Slug
    silence_seconds: float | None = Field(
        default=None, ge=1, le=86_400, description="without a sign of life for so long it counts as lost"
    )


class _PushingCamera(_PlateCamera):
    """A camera that pushes to `/plates/<id>` of its link, identified by its address, a token, or both."""

    source: str | None = Field(default=None, description="the IP address that it pushes from")
    token: SecretName | None = None

    @field_validator("source")
    @classmethod
    def _ip_address(cls, value: str | None) -> str | None:
        try:
            return None if value is None else str(ipaddress.ip_address(value))
        except ValueError as error:
            raise ValueError("must be an IP address") from error

    @property
    def is_pushing(self) -> bool:
        """True if the camera connects to the gateway."""
        return True


class HikvisionPlatesDevice(_PushingCamera):
    """A Hikvision plate camera: its alert stream when it has an account, else its pushes."""

    driver: Literal["hikvision-plates"]
    username: Username | None = None
    password: DevicePassword | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.username is None) != (self.password is None):
            raise ValueError("'username' and 'password' go together")
        if (self.username is None) == (self.source is None and self.token is None):
            raise ValueError("needs either 'username' and 'password', or 'source' or 'token' when it pushes")
        return self

    @property
    def is_pushing(self) -> bool:
        """True if the camera connects to the gateway."""
        return self.username is None


class DahuaPlatesDevice(_PlateCamera):
    """A Dahua plate camera, whose snapshot stream is pulled."""

    driver: Literal["dahua-plates"]
    username: Username
    password: DevicePassword

    @property
    def is_pushing(self) -> bool:
        """True if the camera connects to the gateway."""
        return False


class AxisPlatesDevice(_PushingCamera):
    """An Axis camera whose License Plate Verifier pushes."""

    driver: Literal["axis-plates"]

    @model_validator(mode="after")
    def _known_source(self) -> Self:
        return _admitted(self)


class PlateRecognizerDevice(_PushingCamera):
    """A camera of Plate Recognizer Stream, which pushes its webhook."""

    driver: Literal["plate-recognizer"]
    camera: str = Field(default="", max_length=120, description="its camera_id, when several push to one address")

    @model_validator(mode="after")
    def _known_source(self) -> Self:
        return _admitted(self)


Pushing = TypeVar("Pushing", bound=_PushingCamera)


def _admitted(camera: Pushing) -> Pushing:
    if camera.source is None and camera.token is None:
        raise ValueError("needs 'source' or 'token': otherwise anyone could push a plate")
    return camera


PlateCamera = HikvisionPlatesDevice | DahuaPlatesDevice | AxisPlatesDevice | PlateRecognizerDevice
