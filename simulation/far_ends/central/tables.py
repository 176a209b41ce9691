"""Tables of the simulated central, and their snapshot on disk."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from gateway.domain.errors import ConfigError
from simulation.far_ends.central.answers import JsonObject
from simulation.far_ends.central.records import Table


class _Snapshot(BaseModel):
    model_config = ConfigDict(extra="forbid")

    devices: list[JsonObject] = []
    cards: list[JsonObject] = []
    cameras: list[JsonObject] = []
    events: list[JsonObject] = []
    camera_events: list[JsonObject] = []
    entries: list[JsonObject] = []


class Tables:
    """All records.

    Attributes:
        page_cap: the greatest number of records in a page, even when more are asked for.
        shift: the number of records by which pages after the first are misplaced at present.
    """

    def __init__(self, *, page_cap: int = 500) -> None:
        self.page_cap = page_cap
        self.shift = 0
        self.devices = Table(noun="device")
        self.cards = Table(noun="access card")
        self.cameras = Table(noun="camera")
        self.events = Table(noun="event", first_id=1000)
        self.camera_events = Table(noun="camera event", first_id=5000)
        self.entries = Table(noun="entry", first_id=7000)

    def load(self, path: Path) -> None:
        """Load the records of a snapshot; do nothing for a missing file. Raises ConfigError."""
        try:
            snapshot = _Snapshot.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return
        except (OSError, ValidationError) as error:
            raise ConfigError(f"snapshot {path} cannot be used: {error}") from error
        for name, table in self._by_name().items():
            for record in getattr(snapshot, name):
                table.put(record)

    def snapshot(self) -> bytes:
        """Return every record as JSON."""
        return json.dumps({name: list(table.values()) for name, table in self._by_name().items()}).encode()

    def _by_name(self) -> dict[str, Table]:
        return {
            "devices": self.devices,
            "cards": self.cards,
            "cameras": self.cameras,
            "events": self.events,
            "camera_events": self.camera_events,
            "entries": self.entries,
        }


def save(path: Path, snapshot: bytes) -> None:
    """Replace the file atomically: a reader sees the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".new")
    beside.write_bytes(snapshot)
    beside.replace(path)
