"""A note of the highest ids in a file beside the database, so that ids of lost rows are never given again."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

from pydantic import TypeAdapter

SALVAGE_GAP = 1_000_000
"""How far ids jump after rows were lost, because unreadable rows may have used ids that far above the known ones."""

UNCLEAN_GAP = 10_000
"""How far ids jump after an unclean end: a disk that lied about a flush may have lost rows that were already sent."""

_NOTED = TypeAdapter(dict[str, int])


def ids_note(path: Path) -> Path:
    """Return the path of the note that goes with a database file."""
    return path.with_name(path.name + ".ids")


def note_ids(connection: sqlite3.Connection, path: Path) -> None:
    """Write the highest ids of all tables to the note, which is replaced as a whole or not at all."""
    reached = reached_ids(connection)
    if not reached:
        return
    note = ids_note(path)
    fresh = note.with_suffix(".new")
    with fresh.open("w") as file:
        json.dump(reached, file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(note)


def is_behind_note(connection: sqlite3.Connection, path: Path) -> bool:
    """Return whether the note has higher ids than the file: an older file was put in place, or rows were lost."""
    reached = reached_ids(connection)
    return any(noted > reached.get(table, 0) for table, noted in noted_ids(path).items())


def raise_ids(connection: sqlite3.Connection, path: Path, gap: int) -> None:
    """Make the ids of every table continue `gap` above the highest id in the file and in the note. Commits."""
    reached, noted = reached_ids(connection), noted_ids(path)
    tables = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%'"
    ).fetchall()
    connection.execute("BEGIN IMMEDIATE")
    try:
        for (table,) in tables:
            top = max(reached.get(table, 0), noted.get(table, 0)) + gap
            connection.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
            connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, top))
        connection.execute("COMMIT")
    except sqlite3.Error:
        if connection.in_transaction:
            connection.rollback()
        raise


def reached_ids(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the highest id that each table has given."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence'").fetchone() is None:
        return {}
    return {str(name): int(seq) for name, seq in connection.execute("SELECT name, seq FROM sqlite_sequence")}


def noted_ids(path: Path) -> dict[str, int]:
    """Return the highest ids in the note, by table; empty if there is no readable note."""
    try:
        return _NOTED.validate_json(ids_note(path).read_bytes())
    except (OSError, ValueError):
        return {}
