"""Incidents as gzipped JSON files. Each value carries the name of its class, so that it is read back as it was.

What was typed at a keypad is secret: each of its digits is written as 0, in events, states and commands.
"""

from __future__ import annotations

import gzip
import importlib
import json
import math
import re
import zlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Protocol, TypeGuard, runtime_checkable

from pydantic import BaseModel, ValidationError

from gateway.domain.errors import ConfigError
from gateway.lanes.machine.messages import Now
from gateway.lanes.machine.rules import LaneRules
from gateway.lanes.machine.state.lane import LaneState
from gateway.lanes.tape import Incident, TapedStep

_CLASS = "class"
_OURS = re.compile(r"^(gateway|drivers)(\.[a-z_]+)+$")
_SECRET_NAMES = frozenset({"pin", "keys"})


@runtime_checkable
class _NamedTuple(Protocol):
    """The method that a `typing.NamedTuple` has and a plain tuple lacks."""

    def _asdict(self) -> dict[str, Any]: ...


_LARGEST = 64 * 1024 * 1024


def incident_file(incident: Incident) -> bytes:
    """Return an incident as a file's content. Call it off the event loop: it takes some hundred milliseconds."""
    return gzip.compress(json.dumps(_plain(incident), separators=(",", ":")).encode(), mtime=0)


def read_incident(content: bytes) -> Incident:
    """Return the incident in a file's content. Raises ConfigError if it holds none, or one of another release."""
    try:
        unpacking = zlib.decompressobj(wbits=31)
        unpacked = unpacking.decompress(content, _LARGEST)
        if not unpacking.eof:
            raise ValueError("cut off, or larger than any incident")
        found = _read(json.loads(unpacked))
    except (
        *(zlib.error, ValueError, TypeError, KeyError, AttributeError, ImportError, ValidationError),
        *(OverflowError, RecursionError),
    ) as error:
        raise ConfigError("this is no incident of a lane, or one of another release") from error
    if not _is_incident(found):
        raise ConfigError("this is no incident of a lane")
    return found


def _is_incident(found: object) -> TypeGuard[Incident]:
    return (
        isinstance(found, Incident)
        and isinstance(found.rules, LaneRules)
        and isinstance(found.state, LaneState)
        and isinstance(found.steps, tuple)
        and all(isinstance(step, TapedStep) and isinstance(step.now, Now) for step in found.steps)
    )


def _plain(value: object, *, secret: bool = False) -> object:  # noqa: PLR0911 (one per form)
    match value:
        case Enum():
            return _named(value, value=value.value)
        case str():
            return re.sub(r"[0-9]", "0", value) if secret else value
        case bool() | int() | None:
            return value
        case float():
            return value if math.isfinite(value) else {_CLASS: "float", "value": str(value)}
        case bytes():
            return {_CLASS: "bytes", "value": value.hex()}
        case tuple() if isinstance(value, _NamedTuple):
            return _named(value, **{name: _plain(item) for name, item in value._asdict().items()})
        case tuple() | list():
            return [_plain(item, secret=secret) for item in value]
        case frozenset() | set():
            return {_CLASS: "frozenset", "items": [_plain(item) for item in value]}
        case Mapping():
            return {_CLASS: "mapping", "items": [[_plain(key), _plain(item)] for key, item in value.items()]}
        case BaseModel():
            return _named(value, value=value.model_dump(mode="json"))
        case _:
            return _named(
                value,
                **{
                    item.name: _plain(getattr(value, item.name), secret=item.name in _SECRET_NAMES)
                    for item in fields(value)  # type: ignore[arg-type]  # whatever else is in a state is a dataclass
                    if item.init
                },
            )


def _named(whose: object, **members: object) -> dict[str, object]:
    kind = type(whose)
    return {_CLASS: f"{kind.__module__}:{kind.__qualname__}", **members}


def _read(value: Any) -> Any:  # noqa: PLR0911 (one per form)
    if isinstance(value, list):
        return tuple(_read(item) for item in value)
    if not isinstance(value, dict):
        return value
    name = value[_CLASS]
    match name:
        case "float":
            return float(value["value"])
        case "bytes":
            return bytes.fromhex(value["value"])
        case "frozenset":
            return frozenset(_read(item) for item in value["items"])
        case "mapping":
            return {_read(key): _read(item) for key, item in value["items"]}
    kind = _class_of(name)
    if issubclass(kind, Enum):
        return kind(value["value"])
    if issubclass(kind, BaseModel):
        return kind.model_validate(value["value"])
    return kind(**{name: _read(item) for name, item in value.items() if name != _CLASS})


def _class_of(name: str) -> Any:
    """Return a value class of the gateway or its drivers by name.

    Raises ValueError for any other class: a file from outside must not choose what is called.
    """
    module, _, qualified = name.partition(":")
    if not _OURS.match(module):
        raise ValueError("not one of the gateway's classes")
    found: Any = importlib.import_module(module)
    for part in qualified.split("."):
        found = getattr(found, part)
    if not (isinstance(found, type) and (is_dataclass(found) or issubclass(found, Enum | BaseModel | _NamedTuple))):
        raise ValueError("not a class of values")
    return found
