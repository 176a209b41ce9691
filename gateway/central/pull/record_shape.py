"""Where records of one shape hold what cards are made of: found out once, instead of for every record. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import JsonValue

from gateway.central.client.answers import JsonObject


class Place(NamedTuple):
    """Where a value may be: a field's name, and the way into the object that it holds."""

    name: str
    field: str
    inside: tuple[str, ...]


Places = tuple[Place, ...]


class Shape(NamedTuple):
    """Of each of the map's fields the places that records of one shape have."""

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
    """The shape of records with these fields. `names` are the map's for each of the card's fields."""

    def places(stated: tuple[str, ...]) -> Places:
        ways = (Place(name, *_way(name)) for name in stated)
        return tuple(place for place in ways if place.field in there)

    return Shape._make(places(names[name]) for name in Shape._fields)


def _way(name: str) -> tuple[str, tuple[str, ...]]:
    field, *inside = name.split(".")
    return field, tuple(inside)


def stated(record: JsonObject, places: Places) -> list[tuple[str, JsonValue]]:
    """Those of these fields that say anything, with what they say."""
    found: list[tuple[str, JsonValue]] = []
    for name, field, inside in places:
        value = _inside(record[field], inside) if inside else record[field]
        if value is not None and value != "":
            found.append((name, value))
    return found


def first(record: JsonObject, places: Places) -> JsonValue:
    """The first of these fields that says anything; an empty list does not."""
    for _, field, inside in places:
        value = _inside(record[field], inside) if inside else record[field]
        if value is not None and value not in ("", []):
            return value
    return None


def _inside(value: JsonValue, way: tuple[str, ...]) -> JsonValue:
    for part in way:
        value = value.get(part) if isinstance(value, dict) else None
    return value
