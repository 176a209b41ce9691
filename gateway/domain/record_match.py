"""Comparison of a record at central with one that was sent and whose answer was lost. Pure.

Records of some kinds name their source (`source_name`, `source_id`): then the source decides, otherwise the other
fields. If these leave a doubt, a person decides: if the record is sent again, it may be at central twice; if another
record is taken for it, it is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from pydantic import JsonValue

from drivers.plate_text import plain_plate
from gateway.domain.writes import JsonObject, Lookup, alike

_NUMBER = "source_id"
_SOURCE = ("source_name", _NUMBER)
_AT = "date_at"
_PLATE = "plate"
_NEVER_SHOWN = frozenset({"pin"})
"""Fields that central accepts and need not show again."""


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
