"""Completion of a delivery: delete the outbox row and store central's id and fields in its record.

All its functions are steps within a running transaction.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.domain.events import Event, EventKind
from gateway.domain.writes import FIRST_PROVISIONAL_ID, WRITES, Effect, JsonObject, changed_by, record_name
from gateway.runtime.clock import Stamp
from gateway.store.events.events import insert_event
from gateway.store.outbox.record_kinds import CAMERA_EVENTS, RECORD_KINDS, SiteIds
from gateway.store.outbox.rows import (
    OutboxRow,
    body_object,
    keep_centrals,
    outbox_rows,
    supersede,
    take_out,
)
from gateway.texts import text

_MADE_OF_FOOTAGE = ("camera_event", "create")


@dataclass(frozen=True, slots=True)
class OutboxDelivery:
    """An outbox row that central accepted.

    Attributes:
        row: the row as it was sent.
        central_id: the id that central gave to a new record, None if it did not say.
        record: the record in central's answer, None if it had none.
    """

    row: OutboxRow
    central_id: int | None
    record: JsonObject | None = None


def deliver(
    connection: sqlite3.Connection,
    deliveries: Sequence[OutboxDelivery],
    *,
    recent: RecentWrites,
    now: int,
    trusted: bool = False,
) -> list[int]:
    """Delete and count delivered rows, and update their records; return the site's ids of the records from now on.

    Rows that were deleted already are ignored. Rows that wait for the same record get its new id. If central gives an
    id that another record here has, that record counts as not at central from now on, and an event tells of it.
    `now`: wall micros, `trusted`: whether the clock is.
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
    known, footage = [], list[OutboxDelivery]()
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
    """Return the numbers that a query finds. The query gives one value, because the thread waits for the interpreter
    lock at every row.
    """
    (found,) = connection.execute(f"{query} IN (SELECT value FROM json_each(?))", (json.dumps(numbers),)).fetchone()
    return set(json.loads(found))


def _settle_together(connection: sqlite3.Connection, deliveries: Sequence[OutboxDelivery]) -> None:
    """Complete many new camera events, most of a backlog, with few statements. No other rows of them may wait."""
    given = {item.row.record_id: item.central_id for item in deliveries if item.central_id is not None}
    records = {item.row.record_id: item.record for item in deliveries if item.record is not None}
    if given:
        CAMERA_EVENTS.learn_together(connection, given)
    if records:
        CAMERA_EVENTS.put_together(connection, records)


def _with_ids_of_their_own(
    connection: sqlite3.Connection, deliveries: Sequence[OutboxDelivery], there: set[int], at: Stamp
) -> Sequence[OutboxDelivery]:
    """Let only the last record keep an id that central gave to several; return the deliveries without the other ids.

    Records that had such an id before lose it too.
    """
    named = [
        (place, item.row, item.central_id)
        for place, item in enumerate(deliveries)
        if item.central_id is not None and item.row.id in there and _made_here(item.row)
    ]
    owners = {
        kind: RECORD_KINDS[kind].owners(connection, [central_id for _, row, central_id in named if row.kind == kind])
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
    """Return whether a row creates a record that has a provisional id."""
    operation = WRITES.get((row.kind, row.action))
    creates = operation is not None and operation.effect is Effect.CREATE and row.kind in RECORD_KINDS
    return creates and row.record_id >= FIRST_PROVISIONAL_ID


def take_id_from(
    connection: sqlite3.Connection, kind: str, record_id: int, central_id: int, *, to: int, at: Stamp
) -> None:
    """Take central's id from a record, because central gave it to the record `to`; record that as an event.

    For kinds that the site knows by central's ids, rows waiting under that id are dropped, so that they never reach the
    other record.
    """
    ids = RECORD_KINDS[kind]
    if isinstance(ids, SiteIds):
        take_out(connection, (row.id for row in outbox_rows(connection, kind, central_id)), "dropped")
    ids.disown(connection, record_id, central_id)
    said = text(
        "event.id_given_twice",
        record=record_name(kind, to),
        id=str(central_id),
        other=record_name(kind, record_id),
    )
    event = Event(
        kind=EventKind.ID_GIVEN_TWICE,
        date_at=at.micros,
        clock_trusted=at.trusted,
        text=said,
        data={"kind": kind, "record_id": to, "central_id": central_id, "had_by": record_id},
    )
    insert_event(connection, event)


def _settle(connection: sqlite3.Connection, delivery: OutboxDelivery, *, alone: bool, now: int) -> int:
    """Update the record of a delivered row; return its id at the site. `alone`: no other row of the record waits."""
    row, record = delivery.row, delivery.record
    operation = WRITES.get((row.kind, row.action))
    creates = operation is None or operation.effect is Effect.CREATE
    deletes = operation is not None and operation.effect is Effect.DELETE
    known, keeper = row.record_id, RECORD_KINDS.get(row.kind)
    if delivery.central_id is not None and creates and keeper is not None:
        known = keeper.learn(connection, row.record_id, delivery.central_id)
        if known != row.record_id:
            connection.execute(
                "UPDATE outbox SET record_id = ? WHERE kind = ? AND record_id = ?", (known, row.kind, row.record_id)
            )
    others = () if alone and known == row.record_id else outbox_rows(connection, row.kind, known)
    if deletes:
        take_out(connection, (item.id for item in others), "replaced")
    elif others:
        supersede(connection, row.kind, known, body_object(row.body) or {}, before=row.id)
    if keeper is not None and deletes:
        keeper.remove(connection, known)  # it is there still if a caller waits for the answer
    if keeper is not None and not deletes and (record is not None or not creates):
        # Central's answer may lack fields that the site has, and the site may lack a change whose caller waits.
        said = {} if creates else body_object(row.body) or {}
        kept = keeper.get(connection, known)
        if kept is None and record is None:
            return known
        whole = changed_by(kept or {}, said) | (record or {})
        if others:
            keep_centrals(connection, row.kind, known, whole, now=now)
        else:
            keeper.put(connection, known, whole, now=now)
    return known


def _let_files_go(connection: sqlite3.Connection, camera_event_ids: Sequence[int]) -> None:
    """Make the waiting files of these camera events due now, because they only waited for the camera events."""
    if not camera_event_ids:
        return
    connection.execute(
        "UPDATE outbox INDEXED BY outbox_by_record SET next_at = 0"
        " WHERE kind = 'evidence' AND parked = 0 AND next_at > 0 AND record_id IN"
        " (SELECT id FROM evidence WHERE camera_event_id IN (SELECT value FROM json_each(?)))",
        (json.dumps(camera_event_ids),),
    )


class RecentWrites:
    """Ids of records written at central during a pull, because the pull may bring older versions of them.

    They are kept by kind of record, from the beginning of one pull to the beginning of the next.

    Attributes:
        asked: the rows of the outbox whose callers send them and wait for the answer.
    """

    def __init__(self) -> None:
        self._ids: dict[str, set[int]] = {}
        self.asked: set[int] = set()

    def begin(self, kind: str) -> set[int]:
        """Begin a pull of a kind. The returned set grows as records of that kind are written."""
        self._ids[kind] = set()
        return self._ids[kind]

    def note(self, kind: str, *record_ids: int) -> None:
        """Add records that were just written at central."""
        self._ids.setdefault(kind, set()).update(record_ids)
