"""Cameras and camera events written at the simulated central, and evidence uploaded to it."""

from __future__ import annotations

import hashlib
from datetime import datetime

from aiohttp import BodyPartReader, web
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gateway.runtime.clock import Stamp, iso_utc
from simulation.far_ends.central.answers import Call, JsonObject, Refusal, success
from simulation.far_ends.central.bodies import RecordId, RequestBody
from simulation.far_ends.central.tables import Tables

EVIDENCE = "/v1/camera/event/evidence"
EVIDENCE_PERMISSION = ("can_add_camera_events",)
_LARGEST_FIELD = 8 * 1024
_PIECE = 256 * 1024


class NewCamera(RequestBody):
    """PUT /v1/camera."""

    name: str = Field(min_length=1, max_length=120)
    description: str = ""
    location: str = ""
    type: int | str = 1
    enabled: bool = True


class ChangedCamera(NewCamera):
    """PATCH /v1/camera: only the fields that are sent change."""

    id: int
    name: str = Field(default="", max_length=120)


class ChangedCameraEvent(RequestBody):
    """PATCH /v1/camera/event: only the fields that are sent change."""

    id: int
    name: str = Field(default="", max_length=200)
    description: str = ""
    incident: bool = False


class EvidenceFields(BaseModel):
    """The fields beside the file in POST /v1/camera/event/evidence."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: int = Field(description="the camera event")
    name: str = Field(min_length=1, max_length=200)
    description: str = ""
    date_at: datetime
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


def add_camera(tables: Tables, call: Call) -> JsonObject:
    """Store a new camera."""
    new = call.body(NewCamera)
    at = iso_utc(call.at.micros)
    return success("camera", tables.cameras.add({**new.model_dump(), "stream": "", "created_at": at, "updated_at": at}))


def change_camera(tables: Tables, call: Call) -> JsonObject:
    """Change a camera's fields."""
    changed = call.body(ChangedCamera)
    fields = _named(changed)
    return success("camera", tables.cameras.change(changed.id, {**fields, "updated_at": iso_utc(call.at.micros)}))


def remove_camera(tables: Tables, call: Call) -> JsonObject:
    """Delete a camera."""
    return success("camera", tables.cameras.remove(call.body(RecordId).id))


def change_camera_event(tables: Tables, call: Call) -> JsonObject:
    """Change fields of a camera event."""
    changed = call.body(ChangedCameraEvent)
    fields = _named(changed)
    return success("event", tables.camera_events.change(changed.id, {**fields, "updated_at": iso_utc(call.at.micros)}))


def remove_camera_event(tables: Tables, call: Call) -> JsonObject:
    """Delete a camera event."""
    return success("event", tables.camera_events.remove(call.body(RecordId).id))


async def take_evidence(tables: Tables, request: web.Request, *, at: Stamp, key: str) -> JsonObject:
    """Take a file for a camera event; its bytes are counted and hashed, not kept. Raises Refusal."""
    if request.content_type != "multipart/form-data":
        raise Refusal(400, "the body must be multipart/form-data")
    fields: dict[str, str] = {}
    file: JsonObject | None = None
    try:
        async for part in await request.multipart():
            if not isinstance(part, BodyPartReader) or not part.name:
                raise Refusal(400, "a part without a name")
            if part.name == "file":
                if file is not None:
                    raise Refusal(400, "file: more than one")
                file = await _hashed(part)
            else:
                fields[part.name] = (await _small(part)).decode()
    except (ValueError, AssertionError) as error:
        raise Refusal(400, f"no multipart form: {error}") from error
    if file is None:
        raise Refusal(400, "file: missing")
    try:
        said = EvidenceFields.model_validate(fields)
    except ValidationError as error:
        raise Refusal(400, str(error.errors(include_url=False, include_input=False)[0])) from error
    if said.sha256 != file["sha256"]:
        raise Refusal(400, "sha256: not that of the file")
    event = tables.camera_events.find(said.id)
    record: JsonObject = {
        **said.model_dump(mode="json", exclude={"id"}),
        **file,
        "camera_event_id": said.id,
        "created_at": iso_utc(at.micros),
        "idempotency_key": key,
    }
    known = event.get("evidence")
    present = known if isinstance(known, list) else []
    record["id"] = said.id * 1000 + len(present) + 1
    tables.camera_events.change(said.id, {"evidence": [*present, record]})
    return success("evidence", record)


async def _hashed(part: BodyPartReader) -> JsonObject:
    digest, size = hashlib.sha256(), 0
    while piece := await part.read_chunk(_PIECE):
        digest.update(piece)
        size += len(piece)
    return {
        "sha256": digest.hexdigest(),
        "size": size,
        "type": part.headers.get("Content-Type", ""),
        "file_name": part.filename or "",
    }


async def _small(part: BodyPartReader) -> bytes:
    raw = b""
    while piece := await part.read_chunk(_LARGEST_FIELD):
        raw += piece
        if len(raw) > _LARGEST_FIELD:
            raise Refusal(400, f"{part.name}: too long")
    return raw


def _named(changed: ChangedCamera | ChangedCameraEvent) -> JsonObject:
    """Return the fields that were sent. Raises Refusal for an empty name."""
    fields = changed.model_dump(exclude_unset=True, exclude={"id"})
    if fields.get("name") == "":
        raise Refusal(400, "name: must not be empty")
    return fields
