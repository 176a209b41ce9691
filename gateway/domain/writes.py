"""Writes of records that central also keeps: operations, effects, and a record's state while a write waits. Pure.

Each enters the outbox. While central answers, it is sent at once and the record changes with the answer. Otherwise the
record changes at the site at once, and the write waits.

By source ids central tells the records of this box from those of the site's other boxes. A source id has the site's own
id in its lower 32 bits and the number of the box above them. A box that replaces another begins with the same ids, but
with another box number. That number has 20 bits at most, so that a source id fits the 53 bits that every JSON reader
takes exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from enum import Enum
from types import MappingProxyType
from typing import Literal, Protocol

from pydantic import JsonValue

from gateway.runtime.clock import micros_of
from gateway.texts import Words, text

JsonObject = dict[str, JsonValue]
_NAMED = frozenset({"access_card", "camera", "camera_event", "device", "entry", "evidence"})

CARD_FIELDS = frozenset(
    {
        "number", "facility_code", "card_number", "card_format", "uid", "plate", "type", "status", "enabled",
        "username", "holder_name", "customer_id", "company_id", "valid_from", "valid_until", "pin", "zones",
        "schedules", "first_person", "duress", "note",
    }
)  # fmt: skip
"""Fields that the create of a card may have; the rest of a card's record is made by central."""
_NOT_IN_A_CREATE = frozenset({"id", "reason", "incident"})
"""Fields of changes that central does not accept in a create: they are sent in the change itself."""
FIRST_PROVISIONAL_ID = 2_000_000_000
"""Ids from here on are made at the site; central's are below."""

_ID_BITS = 32


class Effect(Enum):
    """Effect of a write on its record."""

    CREATE = "create"
    CHANGE = "change"
    """The fields that it carries replace those of the record."""
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Lookup:
    """The list in which to look for a record whose outcome at central is unknown.

    Attributes:
        path: the list's path at central.
        resource: the name under which the list's answer has the records.
        marks: groups of fields by which a record is told from others; it is enough that one group is alike.
        paged: whether the list comes in pages.
        searched: whether the list can be searched.
        is_long: whether the list grows all day, so that it cannot be read as a whole.
        by_cursor: whether the whole list is read by cursor, which no change of the list disturbs.
    """

    path: str
    resource: str
    marks: tuple[tuple[str, ...], ...]
    paged: bool = True
    searched: bool = False
    is_long: bool = False
    by_cursor: bool = False


def record_name(kind: str, number: int) -> Words:
    """Name a record for people."""
    return text(f"record.{kind}", number=str(number)) if kind in _NAMED else f"{kind.replace('_', ' ')} {number}"


@dataclass(frozen=True, slots=True)
class WriteOperation:
    """One operation of the interface that writes.

    Attributes:
        kind: the kind of record that it writes; writes of one record are sent in order.
        action: its name among the operations of that kind; the outbox stores it, so it never changes.
        effect: its effect on the record.
        method: its HTTP method at central.
        path: its path at central.
        resources: the names under which central's answer may have the record.
        lookup: the list in which a create of unknown outcome is looked for, None for other effects.
    """

    kind: str
    action: str
    effect: Effect
    method: Literal["POST", "PUT", "PATCH", "DELETE"]
    path: str
    resources: tuple[str, ...]
    lookup: Lookup | None = None


_CARD = "access_card"
_CARDS = Lookup(
    "/v1/access/list",
    "access_cards",
    (("number",), ("uid",), ("plate",), ("facility_code", "card_number")),
    searched=True,
)
_DEVICES = Lookup("/v1/device/list", "devices", (("serial_number",), ("name",)), searched=True, by_cursor=True)

DEVICE_CREATE = WriteOperation("device", "create", Effect.CREATE, "PUT", "/v1/device", ("device",), _DEVICES)
DEVICE_CONFIG = WriteOperation("device", "config", Effect.CHANGE, "PATCH", "/v1/device/config", ("device",))

CARD_CREATE = WriteOperation(_CARD, "create", Effect.CREATE, "PUT", "/v1/access", (_CARD, "access"), _CARDS)
CARD_UPDATE = WriteOperation(_CARD, "update", Effect.CHANGE, "PATCH", "/v1/access", (_CARD, "access"))
CARD_LIFECYCLE = WriteOperation(_CARD, "lifecycle", Effect.CHANGE, "PATCH", "/v1/access/lifecycle", (_CARD, "access"))
CARD_DELETE = WriteOperation(_CARD, "delete", Effect.DELETE, "DELETE", "/v1/access", (_CARD, "access"))

CAMERA_CREATE = WriteOperation(
    "camera",
    "create",
    Effect.CREATE,
    "PUT",
    "/v1/camera",
    ("camera",),
    Lookup("/v1/camera/list", "cameras", (("name",),), paged=False),
)
CAMERA_UPDATE = WriteOperation("camera", "update", Effect.CHANGE, "PATCH", "/v1/camera", ("camera",))
CAMERA_DELETE = WriteOperation("camera", "delete", Effect.DELETE, "DELETE", "/v1/camera", ("camera",))

_EVENT = ("event", "camera_event")
_CAMERA_EVENTS = Lookup("/v1/camera/event/list", "events", (("camera_id", "date_at"),), is_long=True)
CAMERA_EVENT_CREATE = WriteOperation(
    "camera_event", "create", Effect.CREATE, "PUT", "/v1/camera/event", _EVENT, _CAMERA_EVENTS
)
CAMERA_EVENT_UPDATE = WriteOperation("camera_event", "update", Effect.CHANGE, "PATCH", "/v1/camera/event", _EVENT)
CAMERA_EVENT_DELETE = WriteOperation("camera_event", "delete", Effect.DELETE, "DELETE", "/v1/camera/event", _EVENT)

_ENTRIES = Lookup("/v1/entry/list", "entries", (("device_id", "date_at"),), is_long=True)
ENTRY_CREATE = WriteOperation("entry", "create", Effect.CREATE, "PUT", "/v1/entry", ("entry",), _ENTRIES)
ENTRY_UPDATE = WriteOperation("entry", "update", Effect.CHANGE, "PATCH", "/v1/entry", ("entry",))

WRITES: Mapping[tuple[str, str], WriteOperation] = MappingProxyType(
    {
        (operation.kind, operation.action): operation
        for operation in (
            DEVICE_CREATE,
            DEVICE_CONFIG,
            CARD_CREATE,
            CARD_UPDATE,
            CARD_LIFECYCLE,
            CARD_DELETE,
            CAMERA_CREATE,
            CAMERA_UPDATE,
            CAMERA_DELETE,
            CAMERA_EVENT_CREATE,
            CAMERA_EVENT_UPDATE,
            CAMERA_EVENT_DELETE,
            ENTRY_CREATE,
            ENTRY_UPDATE,
        )
    }
)
"""Every write that the outbox can carry, by kind and action."""


@dataclass(frozen=True, slots=True)
class WriteResult:
    """Result of a write.

    Attributes:
        record_id: the id that the record has now; None when central's answer to a create has none.
        record: the record as the site has it now; for a deletion, the record before it, as far as known.
        waits: whether the write waits for central.
        taken_back: whether a deletion removed all waiting writes of a record that central never had.
    """

    record_id: int | None
    record: JsonObject
    waits: bool
    taken_back: bool = False

    @property
    def sync_of_deleted(self) -> Literal["in_step", "waiting", "taken_back"]:
        """State of a deleted record at central."""
        return "waiting" if self.waits else "taken_back" if self.taken_back else "in_step"


class RecordWriter(Protocol):
    """Writer of the records that central also keeps."""

    @property
    def alone(self) -> bool:
        """True if the site has no central."""
        ...

    async def write(self, operation: WriteOperation, body: JsonObject) -> WriteResult:
        """Send a write to central if it is online; otherwise hold it at the site.

        `body` has the fields of the interface, with the `id` unless the record is new. Raises CentralRefused with
        central's status and words, StoreError when nothing can be written to disk, QuotaExceeded when the backlog is
        full.
        """
        ...

    async def admit(self) -> None:
        """Raise QuotaExceeded when the backlog is full, for writes that are stored in another way."""
        ...


@dataclass(frozen=True, slots=True)
class WaitingWrite:
    """A write that waits in the outbox.

    Attributes:
        operation: the operation.
        record_id: the site's id of the record.
        body: the fields that it writes.
        begun: whether it may have reached central.
        refused: why central refused it, "" if it has not.
        base: for a change, the values of its fields before it, as far as known.
    """

    operation: WriteOperation
    record_id: int
    body: JsonObject
    begun: bool = False
    refused: str = ""
    base: JsonObject = field(default_factory=dict)

    @property
    def holds_up_nothing(self) -> bool:
        """True if later writes of the record may overtake it: a refused change of a record that central has."""
        return bool(self.refused) and self.operation.effect is not Effect.CREATE


def takes_away(operation: WriteOperation, body: JsonObject) -> bool:
    """Return whether a write may revoke a right (a card's status, a deletion): no waiting write may delay it."""
    of_a_state = operation.kind == _CARD and ("status" in body or "enabled" in body)
    return operation.effect is Effect.DELETE or (of_a_state and operation.effect is Effect.CHANGE)


def changed_by(record: JsonObject, body: JsonObject) -> JsonObject:
    """Return the record with the fields of a write applied; its id stays."""
    return {**record, **{name: value for name, value in body.items() if name != "id"}}


def with_newer(created: JsonObject, newer: Iterable[JsonObject]) -> JsonObject:
    """Return a refused create with the fields of newer changes merged in, as far as a create may have them."""
    body = dict(created)
    for change in newer:
        body |= {name: value for name, value in change.items() if name not in _NOT_IN_A_CREATE}
    return body


def left_to_change(kind: str, changes: Sequence[JsonObject]) -> tuple[JsonObject | None, ...]:
    """Return for each later change what remains of it after `with_newer`; None if the create contains all of it.

    A change that remains carries the newest values, so that central never shows an older value again after the create.
    The interface does not say which fields a create accepts: they are known for cards only.
    """
    newest: JsonObject = {name: value for change in changes for name, value in change.items()}
    contained = CARD_FIELDS if kind == _CARD else frozenset[str]()
    said, left = {"id"}, list[JsonObject | None]()
    for change in reversed(changes):
        is_needed = change.keys() - said - contained
        left.append({name: newest[name] for name in change} if is_needed else None)
        said |= change.keys()
    return tuple(reversed(left))


def is_twin(sent: JsonObject, record: JsonObject) -> bool:
    """Return whether central's record is like what was sent, in every field that was sent with a value."""
    stated = {name: value for name, value in sent.items() if name != "id" and value not in (None, "")}
    return bool(stated) and all(alike(value, record.get(name)) for name, value in stated.items())


def alike(sent: JsonValue, kept: JsonValue) -> bool:
    """Return whether two values are equal, apart from the spelling of a text, time or number."""
    if sent == kept:
        return True
    if isinstance(sent, dict):
        return isinstance(kept, dict) and all(alike(value, kept.get(name)) for name, value in sent.items())
    if isinstance(sent, list) or isinstance(kept, list | dict) or kept is None:
        return False
    one, other = str(sent).strip(), str(kept).strip()
    if one.casefold() == other.casefold():
        return True
    moment = _moment(one)
    return moment is not None and moment == _moment(other)


def _moment(text: str) -> int | None:
    """Return milliseconds since 1970, because some services store no more; None for another value."""
    try:
        return micros_of(text, UTC) // 1_000
    except ValueError:
        return None


def source_id(box: int, site_id: int) -> int:
    """Return the `source_id` of the record with this site id, made by this box."""
    return box << _ID_BITS | site_id


def site_id_in(source: int) -> int:
    """Return the site's own id from a `source_id`."""
    return source & ((1 << _ID_BITS) - 1)
