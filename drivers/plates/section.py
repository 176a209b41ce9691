"""The sections of plate cameras in the site file."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, ClassVar, Literal, Self, TypeVar

from pydantic import Field, field_validator, model_validator

from drivers.device import LineKind, ReaderDevice, Surroundings
from drivers.settings import DevicePassword, SecretName, Username

if TYPE_CHECKING:
    from drivers.plates.dialect import Dialect
    from drivers.plates.pushed import PushedPlates
    from drivers.plates.stream import PlateStream


class _PlateCamera(ReaderDevice):
    silence_seconds: float | None = Field(
        default=None, ge=1, le=86_400, description="without a sign of life for so long it counts as lost"
    )

    shares_as: ClassVar[str] = "http"
    reads_plates: ClassVar[bool] = True

    def _pulled(self, dialect: Dialect, username: str, password: str, parts: Surroundings) -> PlateStream:
        from drivers.http_session import DeviceAccount  # noqa: PLC0415  # only a site with plate cameras loads it
        from drivers.plates.stream import PlateStream  # noqa: PLC0415

        return PlateStream(
            device_id=self.id,
            url=parts.spec.url,
            dialect=dialect,
            account=DeviceAccount(username, parts.secret(password)),
            silence_seconds=self.silence_seconds,
            monotonic=parts.monotonic,
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

    def line_kinds(self) -> tuple[LineKind, ...]:
        """Return the kinds of lines to which the device can be connected."""
        return ("http-listen",)

    def _pushed(self, dialect: Dialect, parts: Surroundings) -> PushedPlates:
        from drivers.plates.pushed import PushedPlates  # noqa: PLC0415  # only a site with plate cameras loads it

        return PushedPlates(
            device_id=self.id,
            dialect=dialect,
            source=self.source or "",
            token=parts.secret(self.token) if self.token else "",
            silence_seconds=self.silence_seconds,
            monotonic=parts.monotonic,
        )


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

    def line_kinds(self) -> tuple[LineKind, ...]:
        """Return the kinds of lines to which the device can be connected."""
        return ("http-listen",) if self.username is None else ("http",)

    def build(self, parts: Surroundings) -> PlateStream | PushedPlates:
        """Build the driver."""
        from drivers.plates.hikvision import HIKVISION  # noqa: PLC0415

        if self.username is None or self.password is None:
            return self._pushed(HIKVISION, parts)
        return self._pulled(HIKVISION, self.username, self.password, parts)


class DahuaPlatesDevice(_PlateCamera):
    """A Dahua plate camera, whose snapshot stream is pulled."""

    driver: Literal["dahua-plates"]
    username: Username
    password: DevicePassword

    def line_kinds(self) -> tuple[LineKind, ...]:
        """Return the kinds of lines to which the device can be connected."""
        return ("http",)

    def build(self, parts: Surroundings) -> PlateStream:
        """Build the driver."""
        from drivers.plates.dahua import DAHUA  # noqa: PLC0415

        return self._pulled(DAHUA, self.username, self.password, parts)


class AxisPlatesDevice(_PushingCamera):
    """An Axis camera whose License Plate Verifier pushes."""

    driver: Literal["axis-plates"]

    @model_validator(mode="after")
    def _known_source(self) -> Self:
        return _admitted(self)

    def build(self, parts: Surroundings) -> PushedPlates:
        """Build the driver."""
        from drivers.plates.axis import AXIS  # noqa: PLC0415

        return self._pushed(AXIS, parts)


class PlateRecognizerDevice(_PushingCamera):
    """A camera of Plate Recognizer Stream, which pushes its webhook."""

    driver: Literal["plate-recognizer"]
    camera: str = Field(default="", max_length=120, description="its camera_id, when several push to one address")

    @model_validator(mode="after")
    def _known_source(self) -> Self:
        return _admitted(self)

    def build(self, parts: Surroundings) -> PushedPlates:
        """Build the driver."""
        from drivers.plates.plate_recognizer import plate_recognizer  # noqa: PLC0415

        return self._pushed(plate_recognizer(camera=self.camera), parts)


Pushing = TypeVar("Pushing", bound=_PushingCamera)


def _admitted(camera: Pushing) -> Pushing:
    if camera.source is None and camera.token is None:
        raise ValueError("needs 'source' or 'token': otherwise anyone could push a plate")
    return camera
