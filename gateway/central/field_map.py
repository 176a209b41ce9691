"""Mapping of central's access-card records to cards. Pure.

The interface leaves a card's fields open, so each field of a card here has several names under which it may come, the
likelier first. A status or a date that cannot be read suspends the card. If several fields state a status or a period,
the strictest counts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import tzinfo
from functools import lru_cache
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, JsonValue

from drivers.plate_text import plain_plate, unread_in
from gateway.central.client.answers import JsonObject
from gateway.central.client.values import is_no_date, read_moment, text_of, whole_of
from gateway.domain.credentials import (
    MAX_TEXT,
    Card,
    CardStatus,
    near_alias,
    plain_number,
    plate_alias,
    uid_alias,
)
from gateway.domain.plates import skeleton
from gateway.domain.printed import layout_named, listed_aliases
from gateway.domain.wiegand import H10301, Format

_VERSION = 7  # raise it whenever the same record is mapped to another card than before
_PIN = re.compile(r"[0-9]{4,8}")
_SHAPES_KNOWN = 64
_STATUSES = {
    CardStatus.ACTIVE: "active enabled valid ok open issued activated 1 true",
    CardStatus.SUSPENDED: "suspended disabled inactive locked paused deleted revoked archived pending 0 false",
    CardStatus.BLOCKED: "blocked blacklisted barred banned",
    CardStatus.LOST: "lost stolen missing damaged",
    CardStatus.EXPIRED: "expired ended",
}
_STRICTEST_FIRST = (
    CardStatus.BLOCKED,
    CardStatus.LOST,
    CardStatus.SUSPENDED,
    CardStatus.EXPIRED,
    CardStatus.ACTIVE,
)
_YES, _NO = frozenset({"true", "1", "yes", "on", "y"}), frozenset({"false", "0", "no", "off", "n"})
_STATUS_OF = {word: status for status, words in _STATUSES.items() for word in words.split()}
_layout_named = lru_cache(256)(layout_named)


class ValuePlace(NamedTuple):
    """The place of a value: its name in the map, the record's field, and the path inside that field's object."""

    name: str
    field: str
    inside: tuple[str, ...]


Places = tuple[ValuePlace, ...]


class Shape(NamedTuple):
    """The places of each of the map's fields in records with the same field names."""

    printed: Places
    facility: Places
    number: Places
    status: Places
    enabled: Places
    deleted: Places
    valid_from: Places
    valid_until: Places
    layout: Places
    uid: Places
    plate: Places
    zones: Places
    schedules: Places
    owner: Places
    first_person: Places
    duress: Places
    pin: Places
    holder: Places


def shape_of(names: Mapping[str, tuple[str, ...]], there: frozenset[str]) -> Shape:
    """Return the shape of records with the fields `there`. `names` are the map's names for each field of a card."""

    def places(stated: tuple[str, ...]) -> Places:
        ways = (ValuePlace(name, *_way(name)) for name in stated)
        return tuple(place for place in ways if place.field in there)

    return Shape._make(places(names[name]) for name in Shape._fields)


def _way(name: str) -> tuple[str, tuple[str, ...]]:
    field, *inside = name.split(".")
    return field, tuple(inside)


def stated(record: JsonObject, places: Places) -> list[tuple[str, JsonValue]]:
    """Return names and values of the places that have a value in this record."""
    found: list[tuple[str, JsonValue]] = []
    for name, field, inside in places:
        value = _inside(record[field], inside) if inside else record[field]
        if value is not None and value != "":
            found.append((name, value))
    return found


def first(record: JsonObject, places: Places) -> JsonValue:
    """Return the value of the first of these places that has one; an empty list counts as none."""
    for _, field, inside in places:
        value = _inside(record[field], inside) if inside else record[field]
        if value is not None and value not in ("", []):
            return value
    return None


def _inside(value: JsonValue, way: tuple[str, ...]) -> JsonValue:
    for part in way:
        value = value.get(part) if isinstance(value, dict) else None
    return value


class CardFieldMap(BaseModel):
    """Names of fields in central's records, the likelier first. A dot goes into a nested object."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    printed: tuple[str, ...] = ("number", "printed_number", "card_no", "code", "card_number", "credential", "uid")
    facility: tuple[str, ...] = ("facility_code", "facility", "site_code")
    number: tuple[str, ...] = ("card_number", "card_code", "number", "code", "card_no")
    status: tuple[str, ...] = ("status", "state", "card_status")
    enabled: tuple[str, ...] = ("enabled", "is_enabled", "active", "is_active")
    deleted: tuple[str, ...] = ("deleted", "is_deleted", "deleted_at")
    valid_from: tuple[str, ...] = ("valid_from", "starts_at", "start_date", "activated_at")
    valid_until: tuple[str, ...] = ("valid_until", "expires_at", "expiry_date", "end_date", "valid_to")
    layout: tuple[str, ...] = ("card_format", "format")
    uid: tuple[str, ...] = ("uid", "csn")
    plate: tuple[str, ...] = ("plate", "license_plate", "licence_plate", "plate_number", "vehicle.plate")
    zones: tuple[str, ...] = ("zones", "zone_ids", "access_zones", "zone_id", "zone")
    schedules: tuple[str, ...] = ("schedules", "schedule_ids", "access_schedules", "schedule_id", "schedule")
    owner: tuple[str, ...] = ("customer_id", "owner_id", "customer.id", "guest_id", "user_id")
    first_person: tuple[str, ...] = ("first_person", "is_first_person")
    duress: tuple[str, ...] = ("duress", "is_duress")
    pin: tuple[str, ...] = ("pin", "pin_code")
    holder: tuple[str, ...] = ("holder_name", "holder", "full_name", "name", "customer.name", "guest.name", "user.name")

    def fingerprint(self, zone: tzinfo) -> str:
        """Return a digest that changes whenever the same record might become another card."""
        return hashlib.sha256(f"{_VERSION} {zone} {self.model_dump_json()}".encode()).hexdigest()[:16]


class CardMapper:
    """Mapper of records to cards. Dates without an offset are in the site's time zone.

    Most records of a list have the same fields, so the places of values are found once for each such shape.
    """

    def __init__(self, fields: CardFieldMap, zone: tzinfo) -> None:
        self._names: dict[str, tuple[str, ...]] = dict(fields)
        self._zone = zone
        self._shapes: dict[tuple[str, ...], Shape] = {}

    def map(self, card_id: int, record: JsonObject) -> Card:
        """Map a record to a card."""
        names = tuple(record)
        shape = self._shapes.get(names) or self._learn(names)
        unread: list[str] = []
        status = _status(record, shape, unread)
        begins = _moments(record, shape.valid_from, self._zone, unread, ends=False)
        ends = _moments(record, shape.valid_until, self._zone, unread, ends=True)
        if unread and status is CardStatus.ACTIVE:
            status = CardStatus.SUSPENDED
        return Card(
            card_id=card_id,
            number=text_of(first(record, shape.printed))[:MAX_TEXT],
            status=status,
            valid_from=max(begins, default=None),
            valid_until=min(ends, default=None),
            holder=_holder(record, shape)[:MAX_TEXT],
            zones=_names(first(record, shape.zones)) if shape.zones else (),
            schedules=_names(first(record, shape.schedules)) if shape.schedules else (),
            owner=text_of(first(record, shape.owner))[:MAX_TEXT],
            first_person=bool(shape.first_person) and _is_yes(first(record, shape.first_person)),
            duress=bool(shape.duress) and _is_yes(first(record, shape.duress)),
            pin=_pin(first(record, shape.pin)) if shape.pin else "",
            unread=", ".join(unread),
            aliases=tuple(dict.fromkeys(_aliases(record, shape))),
        )

    def _learn(self, names: tuple[str, ...]) -> Shape:
        if len(self._shapes) >= _SHAPES_KNOWN:
            self._shapes.clear()
        shape = self._shapes[names] = shape_of(self._names, frozenset(names))
        return shape


def map_card(card_id: int, record: JsonObject, fields: CardFieldMap, zone: tzinfo) -> Card:
    """Map a single record; see `CardMapper`."""
    return CardMapper(fields, zone).map(card_id, record)


def _aliases(record: JsonObject, shape: Shape) -> list[str]:
    found: list[str] = []
    facility, number = whole_of(first(record, shape.facility)), whole_of(first(record, shape.number))
    layout = _layout(record, shape)
    built = layout or H10301
    if facility is not None and number is not None and built.facility_bits and built.holds(facility, number):
        found.append(built.alias(facility, number))
    if shape.uid and (uid := uid_alias(plain_number(text_of(first(record, shape.uid))))):
        found.append(uid)
    plate = text_of(first(record, shape.plate)) if shape.plate else ""
    # What is left of a plate with a mark for an unreadable letter may be another vehicle's.
    if not unread_in(plate) and (plate := plain_plate(plate)[:MAX_TEXT]):
        found += (plate_alias(plate), near_alias(skeleton(plate)))
    for place, (_, value) in enumerate(stated(record, shape.printed)):
        # With a facility, the bare number alone is ambiguous: cards of other facilities carry the same one.
        if place > 0 and facility is not None and whole_of(value) == number:
            continue
        text = text_of(value)
        if not text or len(text) > MAX_TEXT:
            continue
        found += listed_aliases(text, layout, whole=facility is None)
    return found


def _layout(record: JsonObject, shape: Shape) -> Format | None:
    return _layout_named(text_of(first(record, shape.layout))) if shape.layout else None


def _pin(value: JsonValue) -> str:
    """Return a PIN of 4 to 8 digits; "" for anything else, so that the card opens no lane that asks for a PIN."""
    text = text_of(value)
    return text if _PIN.fullmatch(text) else ""


def _names(value: JsonValue) -> tuple[str, ...]:
    """Return names or ids from a single value, a list of them, or a list of objects.

    An object without name and id gives "", which no zone or schedule has, so that it does not widen the card's rights.
    """
    items = value if isinstance(value, list) else [value] if value not in (None, "") else []
    named = [item for entry in items for item in (_named(entry) if isinstance(entry, dict) else (text_of(entry),))]
    return tuple(dict.fromkeys(name[:MAX_TEXT] for name in named))


def _named(entry: dict[str, JsonValue]) -> tuple[str, ...]:
    """Return an object's id and name, since the site file may use either; ("",) if it has none."""
    return tuple(name for key in ("id", "name") if (name := text_of(entry.get(key)))) or ("",)


def _is_yes(value: JsonValue) -> bool:
    return text_of(value).casefold() in {"true", "1", "yes"}


def _status(record: JsonObject, shape: Shape, unread: list[str]) -> CardStatus:
    """Return the strictest status that any field states, active without any. Add unreadable fields to `unread`."""
    strictest = CardStatus.ACTIVE
    for name, value in stated(record, shape.status):
        status = _STATUS_OF.get(text_of(value).casefold())
        if status is None:
            unread.append(name)
        strictest = _stricter(strictest, status or CardStatus.SUSPENDED)
    for name, value in stated(record, shape.enabled):
        word = text_of(value).casefold()
        status = CardStatus.ACTIVE if word in _YES else CardStatus.SUSPENDED if word in _NO else _STATUS_OF.get(word)
        if status is None:
            unread.append(name)
        strictest = _stricter(strictest, status or CardStatus.SUSPENDED)
    if any(_says_deleted(value) for _, value in stated(record, shape.deleted)):
        strictest = _stricter(strictest, CardStatus.SUSPENDED)
    return strictest


def _says_deleted(value: JsonValue) -> bool:
    """Return whether the value of a deletion field is a yes, a moment, or an object that may be a moment."""
    if isinstance(value, dict | list):
        return bool(value)
    text = text_of(value).casefold()
    return text not in _NO and not is_no_date(text)


def _stricter(one: CardStatus, other: CardStatus) -> CardStatus:
    return one if one is other else min(one, other, key=_STRICTEST_FIRST.index)


def _moments(record: JsonObject, places: Places, zone: tzinfo, unread: list[str], *, ends: bool) -> list[int]:
    """Return every bound that these fields state, in wall micros. Add the names of unreadable fields to `unread`."""
    found = []
    for name, value in stated(record, places):
        moment, is_read = read_moment(value, zone, ends=ends)
        if not is_read:
            unread.append(name)
        if moment is not None:
            found.append(moment)
    return found


def _holder(record: JsonObject, shape: Shape) -> str:
    stated = text_of(first(record, shape.holder))
    if stated:
        return stated
    names = (text_of(record.get("first_name")), text_of(record.get("last_name")))
    return " ".join(name for name in names if name)
