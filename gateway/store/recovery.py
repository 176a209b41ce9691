"""What happens to a database file before it is opened: was its last end clean, is it whole, and what can be saved.

A damaged file is never deleted and never keeps the gateway from starting: the file, its -wal and its -shm are moved
aside together, rows that can be read are copied into a fresh file, and ids go on far above any that was in use.
"""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import structlog
from pydantic import TypeAdapter

from gateway.store.migrations import Migration, migrate

log = structlog.get_logger(__name__)

ID_GAP = 1_000_000
"""How far ids jump after a salvage: rows that could not be read may have used ids up to there."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """What was found at opening. `salvaged` is one sentence when the file was damaged, else None."""

    unclean: bool
    salvaged: str | None


def open_mark(path: Path) -> Path:
    """The file that exists while the database is in use; found at start, the last end was not clean."""
    return path.with_name(path.name + ".in-use")


def recover(path: Path, steps: tuple[Migration, ...]) -> Recovery:
    """Prepare `path` for opening: check it after an unclean end, and start afresh from what is readable if damaged."""
    mark = open_mark(path)
    unclean = mark.exists() and path.exists()
    salvaged = None
    if unclean or (path.exists() and path.stat().st_size > 0):
        fault = _fault_of(path, thorough=unclean)
        if fault is not None:
            salvaged = _start_afresh(path, steps, fault)
    mark.touch()
    _sync_folder(path.parent)
    return Recovery(unclean=unclean, salvaged=salvaged)


def _fault_of(path: Path, *, thorough: bool) -> str | None:
    try:
        with closing(sqlite3.connect(path, timeout=5)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if thorough:
                (result,) = connection.execute("PRAGMA quick_check(1)").fetchone()
                return None if result == "ok" else str(result)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError) and "malformed" not in str(error):
            raise
        return str(error)
    return None


def _start_afresh(path: Path, steps: tuple[Migration, ...], fault: str) -> str:
    aside = _free_name(path)
    for suffix in ("", "-wal", "-shm"):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
    _sync_folder(path.parent)
    with closing(sqlite3.connect(path, isolation_level=None)) as fresh:
        migrate(fresh, steps)
        kept = _copy_rows(aside, fresh)
        _raise_ids(fresh, path)
    text = f"{path.name} was damaged ({fault}); {kept} rows were saved, the damaged file is kept as {aside.name}"
    log.error("store_salvaged", file=path.name, fault=fault, rows=kept, kept_as=aside.name)
    return text


def note_ids(connection: sqlite3.Connection, path: Path) -> None:
    """Write beside the database how far ids have come, so that a wholly lost file does not lead to their reuse."""
    if not _has_sequence(connection):
        return
    reached = dict(connection.execute("SELECT name, seq FROM sqlite_sequence"))
    note = _ids_note(path)
    fresh = note.with_suffix(".new")
    with fresh.open("w") as file:
        json.dump(reached, file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(note)


def _raise_ids(fresh: sqlite3.Connection, path: Path) -> None:
    """Let every id go on above what the rows and the note say was used."""
    if not _has_sequence(fresh):
        return
    reached: dict[str, int] = dict(fresh.execute("SELECT name, seq FROM sqlite_sequence"))
    try:
        noted = TypeAdapter(dict[str, int]).validate_json(_ids_note(path).read_bytes())
    except (OSError, ValueError):
        noted = {}
    for (table,) in fresh.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%'"
    ).fetchall():
        top = max(reached.get(table, 0), noted.get(table, 0)) + ID_GAP
        fresh.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
        fresh.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, top))


def _ids_note(path: Path) -> Path:
    return path.with_name(path.name + ".ids")


def _has_sequence(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence'").fetchone() is not None


def _free_name(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return aside


def _copy_rows(damaged: Path, fresh: sqlite3.Connection) -> int:
    """Copy every readable row of every table that both files have."""
    kept = 0
    try:
        old = sqlite3.connect(damaged, timeout=5)
    except sqlite3.Error:
        return 0
    with closing(old):
        tables = [
            (name, without_rowid)
            for name, without_rowid in fresh.execute(
                "SELECT name, sql LIKE '%WITHOUT ROWID%' FROM sqlite_master "
                "WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            )
        ]
        fresh.execute("PRAGMA foreign_keys = OFF")
        for table, without_rowid in tables:
            kept += _copy_table(old, fresh, table, by_rowid=not without_rowid)
    return kept


def _copy_table(old: sqlite3.Connection, fresh: sqlite3.Connection, table: str, *, by_rowid: bool) -> int:
    """Copy one table, from its start and, past damage, from its end; returns how many rows were saved."""
    columns = [row[1] for row in fresh.execute(f"PRAGMA table_info({table})")]
    names = ", ".join(columns)
    places = ", ".join("?" * len(columns))
    insert = f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({places})"
    orders = (" ORDER BY rowid ASC", " ORDER BY rowid DESC") if by_rowid else ("",)
    (before,) = fresh.execute(f"SELECT count(*) FROM {table}").fetchone()
    for order in orders:
        fresh.execute("BEGIN")
        try:
            for row in old.execute(f"SELECT {names} FROM {table}{order}"):
                fresh.execute(insert, row)
        except sqlite3.Error as error:
            log.warning("table_partly_read", table=table, error=str(error))
            fresh.execute("COMMIT")
            continue
        fresh.execute("COMMIT")
        break
    (after,) = fresh.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(after) - int(before)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
