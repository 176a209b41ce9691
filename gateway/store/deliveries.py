"""What a delivery changes: the row goes, its record learns central's id and words. Steps within a transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.clock import Stamp
from gateway.domain.events import Event, EventKind
from gateway.domain.writes import FIRST_PROVISIONAL_ID, WRITES, Effect, JsonObject
from gateway.store.events import insert_event
from gateway.store.keepers import IDS, KEEPERS
from gateway.store.outbox_rows import (
    OutboxRow,
    body_object,
    keep_centrals,
    outbox_rows,
    supersede,
    take_out,
)
from gateway.store.recent import RecentWrites


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
    """Central has these: each row goes and is counted, unless it has gone already; the ids that the site has now.

    Rows that wait for the same record go by its new id from then on. An id of central's belongs to the record that got
    it last; whichever had it before counts as not at central, which an event tells. `trusted`: so is the clock, at
    `now` (wall micros).
    """
    rows = [delivery.row for delivery in deliveries]
    there = _among(connection, "SELECT id FROM outbox WHERE id IN", [row.id for row in rows])
    take_out(connection, there, "delivered")
    waiting = {
        kind: _among(
            connection,
            f"SELECT record_id FROM outbox WHERE kind = '{kind}' AND record_id IN",
            [row.record_id for row in rows if row.kind == kind],
        )
        for kind in {row.kind for row in rows} & KEEPERS.keys()
    }
    owners = _owners(connection, deliveries)
    known = []
    for delivery in deliveries:
        row = delivery.row
        if row.id in there:
            _pass_on(connection, delivery, owners.get(row.kind, {}), Stamp(now, trusted=trusted))
            alone = row.record_id not in waiting.get(row.kind, {row.record_id})
            known.append(_settle(connection, delivery, alone=alone, now=now))
            recent.note(row.kind, row.record_id, known[-1])
        else:
            known.append(row.record_id)
    _let_files_go(connection, [row.record_id for row in rows if (row.kind, row.action) == ("camera_event", "create")])
    return known


def _among(connection: sqlite3.Connection, query: str, numbers: Sequence[int]) -> set[int]:
    """What a query of numbers finds: one statement for all, because each gives way to the event loop and back."""
    places = ", ".join("?" * len(numbers))
    return {number for (number,) in connection.execute(f"{query} ({places})", numbers)}


def _owners(connection: sqlite3.Connection, deliveries: Sequence[Delivery]) -> dict[str, dict[int, int]]:
    """Which records of a kind have ids that central gives now."""
    given: dict[str, list[int]] = {}
    for delivery in deliveries:
        if delivery.central_id is not None and _made_here(delivery.row):
            given.setdefault(delivery.row.kind, []).append(delivery.central_id)
    return {kind: IDS[kind].owners(connection, numbers) for kind, numbers in given.items()}


def _made_here(row: OutboxRow) -> bool:
    operation = WRITES.get((row.kind, row.action))
    creates = operation is not None and operation.effect is Effect.CREATE
    return creates and row.kind in IDS and row.record_id >= FIRST_PROVISIONAL_ID


def _pass_on(connection: sqlite3.Connection, delivery: Delivery, owners: dict[int, int], at: Stamp) -> None:
    row, central_id = delivery.row, delivery.central_id
    if central_id is None or not _made_here(row):
        return
    had = owners.get(central_id, row.record_id)
    owners[central_id] = row.record_id
    if had != row.record_id:
        take_id_from(connection, row.kind, had, central_id, to=row.record_id, at=at)


def take_id_from(
    connection: sqlite3.Connection, kind: str, record_id: int, central_id: int, *, to: int, at: Stamp
) -> None:
    """The id that central gave to this record is another one's now, which is told. Within a transaction."""
    IDS[kind].disown(connection, record_id, central_id)
    text = (
        f"central gave {kind} {to} the id {central_id}, which {kind} {record_id} had: it may have been set back to an"
        f" older state. {kind} {record_id} counts as not at central"
    )
    told = Event(
        kind=EventKind.ID_GIVEN_TWICE,
        date_at=at.micros,
        clock_trusted=at.trusted,
        description=text,
        data={"kind": kind, "record_id": to, "central_id": central_id, "had_by": record_id},
    )
    insert_event(connection, told)


def _settle(connection: sqlite3.Connection, delivery: Delivery, *, alone: bool, now: int) -> int:
    """The record's side of it. `alone`: nothing else waits of the record."""
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
    keeper = KEEPERS.get(row.kind)
    if record is not None and keeper is not None and not deletes:
        kept = keeper.get(connection, known) or {}  # an answer may hold less than that
        whole = {**kept, **record}
        if others:
            keep_centrals(connection, row.kind, known, whole, now=now)
        else:
            keeper.put(connection, known, whole, now=now)
    return known


def _let_files_go(connection: sqlite3.Connection, camera_event_ids: Sequence[int]) -> None:
    """Files wait for their camera event; how often they have waited says nothing."""
    files = _among(connection, "SELECT id FROM exhibit WHERE camera_event_id IN", camera_event_ids)
    if files:
        places = ", ".join("?" * len(files))
        connection.execute(
            "UPDATE outbox SET next_at = 0 WHERE kind = 'evidence' AND parked = 0 AND next_at > 0"
            f" AND record_id IN ({places})",
            tuple(files),
        )
