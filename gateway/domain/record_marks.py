"""Marks of records: the fields that show whether central's record under an id is still the same record. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

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

CREATES: Final[Mapping[str, WriteOperation]] = MappingProxyType(
    {item.kind: item for item in WRITES.values() if item.effect is Effect.CREATE}
)
"""The operation that creates a record, by the record's kind."""
_SOURCE: Final = "source_id"
_WITH_SOURCE: Final = frozenset({CAMERA_EVENT_CREATE.kind, ENTRY_CREATE.kind})
_WHOSE: Final = ("username", "holder_name")
"""A card whose number and plate were changed is still the card of its holder."""


def marks_of(kind: str, body: JsonObject) -> JsonObject:
    """Return the fields of a body by which a record of this kind is told from others."""
    groups = _groups(kind)
    names = {name for group in groups for name in group} | ({_SOURCE} if kind in _WITH_SOURCE else set())
    return {name: body[name] for name in names if body.get(name) not in (None, "")}


def is_still(kind: str, marks: JsonObject, record: JsonObject, *, names_sources: bool = False) -> bool:
    """Return whether central's record is still the one with these marks. A record without any mark counts as the same.

    A record with another `source_id` is another record, however alike the other fields are. `names_sources`: central
    tells the `source_id` of records that have one, so that a record without any mark is another one too.
    """
    source = record.get(_SOURCE) if _SOURCE in marks else None
    if source not in (None, "") and not alike(marks[_SOURCE], source):
        return False
    shown = [
        group
        for group in _groups(kind)
        if all(name in marks for name in group) and all(record.get(name) not in (None, "") for name in group)
    ]
    if not shown:
        return source not in (None, "") or not (names_sources and _SOURCE in marks)
    return any(all(alike(marks[name], record[name]) for name in group) for group in shown)


def names_source(record: JsonObject) -> bool:
    """Return whether central tells the `source_id` of this record."""
    return record.get(_SOURCE) not in (None, "")


def lookup_of(kind: str) -> Lookup:
    """Return the list of central that shows records of this kind. Raises ValueError if there is none."""
    lookup = CREATES[kind].lookup
    if lookup is None:
        raise ValueError(f"no list shows records of the kind {kind!r}")
    return lookup


def _groups(kind: str) -> tuple[tuple[str, ...], ...]:
    own = tuple((name,) for name in _WHOSE) if kind == CARD_CREATE.kind else ()
    return (*lookup_of(kind).marks, *own)
