"""Code that the records of several families share."""

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
    """Return which records central never gets, among the `unknown` ones, which have no id of central yet.

    Those with writes in `waiting`, and those that are on their way to central, are left out.
    """
    doubted = [number for number in unknown if not waiting.get(number)]
    return await pending.site_only(kind, doubted) if doubted else frozenset()


def sync_state(waiting: Sequence[WaitingWrite], *, site_only: bool = False) -> Record:
    """Return the fields `sync` and `sync_error`, which compare a record at the site with central's.

    `sync` is `in_step`; `waiting`; `refused`, with central's reason in `sync_error`; or `site_only`: central never gets
    the record.
    """
    refused = next((write.refused for write in waiting if write.refused), "")
    if refused:
        return {"sync": "refused", "sync_error": refused}
    return {"sync": "waiting" if waiting else "site_only" if site_only else "in_step"}


def central_record(known: KnownRecord) -> Record:
    """Return central's record; an empty one if there is none."""
    record = json.loads(known.record)
    return record if isinstance(record, dict) else {}


def text_of(record: Record, name: str) -> str:
    """Return a field that is text, else ""."""
    value = record.get(name)
    return value if isinstance(value, str) else ""
