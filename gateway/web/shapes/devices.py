"""Devices: what is asked and what is told."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from gateway.web.http import bodies
from gateway.web.http.bodies import Id, Plain, WriteBody
from gateway.web.shapes.answers import Answer, CursorListed

Name = Annotated[bodies.Name, Field(max_length=120)]
Line = Annotated[Plain, Field(max_length=1000)]
Word = Annotated[Plain, Field(max_length=120)]
Number = Annotated[int, Field(strict=True, ge=-(2**63), le=2**63 - 1)]
Yes = Annotated[bool, Field(strict=True)]


class DeviceFields(WriteBody):
    """What can be written of a device; any other field is passed over. null empties a text."""

    null_means: ClassVar[Mapping[str, JsonValue]] = MappingProxyType(
        {"location": "", "description": "", "serial_number": ""}
    )

    name: Name | None = None
    type: Number | Word | None = None
    location: Line | None = None
    description: Line | None = None
    serial_number: Word | None = None
    enabled: Yes | None = None


class NewDeviceBody(DeviceFields):
    """A device to be created."""

    name: Name


class DeviceConfigBody(DeviceFields):
    """Which fields of a device change."""

    id: Id


class DeviceRecord(BaseModel):
    """A device: central's record, with what the site knows over it.

    `sync` says whether central has what the site has; `refused` comes with central's words in `sync_error`.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    id: int | None
    name: str
    type: str | int = ""
    at_site: bool = False
    location: str = ""
    status: str = ""
    position: str | None = None
    sync: Literal["in_step", "waiting", "refused"] = "in_step"


class CommandRecord(BaseModel):
    """A command to a gate, as it stands when it is answered."""

    model_config = ConfigDict(frozen=True)

    id: str
    action: str
    state: str
    recorded: bool
    requested_at: str
    deadline_at: str


class DeviceAnswer(Answer):
    """One device."""

    device: DeviceRecord


class CommandedDevice(BaseModel):
    """The device that was commanded; its id alone when the disk does not answer."""

    model_config = ConfigDict(frozen=True, extra="allow")

    id: int


class CommandAnswer(Answer):
    """The command was recorded. That does not prove that the gate moved."""

    device: CommandedDevice
    command: CommandRecord


class DevicesAnswer(CursorListed):
    """Devices, newest first."""

    devices: tuple[DeviceRecord, ...]
