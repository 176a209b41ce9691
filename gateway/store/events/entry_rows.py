"""Parking entries as rows: a passage makes or closes one, within the transaction that records the passage.

An exit closes the newest open entry of the same card in the same area; failing that, of the same reading; failing
that, of the same plate. If a vehicle with an open entry enters again, the new entry supersedes the open one.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.domain.passages import LONGEST_STAY, EntryStatus, Passage, PassageOutcome
from gateway.domain.writes import JsonObject, source_id
from gateway.runtime.clock import iso_utc
from gateway.store.outbox.rows import insert_outbox

_WENT_THROUGH = frozenset({PassageOutcome.PASSED, PassageOutcome.UNAUTHORISED})
_KIND = "entry"


@dataclass(frozen=True, slots=True)
class Gone:
    """A passage and its place.

    Attributes:
        passage: the passage.
        passage_id: the id of its row.
        device_id: the lane's gate.
        area: the area that the vehicle entered or left; "" for none.
        box: the number of the box that recorded the passage.
    """

    passage: Passage
    passage_id: int
    device_id: int
    area: str
    box: int


def record_entry(connection: sqlite3.Connection, gone: Gone, *, sends: str | None) -> None:
    """Make or close parking entries after a passage, with their outbox rows.

    `sends`: the site's name if there is a central, else None, and no outbox rows are made.
    """
    if gone.passage.outcome not in _WENT_THROUGH:
        return
    if gone.passage.direction == "exit":
        _leave(connection, gone, sends)
    else:
        _come(connection, gone, sends)


def _come(connection: sqlite3.Connection, gone: Gone, sends: str | None) -> None:
    for earlier in _open_ones(connection, gone):
        connection.execute("UPDATE parking_entry SET status = 'superseded' WHERE id = ?", (earlier,))
        _tell(connection, gone, earlier, {"status": EntryStatus.SUPERSEDED.value}, sends, action="update")
    passage = gone.passage
    made = _insert(connection, gone, EntryStatus.OPEN, entry_at=passage.ended_at, exit_at=None)
    _tell_new(connection, gone, made, sends)


def _leave(connection: sqlite3.Connection, gone: Gone, sends: str | None) -> None:
    passage = gone.passage
    found = next(_open_ones(connection, gone), None)
    if found is None:
        made = _insert(connection, gone, EntryStatus.EXIT_ONLY, entry_at=None, exit_at=passage.ended_at)
        _tell_new(connection, gone, made, sends)
        return
    connection.execute(
        "UPDATE parking_entry SET status = 'closed', exit_at = ?, exit_device_id = ?, exit_lane = ?, exit_passage = ?,"
        " clock_trusted = min(clock_trusted, ?) WHERE id = ?",
        (passage.ended_at, gone.device_id, passage.lane_id, gone.passage_id, passage.clock_trusted, found),
    )
    body: JsonObject = {
        "status": EntryStatus.CLOSED.value,
        "exit_at": iso_utc(passage.ended_at),
        "exit_device_id": gone.device_id,
        "exit_lane": passage.lane_id,
    }
    _tell(connection, gone, found, body, sends, action="update")


def _open_ones(connection: sqlite3.Connection, gone: Gone) -> Iterator[int]:
    """Yield the ids of open entries of the passing vehicle, the likeliest first, each once."""
    passage, seen = gone.passage, set[int]()
    keys = (("card_id", passage.card_id), ("credential", passage.credential), ("plate", passage.plate))
    for column, value in keys:
        if value is None or value == "":
            continue
        rows = connection.execute(
            f"SELECT id FROM parking_entry INDEXED BY parking_entry_open_{column.removesuffix('_id')}"
            f" WHERE status = 'open' AND {column} = ? AND entry_at >= ? AND (area = ? OR area = '')"
            " ORDER BY entry_at DESC, id DESC",
            (value, passage.ended_at - LONGEST_STAY, gone.area),
        ).fetchall()
        for (number,) in rows:
            if number not in seen:
                seen.add(number)
                yield number


def _insert(
    connection: sqlite3.Connection, gone: Gone, status: EntryStatus, *, entry_at: int | None, exit_at: int | None
) -> int:
    passage, came = gone.passage, entry_at is not None
    cursor = connection.execute(
        "INSERT INTO parking_entry (status, entry_at, exit_at, at, entry_device_id, exit_device_id, entry_lane,"
        " exit_lane, area, card_id, credential, plate, manual, clock_trusted, entry_passage, exit_passage, box)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?)",
        (
            status.value,
            entry_at,
            exit_at,
            passage.ended_at,
            gone.device_id if came else None,
            None if came else gone.device_id,
            passage.lane_id if came else "",
            "" if came else passage.lane_id,
            gone.area,
            passage.card_id,
            passage.credential,
            passage.plate,
            passage.clock_trusted,
            gone.passage_id if came else None,
            None if came else gone.passage_id,
            gone.box,
        ),
    )
    return int(cursor.lastrowid or 0)


def entry_bodies(row: Mapping[str, Any], *, site_name: str) -> tuple[JsonObject, tuple[JsonObject, ...]]:
    """Build the body that creates an entry at central, and the bodies of updates that must follow.

    `row`: all columns of the entry by their names.
    """
    is_exit = row["entry_at"] is None
    passage = row["exit_passage"] if is_exit else row["entry_passage"]
    body: JsonObject = {
        "device_id": row["exit_device_id"] if is_exit else row["entry_device_id"],
        "type": "exit" if is_exit else "entry",
        "date_at": iso_utc(row["exit_at"] if is_exit else row["entry_at"]),
        "plate": row["plate"],
        "credential": row["credential"],
        "lane": row["exit_lane"] if is_exit else row["entry_lane"],
        "area": row["area"],
        "clock_trusted": bool(row["clock_trusted"]),
    }
    if row["card_id"] is not None and row["card_id"] > 0:
        body["access_id"] = row["card_id"]
    if passage is not None:
        body |= _source(site_name, row["box"], passage)
    said = json.loads(row["record"])
    body |= {name: said[name] for name in ("note", "data") if said.get(name)}
    if is_exit or row["status"] == EntryStatus.OPEN:
        return body, ()
    change: JsonObject = {"status": row["status"]}
    if row["exit_at"] is not None:
        change |= {
            "exit_at": iso_utc(row["exit_at"]),
            "exit_device_id": row["exit_device_id"],
            "exit_lane": row["exit_lane"],
        }
    return body, (change,)


def _source(site_name: str, box: int, passage_id: int) -> JsonObject:
    """Build the fields that identify an entry's passage at central."""
    return {"source_name": site_name, "source_id": source_id(box, passage_id)}


def _tell_new(connection: sqlite3.Connection, gone: Gone, entry_id: int, sends: str | None) -> None:
    if sends is not None:
        cursor = connection.execute("SELECT * FROM parking_entry WHERE id = ?", (entry_id,))
        names = [column[0] for column in cursor.description]
        body, _ = entry_bodies(dict(zip(names, cursor.fetchone(), strict=True)), site_name=sends)
        _tell(connection, gone, entry_id, body, sends, action="create")


def _tell(
    connection: sqlite3.Connection, gone: Gone, entry_id: int, body: JsonObject, sends: str | None, *, action: str
) -> None:
    if sends is not None:
        insert_outbox(
            connection,
            kind=_KIND,
            record_id=entry_id,
            action=action,
            body=json.dumps(body, separators=(",", ":"), ensure_ascii=False),
            now=gone.passage.ended_at,
        )
