"""Site file entries of devices with frames of their own on a serial line."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gateway.site.fields import HOLD_SECONDS, HoldSeconds, Name, RecordId, Section, Slug


class SerialGateDevice(Section):
    """A gate controller with frames of its own on a serial line, driven by a profile."""

    id: RecordId
    name: Name
    driver: Literal["serial-gate"]
    link: Slug
    profile: Slug
    unit: int = Field(default=1, ge=0, le=255, description="its address, for devices that have one")


class SerialTagReaderDevice(Section):
    """A reader of tags with frames of its own on a serial line, driven by a profile."""

    id: RecordId
    name: Name
    driver: Literal["serial-tag-reader"]
    link: Slug
    profile: Slug
    unit: int = Field(default=0, ge=0, le=255, description="its address, for devices that have one")
    hold_seconds: HoldSeconds = HOLD_SECONDS


SerialDevice = SerialGateDevice | SerialTagReaderDevice
