"""Code that the records of several families share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from pydantic import JsonValue

from gateway.domain.writes import WaitingWrite
from gateway.store import KnownRecord
from gateway.store.outbox.pending_writes import PendingWrites

Record = dict[str, JsonValue]


Standing = Literal["in_step", "site_only", "in_doubt"]
"""State at central of a record of which nothing waits: it is there as it is here, it never will be, or may be lost."""


async def standings(
    pending: PendingWrites,
    kind: str,
    records: Iterable[tuple[int, int | None]],
    waiting: Mapping[int, object],
) -> Mapping[int, Standing]:
    """Return the standing of these records by their ids at the site; `in_step` ones are left out.

    `records`: the ids at the site, and those at central as far as it gave one. `waiting`: the writes that wait, by the
    site's ids.
    """
    known = tuple(records)
    given = {central_id: number for number, central_id in known if central_id is not None}
    unknown = [number for number, central_id in known if central_id is None and not waiting.get(number)]
    found: dict[int, Standing] = {}
    for number in await pending.site_only(kind, unknown) if unknown else ():
        found[number] = "site_only"
    for central_id in await pending.in_doubt(kind, given):
        found[given[central_id]] = "in_doubt"
    return found


def sync_state(waiting: Sequence[WaitingWrite], standing: Standing = "in_step") -> Record:
    """Return the fields `sync` and `sync_error`, which compare a record at the site with central's.

    `sync` is `waiting`; `refused`, with central's reason in `sync_error`; or else the `standing`.
    """
    refused = next((write.refused for write in waiting if write.refused), "")
    if refused:
        return {"sync": "refused", "sync_error": refused}
    return {"sync": "waiting" if waiting else standing}


def central_record(known: KnownRecord) -> Record:
    """Return central's record; an empty one if there is none."""
    record = json.loads(known.record)
    return record if isinstance(record, dict) else {}


def text_of(record: Record, name: str) -> str:
    """Return a field that is text, else ""."""
    value = record.get(name)
    return value if isinstance(value, str) else ""
