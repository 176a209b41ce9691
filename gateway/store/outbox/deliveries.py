"""Steps of a delivery within a transaction: delete the row, and store central's id and fields in its record."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.domain.events import Event, EventKind
from gateway.domain.writes import FIRST_PROVISIONAL_ID, WRITES, Effect, JsonObject
from gateway.runtime.clock import Stamp
from gateway.store.events.events import insert_event
from gateway.store.outbox.recent_writes import RecentWrites
from gateway.store.outbox.record_kinds import CAMERA_EVENTS, IDS, RECORD_KINDS, SiteIds
from gateway.store.outbox.rows import (
    OutboxRow,
    body_object,
    keep_centrals,
    outbox_rows,
    supersede,
    take_out,
)

_MADE_OF_FOOTAGE = ("camera_event", "create")


@dataclass(frozen=True, slots=True)
class Delivery:
    """A row that central took.

    Attributes:
        row: what was sent.
        central_id: the id that central gave to a new record, None when it does not say.
        record: central's own words of the record, None when it sent none.
    """

    row: OutboxRow
    central_id: int | None
    record: JsonObject | None = None


def deliver(
    connection: sqlite3.Connection,
    deliveries: Sequence[Delivery],
    *,
    recent: RecentWrites,
    now: int,
    trusted: bool = False,
) -> list[int]:
    """Take out and count rows that central has, unless they went already; return the ids that the site has now.

    Rows that wait for the same record go by its new id from then on. An id of central's belongs to the record that got
    it last; whichever had it before counts as not at central, which an event tells. `trusted`: so is the clock, at
    `now` (wall micros).
    """
    rows = [delivery.row for delivery in deliveries]
    there = _among(connection, "SELECT json_group_array(id) FROM outbox WHERE id", [row.id for row in rows])
    take_out(connection, there, "delivered")
    waiting = {
        kind: _among(
            connection,
            f"SELECT json_group_array(record_id) FROM outbox WHERE kind = '{kind}' AND record_id",
            [row.record_id for row in rows if row.kind == kind],
        )
        for kind in {row.kind for row in rows} & RECORD_KINDS.keys()
    }
    known, footage = [], list[Delivery]()
    for delivery in _with_ids_of_their_own(connection, deliveries, there, Stamp(now, trusted=trusted)):
        row = delivery.row
        if row.id not in there:
            known.append(row.record_id)
            continue
        alone = row.record_id not in waiting.get(row.kind, {row.record_id})
        if alone and (row.kind, row.action) == _MADE_OF_FOOTAGE:
            footage.append(delivery)
            known.append(row.record_id)
        else:
            known.append(_settle(connection, delivery, alone=alone, now=now))
        recent.note(row.kind, row.record_id, known[-1])
    _settle_together(connection, footage)
    _let_files_go(connection, [row.record_id for row in rows if (row.kind, row.action) == _MADE_OF_FOOTAGE])
    return known


def _among(connection: sqlite3.Connection, query: str, numbers: Sequence[int]) -> set[int]:
    """Return the numbers that a query finds, as one value: a thread waits for the interpreter at every row."""
    (found,) = connection.execute(f"{query} IN (SELECT value FROM json_each(?))", (json.dumps(numbers),)).fetchone()
    return set(json.loads(found))


def _settle_together(connection: sqlite3.Connection, deliveries: Sequence[Delivery]) -> None:
    """Settle new camera events of which nothing else waits: most of a backlog."""
    given = {item.row.record_id: item.central_id for item in deliveries if item.central_id is not None}
    records = {item.row.record_id: item.record for item in deliveries if item.record is not None}
    if given:
        CAMERA_EVENTS.learn_together(connection, given)
    if records:
        CAMERA_EVENTS.put_together(connection, records)


def _with_ids_of_their_own(
    connection: sqlite3.Connection, deliveries: Sequence[Delivery], there: set[int], at: Stamp
) -> Sequence[Delivery]:
    """Give an id that several records got to the last one, before any that had it until now; return what counts."""
    named = [
        (place, item.row, item.central_id)
        for place, item in enumerate(deliveries)
        if item.central_id is not None and item.row.id in there and _made_here(item.row)
    ]
    owners = {
        kind: IDS[kind].owners(connection, [central_id for _, row, central_id in named if row.kind == kind])
        for kind in {row.kind for _, row, _ in named}
    }
    counting, last = list(deliveries), dict[tuple[str, int], int]()
    for place, row, central_id in named:
        before = last.get((row.kind, central_id))
        if before is not None:
            counting[before] = replace(counting[before], central_id=None, record=None)
            had: int | None = counting[before].row.record_id
        else:
            had = owners[row.kind].get(central_id)
        last[row.kind, central_id] = place
        if had is not None and had != row.record_id:
            take_id_from(connection, row.kind, had, central_id, to=row.record_id, at=at)
    return counting


def _made_here(row: OutboxRow) -> bool:
    """Return whether a row creates a record that has an id of the site's."""
    operation = WRITES.get((row.kind, row.action))
    creates = operation is not None and operation.effect is Effect.CREATE and row.kind in IDS
    return creates and row.record_id >= FIRST_PROVISIONAL_ID


def take_id_from(
    connection: sqlite3.Connection, kind: str, record_id: int, central_id: int, *, to: int, at: Stamp
) -> None:
    """Note, with an event, that central gave the id of this record to another one. Within a transaction.

    Where the site knows records by central's ids, what waited under this one must not reach the other record.
    """
    ids = IDS[kind]
    if isinstance(ids, SiteIds):
        take_out(connection, (row.id for row in outbox_rows(connection, kind, central_id)), "dropped")
    ids.disown(connection, record_id, central_id)
    noun = kind.replace("_", " ")
    text = (
        f"central gave {noun} {to} the id {central_id}, which {noun} {record_id} had: central may have been set back to"
        f" an older state. {noun} {record_id} now counts as not at central"
    )
    event = Event(
        kind=EventKind.ID_GIVEN_TWICE,
        date_at=at.micros,
        clock_trusted=at.trusted,
        description=text,
        data={"kind": kind, "record_id": to, "central_id": central_id, "had_by": record_id},
    )
    insert_event(connection, event)


def _settle(connection: sqlite3.Connection, delivery: Delivery, *, alone: bool, now: int) -> int:
    """Settle the record of a delivered row. `alone`: nothing else waits of the record."""
    row, record = delivery.row, delivery.record
    operation = WRITES.get((row.kind, row.action))
    creates = operation is None or operation.effect is Effect.CREATE
    deletes = operation is not None and operation.effect is Effect.DELETE
    known, ids = row.record_id, IDS.get(row.kind)
    if delivery.central_id is not None and creates and ids is not None:
        known = ids.learn(connection, row.record_id, delivery.central_id)
        if known != row.record_id:
            connection.execute(
                "UPDATE outbox SET record_id = ? WHERE kind = ? AND record_id = ?", (known, row.kind, row.record_id)
            )
    others = () if alone and known == row.record_id else outbox_rows(connection, row.kind, known)
    if deletes:
        take_out(connection, (item.id for item in others), "replaced")
    elif others:
        supersede(connection, row.kind, known, body_object(row.body) or {}, before=row.id)
    keeper = RECORD_KINDS.get(row.kind)
    if record is not None and keeper is not None and not deletes:
        kept = keeper.get(connection, known) or {}  # an answer may hold less than that
        whole = {**kept, **record}
        if others:
            keep_centrals(connection, row.kind, known, whole, now=now)
        else:
            keeper.put(connection, known, whole, now=now)
    return known


def _let_files_go(connection: sqlite3.Connection, camera_event_ids: Sequence[int]) -> None:
    """Make the files of a camera event due: the tries while they waited for it say nothing."""
    if not camera_event_ids:
        return
    connection.execute(
        "UPDATE outbox INDEXED BY outbox_by_record SET next_at = 0"
        " WHERE kind = 'evidence' AND parked = 0 AND next_at > 0 AND record_id IN"
        " (SELECT id FROM evidence WHERE camera_event_id IN (SELECT value FROM json_each(?)))",
        (json.dumps(camera_event_ids),),
    )
