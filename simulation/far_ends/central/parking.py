"""Parking entries at the simulated central: their bodies, and how they are created, changed and listed."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from gateway.runtime.clock import iso_utc
from simulation.far_ends.central.answers import Call, JsonObject, Refusal, success
from simulation.far_ends.central.tables import Tables


def _dated(value: str) -> str:
    """Check that a value is ISO 8601; otherwise raise ValueError."""
    datetime.fromisoformat(value)
    return value


_Moment = Annotated[str, AfterValidator(_dated)]


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    access_id: int | None = None
    plate: str = ""
    credential: str = ""
    lane: str = ""
    area: str = ""
    exit_at: _Moment | None = None
    exit_device_id: int | None = None
    exit_lane: str = ""
    status: Literal["open", "closed", "exit_only", "superseded"] | None = None
    clock_trusted: bool = True
    note: str = ""
    data: str = Field(default="", description="a string, not a parsed object")
    source_name: str = ""
    source_id: int | None = None


class NewEntry(_Entry):
    """PUT /v1/entry."""

    device_id: int
    type: Literal["entry", "exit"]
    date_at: _Moment


class ChangedEntry(_Entry):
    """PATCH /v1/entry: only the fields that are sent change."""

    id: int
    device_id: int | None = None
    type: Literal["entry", "exit"] | None = None
    date_at: _Moment | None = None


def add_entry(tables: Tables, call: Call) -> JsonObject:
    """Store a new entry."""
    new = call.body(NewEntry)
    _refuse_unknown_devices(tables, new.device_id, new.exit_device_id)
    _refuse_exit_before(new.date_at, new.exit_at)
    extra: JsonObject = {"idempotency_key": call.key, "created_at": iso_utc(call.at.micros)}
    return success("entry", tables.entries.add({**new.model_dump(), **extra}))


def change_entry(tables: Tables, call: Call) -> JsonObject:
    """Overwrite fields of an entry."""
    changed = call.body(ChangedEntry)
    known = tables.entries.find(changed.id)
    fields: dict[str, JsonValue] = changed.model_dump(exclude_unset=True, exclude={"id"})
    _refuse_unknown_devices(tables, changed.device_id, changed.exit_device_id)
    whole = {**known, **fields}
    _refuse_exit_before(whole["date_at"], whole.get("exit_at"))
    return success("entry", tables.entries.change(changed.id, {**fields, "updated_at": iso_utc(call.at.micros)}))


def _refuse_unknown_devices(tables: Tables, *device_ids: int | None) -> None:
    for device_id in device_ids:
        if device_id is not None:
            tables.devices.find(device_id)


def _refuse_exit_before(came: JsonValue, left: JsonValue) -> None:
    if isinstance(came, str) and isinstance(left, str):
        try:
            too_early = datetime.fromisoformat(left) < datetime.fromisoformat(came)
        except TypeError as error:
            raise Refusal(400, "exit_at: has an offset where date_at has none, or the other way round") from error
        if too_early:
            raise Refusal(400, "exit_at: is before the entry")
