"""Parts that records of several families share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from pydantic import JsonValue

from gateway.domain.writes import WaitingWrite
from gateway.store import KnownRecord
from gateway.store.outbox.pending_writes import PendingWrites

Record = dict[str, JsonValue]


async def site_only_among(
    pending: PendingWrites, kind: str, unknown: Iterable[int], waiting: Mapping[int, object]
) -> frozenset[int]:
    """Return the records without an id of central's that central never gets; the others are on their way."""
    doubted = [number for number in unknown if not waiting.get(number)]
    return await pending.site_only(kind, doubted) if doubted else frozenset()


def sync_state(waiting: Sequence[WaitingWrite], *, site_only: bool = False) -> Record:
    """Compare a record at the site with central's.

    `in_step`, `waiting`, `refused` with central's words, or `site_only`: central never gets it.
    """
    refused = next((write.refused for write in waiting if write.refused), "")
    if refused:
        return {"sync": "refused", "sync_error": refused}
    return {"sync": "waiting" if waiting else "site_only" if site_only else "in_step"}


def central_record(known: KnownRecord) -> Record:
    """Return central's record; an empty one where there is none."""
    record = json.loads(known.record)
    return record if isinstance(record, dict) else {}


def text_of(record: Record, name: str) -> str:
    """Return a field that is text, else ""."""
    value = record.get(name)
    return value if isinstance(value, str) else ""
