"""Counts of a site's records at the simulated central, by the fields that identify each record.

The interface has no idempotency key, so a write that is sent twice is carried out twice. Camera events and entries are
the same if their source is (`source_name`, `source_id`); files, if their camera event and SHA-256 are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from simulation.far_ends.central.answers import JsonObject
from simulation.far_ends.central.records import Table
from simulation.far_ends.central.tables import Tables

Source = tuple[str, int]
"""The source of a record: the site's name, and the site's own id of the record."""
File = tuple[int, str]
"""Central's id of a camera event, and the SHA-256 of a file."""

_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class RecordCounts:
    """Central's ids of its records, by the fields that identify them. More than one id means a duplicate.

    Records without a source are left out.
    """

    camera_events: Mapping[Source, tuple[int, ...]]
    entries: Mapping[Source, tuple[int, ...]]
    evidence: Mapping[File, tuple[int, ...]]

    def doubles(self) -> tuple[str, ...]:
        """Return one sentence for each record that central holds more than once."""
        kinds = (("camera event", self.camera_events), ("entry", self.entries), ("evidence", self.evidence))
        return tuple(
            f"{kind} {same} is held {len(ids)} times: {', '.join(map(str, ids))}"
            for kind, held in kinds
            for same, ids in held.items()
            if len(ids) > 1
        )

    def as_json(self) -> JsonObject:
        """Return the number of records of each kind, and the duplicates."""
        return {
            "camera_events": len(self.camera_events),
            "entries": len(self.entries),
            "evidence": len(self.evidence),
            "doubles": [*self.doubles()],
        }


def record_counts(tables: Tables) -> RecordCounts:
    """Return the counts of this moment."""
    return RecordCounts(
        camera_events=_gathered(_sources(tables.camera_events)),
        entries=_gathered(_sources(tables.entries)),
        evidence=_gathered(_files(tables.camera_events)),
    )


def _sources(table: Table) -> Iterator[tuple[Source, int]]:
    for record_id, record in table.items():
        name, number = record.get("source_name"), record.get("source_id")
        if isinstance(name, str) and isinstance(number, int):
            yield (name, number), record_id


def _files(camera_events: Table) -> Iterator[tuple[File, int]]:
    for event_id, event in camera_events.items():
        evidence = event.get("evidence")
        for file in evidence if isinstance(evidence, list) else ():
            if isinstance(file, dict) and isinstance(number := file.get("id"), int):
                yield (event_id, str(file.get("sha256"))), number


def _gathered(found: Iterator[tuple[_Key, int]]) -> dict[_Key, tuple[int, ...]]:
    held: dict[_Key, tuple[int, ...]] = {}
    for same, record_id in found:
        held[same] = (*held.get(same, ()), record_id)
    return held
