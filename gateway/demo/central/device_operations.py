"""Devices written at the simulated central."""

from __future__ import annotations

from pydantic import Field

from gateway.demo.central.answers import Call, JsonObject, Refusal, success
from gateway.demo.central.bodies import Asked
from gateway.demo.central.tables import Tables
from gateway.runtime.clock import iso_utc


class NewDevice(Asked):
    """PUT /v1/device."""

    name: str = Field(min_length=1, max_length=120)
    type: int | str = 3
    description: str = ""
    serial_number: str = ""
    location: str = ""
    enabled: bool = True


class ChangedDevice(NewDevice):
    """PATCH /v1/device/config: only the fields that are sent change."""

    id: int
    name: str = Field(default="", max_length=120)


def add_device(tables: Tables, call: Call) -> JsonObject:
    """Keep a new device."""
    new = call.body(NewDevice)
    at = iso_utc(call.at.micros)
    return success("device", tables.devices.add({**new.model_dump(), "created_at": at, "updated_at": at}))


def configure_device(tables: Tables, call: Call) -> JsonObject:
    """Change a device's fields."""
    changed = call.body(ChangedDevice)
    fields = changed.model_dump(exclude_unset=True, exclude={"id"})
    if fields.get("name") == "":
        raise Refusal(400, "name: must not be empty")
    return success("device", tables.devices.change(changed.id, {**fields, "updated_at": iso_utc(call.at.micros)}))
