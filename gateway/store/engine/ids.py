"""A note of the highest ids beside the database, so that ids of lost rows are not given again."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

from pydantic import TypeAdapter

SALVAGE_GAP = 1_000_000
"""How far ids jump when rows were lost: those that could not be read may have used ids up to there."""

UNCLEAN_GAP = 10_000
"""How far ids jump after an unclean end: a disk that lied about a flush may have lost rows that were shown already."""

_NOTED = TypeAdapter(dict[str, int])


def ids_note(path: Path) -> Path:
    """Return the file that says how far ids had come when it was last written."""
    return path.with_name(path.name + ".ids")


def note_ids(connection: sqlite3.Connection, path: Path) -> None:
    """Write how far ids have come. A note is replaced whole or not at all."""
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
    """Return whether the note tells of ids that the file knows nothing of: an older file was put in place, or rows
    went.
    """
    reached = reached_ids(connection)
    return any(noted > reached.get(table, 0) for table, noted in noted_ids(path).items())


def raise_ids(connection: sqlite3.Connection, path: Path, gap: int) -> None:
    """Let the ids of every table go on `gap` above what the rows and the note say was used. Commits."""
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
    """Return how far the ids of each table have come."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence'").fetchone() is None:
        return {}
    return {str(name): int(seq) for name, seq in connection.execute("SELECT name, seq FROM sqlite_sequence")}


def noted_ids(path: Path) -> dict[str, int]:
    """Return how far ids had come when the note beside the file was written; empty without one that can be read."""
    try:
        return _NOTED.validate_json(ids_note(path).read_bytes())
    except (OSError, ValueError):
        return {}
