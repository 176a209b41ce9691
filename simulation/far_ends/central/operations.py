"""The operations of the simulated central: the permissions, the resource's name and the function of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from gateway.runtime.clock import iso_utc
from simulation.far_ends.central.answers import Call, JsonObject, Refusal, success
from simulation.far_ends.central.bodies import (
    ChangedCard,
    Cursor,
    Empty,
    Events,
    NewCameraEvent,
    NewCard,
    Pages,
    PagesWithoutSearch,
    RecordId,
    RequestBody,
    moment_of,
)
from simulation.far_ends.central.camera_operations import (
    add_camera,
    change_camera,
    change_camera_event,
    remove_camera,
    remove_camera_event,
)
from simulation.far_ends.central.parking import add_entry, change_entry
from simulation.far_ends.central.records import Batch, Filter
from simulation.far_ends.central.tables import Tables

Handler = Callable[[Tables, Call], JsonObject]
CAMERA_EVENT_CAP = 500
_VIEW_CARDS = ("can_view_access_cards", "can_view_guests")


class NewDevice(RequestBody):
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
    """Store a new device."""
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


class ByUsername(RequestBody):
    """POST /v1/access/username."""

    username: str = Field(min_length=1)


class Lifecycle(RequestBody):
    """PATCH /v1/access/lifecycle."""

    id: int
    status: Literal["active", "suspended", "lost", "blocked", "expired"]
    reason: str = ""


def card_of_user(tables: Tables, call: Call) -> JsonObject:
    """Return the card of a username."""
    wanted = call.body(ByUsername).username.casefold()
    for card in tables.cards.values():
        if str(card.get("username", "")).casefold() == wanted:
            return success("access_card", card)
    raise Refusal(404, "access card not found")


def change_lifecycle(tables: Tables, call: Call) -> JsonObject:
    """Change a card's status and store the reason."""
    asked = call.body(Lifecycle)
    fields: JsonObject = {"status": asked.status, "updated_at": iso_utc(call.at.micros)}
    if "reason" in asked.model_fields_set:
        fields["reason"] = asked.reason
    return success("access_card", tables.cards.change(asked.id, fields))


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. A caller needs any one of `permissions`."""

    method: str
    path: str
    resource: str
    permissions: tuple[str, ...]
    handle: Handler


def operations() -> Iterator[Operation]:
    """List every protected operation that this central has."""
    yield Operation("POST", "/v1/device/list", "devices", ("can_view_devices",), _devices)
    yield Operation("POST", "/v1/device", "device", ("can_view_devices",), _device)
    yield Operation("PUT", "/v1/device", "device", ("can_add_devices",), add_device)
    yield Operation("PATCH", "/v1/device/config", "device", ("can_edit_devices",), configure_device)
    yield Operation("POST", "/v1/access/username", "access_card", _VIEW_CARDS, card_of_user)
    yield Operation("PATCH", "/v1/access/lifecycle", "access_card", ("can_edit_access_cards",), change_lifecycle)
    yield Operation("POST", "/v1/access/list", "access_cards", _VIEW_CARDS, _cards)
    yield Operation("POST", "/v1/access", "access_card", _VIEW_CARDS, _card)
    yield Operation("PUT", "/v1/access", "access_card", ("can_add_access_cards", "can_add_guests"), _add_card)
    yield Operation("PATCH", "/v1/access", "access_card", ("can_edit_access_cards", "can_edit_guests"), _change_card)
    yield Operation(
        "DELETE", "/v1/access", "access_card", ("can_delete_access_cards", "can_delete_guests"), _remove_card
    )
    yield Operation("POST", "/v1/camera/list", "cameras", ("can_view_cameras",), _cameras)
    yield Operation("POST", "/v1/camera", "camera", ("can_view_cameras",), _camera)
    yield Operation("PUT", "/v1/camera", "camera", ("can_add_cameras",), add_camera)
    yield Operation("PATCH", "/v1/camera", "camera", ("can_edit_cameras",), change_camera)
    yield Operation("DELETE", "/v1/camera", "camera", ("can_delete_cameras",), remove_camera)
    yield Operation("PATCH", "/v1/camera/event", "event", ("can_edit_camera_events",), change_camera_event)
    yield Operation("DELETE", "/v1/camera/event", "event", ("can_delete_camera_events",), remove_camera_event)
    yield Operation("POST", "/v1/event/list", "events", ("can_view_events",), _events)
    yield Operation("POST", "/v1/event", "event", ("can_view_events",), _event)
    yield Operation("PUT", "/v1/camera/event", "event", ("can_add_camera_events",), _add_camera_event)
    yield Operation("POST", "/v1/camera/event", "event", ("can_view_camera_events",), _camera_event)
    yield Operation("POST", "/v1/camera/event/list", "events", ("can_view_camera_events",), _camera_events)
    yield Operation("PUT", "/v1/entry", "entry", ("can_add_entries",), add_entry)
    yield Operation("PATCH", "/v1/entry", "entry", ("can_edit_entries",), change_entry)
    yield Operation("POST", "/v1/entry/list", "entries", ("can_view_entries",), _entries)


def _devices(tables: Tables, call: Call) -> JsonObject:
    asked = call.body(Cursor)
    batch = _asked_batch(tables, "devices", asked, _search(asked.search))
    return _list("devices", batch, cursor=True)


def _device(tables: Tables, call: Call) -> JsonObject:
    return success("device", tables.devices.find(call.body(RecordId).id))


def _cards(tables: Tables, call: Call) -> JsonObject:
    asked = call.body(Pages)
    limit = min(asked.page_limit, tables.page_cap)
    return _list(
        "access_cards", tables.cards.page(_search(asked.search), page=asked.page, limit=limit, shift=tables.shift)
    )


def _card(tables: Tables, call: Call) -> JsonObject:
    return success("access_card", tables.cards.find(call.body(RecordId).id))


def _add_card(tables: Tables, call: Call) -> JsonObject:
    new = call.body(NewCard)
    if not any(new.model_dump(exclude_unset=True).values()):
        raise Refusal(400, "body: an access card needs at least one field")
    _refuse_taken_number(tables, new.number, except_id=0)
    at = iso_utc(call.at.micros)
    return success("access_card", tables.cards.add({**new.model_dump(), "created_at": at, "updated_at": at}))


def _change_card(tables: Tables, call: Call) -> JsonObject:
    changed = call.body(ChangedCard)
    tables.cards.find(changed.id)
    fields = changed.model_dump(exclude_unset=True, exclude={"id"})
    if "number" in fields:
        _refuse_taken_number(tables, changed.number, except_id=changed.id)
    return success("access_card", tables.cards.change(changed.id, {**fields, "updated_at": iso_utc(call.at.micros)}))


def _remove_card(tables: Tables, call: Call) -> JsonObject:
    return success("access_card", tables.cards.remove(call.body(RecordId).id))


def _cameras(tables: Tables, call: Call) -> JsonObject:
    call.body(Empty)
    records = list(tables.cameras.values())
    return {"success": True, "cameras": [*records], "count": len(records), "error": None}


def _camera(tables: Tables, call: Call) -> JsonObject:
    return success("camera", tables.cameras.find(call.body(RecordId).id))


def _events(tables: Tables, call: Call) -> JsonObject:
    asked = call.body(Events)
    return _list("events", _asked_batch(tables, "events", asked, _event_filter(asked)), cursor=True)


def _event(tables: Tables, call: Call) -> JsonObject:
    return success("event", tables.events.find(call.body(RecordId).id))


def _add_camera_event(tables: Tables, call: Call) -> JsonObject:
    new = call.body(NewCameraEvent)
    tables.cameras.find(new.camera_id)
    extra: JsonObject = {"idempotency_key": call.key, "created_at": iso_utc(call.at.micros), "evidence": []}
    return success("event", tables.camera_events.add({**new.model_dump(), **extra}))


def _camera_event(tables: Tables, call: Call) -> JsonObject:
    return success("event", tables.camera_events.find(call.body(RecordId).id))


def _camera_events(tables: Tables, call: Call) -> JsonObject:
    asked = call.body(PagesWithoutSearch)
    limit = min(asked.page_limit, CAMERA_EVENT_CAP)
    return _list("events", tables.camera_events.page(None, page=asked.page, limit=limit, shift=tables.shift))


def _entries(tables: Tables, call: Call) -> JsonObject:
    asked = call.body(Pages)
    limit = min(asked.page_limit, tables.page_cap)
    return _list(
        "entries", tables.entries.page(_search(asked.search), page=asked.page, limit=limit, shift=tables.shift)
    )


def _asked_batch(tables: Tables, name: str, asked: Cursor, matches: Filter) -> Batch:
    table = tables.devices if name == "devices" else tables.events
    limit = min(asked.page_limit, tables.page_cap)
    if asked.cursor_id:
        return table.older_than(matches, cursor=asked.cursor_id, limit=limit, shift=tables.shift)
    return table.page(matches, page=asked.page, limit=limit, shift=tables.shift)


def _list(resource: str, batch: Batch, *, cursor: bool = False) -> JsonObject:
    answer: JsonObject = {"success": True, resource: [*batch.records], "count": batch.count, "error": None}
    if cursor and batch.next_cursor is not None:
        answer["next_cursor"] = batch.next_cursor
    return answer


def _search(text: str) -> Filter:
    wanted = text.strip().casefold()
    if not wanted:
        return None
    return lambda record: any(wanted in value.casefold() for value in record.values() if isinstance(value, str))


def _event_filter(asked: Events) -> Filter:
    search = _search(asked.search)
    start = moment_of(asked.start_date) if asked.start_date else None
    end = moment_of(asked.end_date) if asked.end_date else None

    def matches(record: JsonObject) -> bool:
        at = moment_of(str(record["date_at"]))
        return (
            (search is None or search(record))
            and (not asked.device_ids or record["device_id"] in asked.device_ids)
            and (not asked.types or record["type"] in asked.types)
            and (not asked.event_types or record["type"] in asked.event_types)
            and (start is None or at >= start)
            and (end is None or at <= end)
        )

    return matches


def _refuse_taken_number(tables: Tables, number: str, *, except_id: int) -> None:
    if number and any(card.get("number") == number and card_id != except_id for card_id, card in tables.cards.items()):
        raise Refusal(409, f"number: {number} is already used")
