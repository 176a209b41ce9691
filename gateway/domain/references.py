"""References between records, and their ids at central. Pure.

The site gives its own ids to records that central does not have yet. Central must never see such an id: each field of
`REFERENCES` is translated when a write is sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pydantic import JsonValue

from gateway.domain.writes import FIRST_PROVISIONAL_ID, JsonObject

_FIELDS_OF_A_KIND: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "access_card": ("access_id", "access_card_id", "card_id"),
        "device": ("device_id", "entry_device_id", "exit_device_id"),
        "camera": ("camera_id",),
        "camera_event": ("camera_event_id",),
        "entry": ("entry_id", "parking_entry_id"),
    }
)

REFERENCES: Final[Mapping[str, str]] = MappingProxyType(
    {name: kind for kind, fields in _FIELDS_OF_A_KIND.items() for field in fields for name in (field, f"{field}s")}
)
"""The kind of the record that a field names; a field in the plural names several."""

GIVEN_BY_CENTRAL: Final = frozenset({"user_id", "customer_id", "company_id", "owner_id", "guest_id"})
"""Fields that name records which only central creates, so their ids are always central's."""

OF_THE_SITE: Final = frozenset(
    {
        *("site_id", "central_id", "source_id", "source_event_id", "event_id", "event_ids", "evidence_id"),
        *("lane_id", "lane_ids", "exit_lane_id", "command_id", "outbox_id", "cursor_id", "link_id"),
    }
)
"""Fields whose ids have a meaning at the site only, or say where a record comes from."""

_NAMED = re.compile(rf'"(?:{"|".join(REFERENCES)})"\s*:\s*(?:\[[^\[\]]*?)?"?(?:[2-9]\d{{9}}|\d{{11}})')
_OPTIONAL: Final = frozenset({"access_card"})
"""Kinds whose reference is left out when central will never have the record: a passage counts without its card."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A field that names a record by the id that the site gave it."""

    field: str
    kind: str
    record_id: int

    @property
    def optional(self) -> bool:
        """True if a write may be sent without this reference."""
        return self.kind in _OPTIONAL

    def sentence(self) -> str:
        """Name the record, for people."""
        return f"{self.kind.replace('_', ' ')} {self.record_id}"


def may_name_provisional(text: str) -> bool:
    """Return whether JSON text may contain one of the site's ids. Fast; only False is certain."""
    return _NAMED.search(text) is not None


def provisional_references(body: JsonObject) -> tuple[Reference, ...]:
    """Return every record that a body names by one of the site's ids, each once."""
    return tuple(dict.fromkeys(_references(body)))


def translated(body: JsonObject, central_ids: Mapping[Reference, int]) -> JsonObject:
    """Return the body with central's ids in place of the site's. References without an id of central are left out."""
    return dict(_translated_fields(body, central_ids))


def _translated_fields(body: JsonObject, central_ids: Mapping[Reference, int]) -> Iterator[tuple[str, JsonValue]]:
    for name, value in body.items():
        kind = REFERENCES.get(name)
        if kind is None:
            yield name, _translated_value(value, central_ids)
        elif isinstance(value, list):
            items = (_translated_id(name, kind, item, central_ids) for item in value)
            yield name, [item for item in items if item is not None]
        elif (found := _translated_id(name, kind, value, central_ids)) is not None or value is None:
            yield name, found


def _translated_value(value: JsonValue, central_ids: Mapping[Reference, int]) -> JsonValue:
    if isinstance(value, dict):
        return translated(value, central_ids)
    if isinstance(value, list):
        return [_translated_value(item, central_ids) for item in value]
    return value


def _translated_id(name: str, kind: str, value: JsonValue, central_ids: Mapping[Reference, int]) -> JsonValue:
    """Return central's id in the type of the value; None when central lacks the record."""
    number = _provisional(value)
    if number is None:
        return value
    known = central_ids.get(Reference(name, kind, number))
    return known if known is None or not isinstance(value, str) else str(known)


def _references(value: JsonValue) -> Iterator[Reference]:
    if isinstance(value, list):
        for item in value:
            yield from _references(item)
    elif isinstance(value, dict):
        for name, part in value.items():
            kind = REFERENCES.get(name)
            if kind is None:
                yield from _references(part)
                continue
            for item in part if isinstance(part, list) else [part]:
                if (number := _provisional(item)) is not None:
                    yield Reference(name, kind, number)


def _provisional(value: JsonValue) -> int | None:
    """Return the value if it is one of the site's ids, else None."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 18:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if FIRST_PROVISIONAL_ID <= value < 2**63 else None
