"""Comparison of a record at central with one of the site: whether it is the same. Pure.

Marks are the fields that show it under a known id. A create whose answer was lost is compared as a whole.

Records of some kinds name their source (`source_name`, `source_id`): then the source decides, otherwise the other
fields. If these leave a doubt, a person decides: if the record is sent again, it may be at central twice; if another
record is taken for it, it is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from pydantic import JsonValue

from drivers.plate_text import plain_plate
from gateway.domain.writes import (
    CAMERA_EVENT_CREATE,
    CARD_CREATE,
    ENTRY_CREATE,
    WRITES,
    Effect,
    JsonObject,
    Lookup,
    WriteOperation,
    alike,
)

_NUMBER = "source_id"
_SOURCE = ("source_name", _NUMBER)
_AT = "date_at"
_PLATE = "plate"
_NEVER_SHOWN = frozenset({"pin"})
"""Fields that central accepts and need not show again."""

CREATES: Final[Mapping[str, WriteOperation]] = MappingProxyType(
    {item.kind: item for item in WRITES.values() if item.effect is Effect.CREATE}
)
"""The operation that creates a record, by the record's kind."""
_SOURCE_ID: Final = "source_id"
_WITH_SOURCE: Final = frozenset({CAMERA_EVENT_CREATE.kind, ENTRY_CREATE.kind})
_WHOSE: Final = ("username", "holder_name")
"""A card whose number and plate were changed is still the card of its holder."""


class RecordMatch(Enum):
    """Result of the comparison."""

    SAME = "it is that record"
    PERHAPS = "it may be that record"
    OTHER = "it is another one"


def match_record(lookup: Lookup, sent: JsonObject, record: JsonObject, *, newer: bool | None) -> RecordMatch:
    """Judge whether a record at central is the one that was sent.

    Args:
        lookup: the list of such records; its `marks` are the fields by which one is told from others.
        sent: the body that was sent.
        record: a record of central, as its list shows it.
        newer: whether the record's id is above all that central had given before the body was sent; None when nobody
            knows.
    """
    stated, shown = _stated(sent), _stated(record)
    if _NUMBER in stated and _NUMBER in shown:
        return _by_source(stated, shown, newer=newer)
    compared = stated.keys() & shown.keys()
    differs = any(not alike(stated[name], shown[name]) for name in compared)
    lacks = bool(stated.keys() - shown.keys() - _NEVER_SHOWN)
    if newer is False:
        return RecordMatch.OTHER if differs or lacks else RecordMatch.PERHAPS
    marks = tuple(group for group in lookup.marks if stated.keys() >= set(group))
    if not differs and not lacks and compared:
        return RecordMatch.SAME
    if not any(name in shown for group in marks for name in group):
        return RecordMatch.PERHAPS  # it shows no field by which it could be told from others
    told = any(all(name in shown and alike(stated[name], shown[name]) for name in group) for group in marks)
    if not told or _other_vehicle(stated, shown):
        return RecordMatch.OTHER
    return RecordMatch.SAME if newer and not differs else RecordMatch.PERHAPS


def _by_source(stated: Mapping[str, JsonValue], shown: Mapping[str, JsonValue], *, newer: bool | None) -> RecordMatch:
    """Judge by the source, and by the time if in doubt: a data folder restored from a backup repeats numbers."""
    if not all(alike(stated.get(name), shown.get(name)) for name in _SOURCE):
        return RecordMatch.OTHER
    if newer or (_AT in stated and _AT in shown and alike(stated[_AT], shown[_AT])):
        return RecordMatch.SAME
    return RecordMatch.PERHAPS if newer is None else RecordMatch.OTHER


def _other_vehicle(stated: Mapping[str, JsonValue], shown: Mapping[str, JsonValue]) -> bool:
    """Return whether both have a plate and the plates differ."""
    one, other = stated.get(_PLATE), shown.get(_PLATE)
    return isinstance(one, str) and isinstance(other, str) and plain_plate(one) != plain_plate(other)


def _stated(record: JsonObject) -> dict[str, JsonValue]:
    return {name: value for name, value in record.items() if name != "id" and value not in (None, "")}


def marks_of(kind: str, body: JsonObject) -> JsonObject:
    """Return the fields of a body by which a record of this kind is told from others."""
    groups = _groups(kind)
    names = {name for group in groups for name in group} | ({_SOURCE_ID} if kind in _WITH_SOURCE else set())
    return {name: body[name] for name in names if body.get(name) not in (None, "")}


def is_still(kind: str, marks: JsonObject, record: JsonObject, *, names_sources: bool = False) -> bool:
    """Return whether central's record is still the one with these marks. A record without any mark counts as the same.

    A record with another `source_id` is another record, however alike the other fields are. `names_sources`: central
    tells the `source_id` of records that have one, so that a record without any mark is another one too.
    """
    source = record.get(_SOURCE_ID) if _SOURCE_ID in marks else None
    if source not in (None, "") and not alike(marks[_SOURCE_ID], source):
        return False
    shown = [
        group
        for group in _groups(kind)
        if all(name in marks for name in group) and all(record.get(name) not in (None, "") for name in group)
    ]
    if not shown:
        return source not in (None, "") or not (names_sources and _SOURCE_ID in marks)
    return any(all(alike(marks[name], record[name]) for name in group) for group in shown)


def names_source(record: JsonObject) -> bool:
    """Return whether central tells the `source_id` of this record."""
    return record.get(_SOURCE_ID) not in (None, "")


def lookup_of(kind: str) -> Lookup:
    """Return the list of central that shows records of this kind. Raises ValueError if there is none."""
    lookup = CREATES[kind].lookup
    if lookup is None:
        raise ValueError(f"no list shows records of the kind {kind!r}")
    return lookup


def _groups(kind: str) -> tuple[tuple[str, ...], ...]:
    own = tuple((name,) for name in _WHOSE) if kind == CARD_CREATE.kind else ()
    return (*lookup_of(kind).marks, *own)
