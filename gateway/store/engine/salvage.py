"""Copy the readable rows out of a damaged database file without changing it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import structlog

from gateway.store.engine.faults import DiskTakesNothing, is_own, refused

log = structlog.get_logger(__name__)

OTHER_PROGRAM_SECONDS = 5.0
_LOWEST = -(2**63)
_HIGHEST = 2**63 - 1

Row = tuple[object, ...]


def read_only(path: Path) -> sqlite3.Connection:
    """Open a file with its -wal for reading; neither changes, not even when the connection closes."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=OTHER_PROGRAM_SECONDS
    )
    connection.text_factory = _lenient
    return connection


def read_without_writing(path: Path) -> sqlite3.Connection:
    """Open a file with its -wal for reading on a full or read-only disk, without locks and without a -shm file.

    Nobody may write the file meanwhile; before somebody does, such connections must be closed.
    """
    connection = sqlite3.connect(address_without_locks(path), uri=True, isolation_level=None)
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    return connection


def address_without_locks(path: Path) -> str:
    """Return the URI under which `read_without_writing` opens a file. The locking mode must be exclusive before."""
    wal = path.with_name(path.name + "-wal")
    logged = wal.exists() and wal.stat().st_size > 0
    # Without locks SQLite keeps the index of the WAL in its own memory; without a WAL it needs no index.
    return f"{path.absolute().as_uri()}?{'mode=ro&vfs=unix-none' if logged else 'immutable=1'}"


def schema_of(path: Path) -> int:
    """Return the schema's number, 0 if it cannot be read."""
    try:
        with closing(read_only(path)) as connection:
            return int(connection.execute("PRAGMA user_version").fetchone()[0])
    except sqlite3.Error:
        return 0


def copy_rows(damaged: Path, fresh: sqlite3.Connection) -> int:
    """Copy every readable row of every table that both files have. Return the number of rows copied.

    Raises StoreError if the fresh file cannot take them.
    """
    if not damaged.exists():
        return 0
    try:
        with closing(read_only(damaged)) as old, closing(fresh.cursor()) as writing:
            writing.execute("PRAGMA foreign_keys = OFF")
            writing.execute("BEGIN")
            tables = writing.execute(
                "SELECT name, sql LIKE '%WITHOUT ROWID%' FROM sqlite_master"
                " WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            ).fetchall()
            kept = sum(_copy_table(old, fresh, table, by_rowid=not keyed) for table, keyed in tables)
            writing.execute("COMMIT")
            return kept
    except sqlite3.Error as error:
        raise refused(damaged, error, "there is no place for what can be saved of it") from error


def _copy_table(old: sqlite3.Connection, fresh: sqlite3.Connection, table: str, *, by_rowid: bool) -> int:
    columns = _columns(fresh, table)
    try:
        columns = [name for name in columns if name in _columns(old, table)]
    except sqlite3.Error as error:
        log.warning("table_lost", table=table, error=str(error))
        return 0
    if not columns:
        return 0
    names = ", ".join(columns)
    insert = f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})"
    before = _count(fresh, table)

    def keep(row: Row) -> None:
        try:
            fresh.execute(insert, row)
        except sqlite3.Error as error:
            if not is_own(error):
                raise DiskTakesNothing(f"{table}: {error}", "there is no place for what can be saved") from error
            log.warning("row_lost", table=table, error=str(error))  # damaged: the table's constraints refuse its values

    for number, source in _paths(fresh, table, by_rowid=by_rowid):
        _each(old, f"SELECT {number}, {names} FROM {source}", number, keep)
    return _count(fresh, table) - before


def _paths(fresh: sqlite3.Connection, table: str, *, by_rowid: bool) -> list[tuple[str, str]]:
    """Return ways to read a table's rows by an ascending integer, as pairs of that column and the SQL source.

    The integer is the rowid, or else the first column of an index; a table without either is read in one go.
    """
    if by_rowid:
        return [("rowid", f"{table} NOT INDEXED")]
    indexes = [str(row[1]) for row in fresh.execute(f"PRAGMA index_list({table})") if row[3] == "c"]
    numbers = {str(row[1]) for row in fresh.execute(f"PRAGMA table_info({table})") if row[2] == "INTEGER"}
    firsts = [(str(fresh.execute(f"PRAGMA index_info({index})").fetchone()[2]), index) for index in indexes]
    by_index = [(first, f"{table} INDEXED BY {index}") for first, index in firsts if first in numbers]
    return by_index or [("0 + 0", table)]  # a plain 0 in ORDER BY would mean the position of a column


def _each(old: sqlite3.Connection, select: str, number: str, keep: Callable[[Row], None]) -> None:
    """Call `keep` with every readable row; reading continues behind damaged pages."""
    low: int | None = _LOWEST
    while low is not None:
        try:
            for reached, *row in old.execute(f"{select} WHERE {number} > ? ORDER BY {number}", (low,)):
                if reached < low:
                    raise sqlite3.DatabaseError("rows out of order")
                keep(tuple(row))
                low = int(reached)
        except sqlite3.Error as error:
            log.warning("rows_lost", read=select, behind=low, error=str(error))
            low = _past_damage(old, select, number, low)
        else:
            low = None


def _past_damage(old: sqlite3.Connection, select: str, number: str, low: int) -> int | None:
    """Search for the lowest number above `low` behind which a row can be read; None if there is none."""
    base = max(low, 0)

    def readable(behind: int) -> bool:
        """Return whether the next row above `behind` can be read; True also at the end of the table."""
        try:
            found = old.execute(f"{select} WHERE {number} > ? ORDER BY {number} LIMIT 1", (behind,)).fetchone()
        except sqlite3.Error:
            return False
        return found is None or found[0] > behind

    far = 1
    while not readable(base + far):
        far *= 2
        if base + far > _HIGHEST:
            return None
    near = far // 2
    while far - near > 1:
        middle = (near + far) // 2
        near, far = (near, middle) if readable(base + middle) else (middle, far)
    return base + far


def _count(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")]


def _lenient(text: bytes) -> str:
    return text.decode("utf-8", "replace")
