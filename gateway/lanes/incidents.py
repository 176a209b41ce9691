"""Incidents: the lane's last two minutes, saved as a file at each alarm and when somebody asks.

The file is gzipped JSON. Each value carries the name of its class, so that it is read back as it was. What was typed at
a keypad is secret: each of its digits is written as 0, in events, states and commands.
"""

from __future__ import annotations

import asyncio
import gzip
import importlib
import json
import math
import os
import re
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Protocol, TypeGuard, runtime_checkable

import structlog
from pydantic import BaseModel, ValidationError

from gateway.domain.errors import ConfigError, NotFoundError, StoreError
from gateway.lanes.machine.messages import Now
from gateway.lanes.machine.rules import LaneRules
from gateway.lanes.machine.state.lane import LaneState
from gateway.lanes.tape import Incident, TapedStep
from gateway.runtime.clock import Clock, iso_utc
from gateway.texts import text

log = structlog.get_logger(__name__)

ENDING = ".incident"
AFTER_SECONDS = 5.0
"""How long after an alarm the tape is saved, so that the file also shows what followed."""
_EACH_SECONDS = 60.0
"""The shortest time between two files of the same lane that alarms cause."""
MOST_FILES = 100
_MODE = 0o640

_CLASS = "class"
_OURS = re.compile(r"^(gateway|drivers)(\.[a-z_]+)+$")
_SECRET_NAMES = frozenset({"pin", "keys"})


@dataclass(frozen=True, slots=True)
class SavedIncident:
    """A file of an incident: its name, which holds its time and lane, and its size in bytes."""

    name: str
    size: int


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


class Incidents:
    """The folder of incident files. It keeps the newest hundred."""

    def __init__(self, *, folder: Path, clock: Clock, incident: Callable[[str], Incident]) -> None:
        """`incident` returns a lane's tape by the lane's id, and raises NotFoundError if there is none."""
        self._folder = folder
        self._clock = clock
        self._incident = incident
        self._due: dict[str, float] = {}
        self._saved_at: dict[str, float] = {}
        self._woken = asyncio.Event()

    def alarm(self, lane_id: str) -> None:
        """Have `run` save a lane's tape in `AFTER_SECONDS`; at most once a minute for each lane."""
        now = self._clock.monotonic()
        if lane_id not in self._due and now >= self._saved_at.get(lane_id, float("-inf")) + _EACH_SECONDS:
            self._due[lane_id] = now + AFTER_SECONDS
            self._woken.set()

    async def run(self) -> None:
        """Save tapes as they fall due, until cancelled. A disk error is only logged, and a lane that is gone too."""
        while True:
            now = self._clock.monotonic()
            for lane_id in [lane_id for lane_id, at in self._due.items() if at <= now]:
                del self._due[lane_id]
                self._saved_at[lane_id] = now
                try:
                    await self.save(lane_id)
                except (StoreError, NotFoundError) as error:
                    log.warning("incident_not_saved", lane=lane_id, error=str(error))
            self._woken.clear()
            wait = min(self._due.values(), default=now + _EACH_SECONDS) - self._clock.monotonic()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.05, wait)):
                    await self._woken.wait()

    async def save(self, lane_id: str) -> SavedIncident:
        """Save a lane's tape now. Raises NotFoundError if there is none, StoreError if it cannot be written."""
        incident = self._incident(lane_id)
        moment = iso_utc(self._clock.wall().micros).replace(":", "-")
        return await asyncio.to_thread(self._write, f"{moment}_{lane_id}{ENDING}", incident)

    async def saved(self) -> tuple[SavedIncident, ...]:
        """Return the files, the newest first."""
        return await asyncio.to_thread(self._files)

    def path_of(self, name: str) -> Path:
        """Return the path of a file that `saved` names. Raises NotFoundError for any other name."""
        path = self._folder / name
        if path.name != name or not name.endswith(ENDING) or not path.is_file():
            raise NotFoundError(text("refused.incident_unknown", incident=repr(name)))
        return path

    def _files(self) -> tuple[SavedIncident, ...]:
        found = sorted(self._folder.glob(f"*{ENDING}"), reverse=True)
        return tuple(SavedIncident(path.name, path.stat().st_size) for path in found)

    def _write(self, name: str, incident: Incident) -> SavedIncident:
        content = incident_file(incident)
        try:
            self._folder.mkdir(mode=0o750, exist_ok=True)
            unfinished = self._folder / f"{name}.new"
            with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _MODE), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(self._folder / name)
            for old in self._files()[MOST_FILES:]:
                (self._folder / old.name).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(text("refused.incident_unwritten", why=str(error.strerror))) from error
        return SavedIncident(name, len(content))
