"""Recovery of a database file before it is opened: check it after an unclean end, and salvage a damaged one.

A damaged file is never deleted and never keeps the gateway from starting. It is moved aside with its -wal and -shm. A
fresh file with every readable row takes its place; its ids continue far above any that were in use.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import structlog
from pydantic import TypeAdapter

from gateway.domain.errors import StoreError
from gateway.runtime.durable_files import sync_folder
from gateway.store.engine.faults import DiskTakesNothing, is_damage, is_own, refused
from gateway.store.engine.migrations import Migration, migrate, refuse_newer

log = structlog.get_logger(__name__)

_PARTS = ("-wal", "-shm", "")
_WAL_HEADER = struct.Struct(">8I")  # https://www.sqlite.org/fileformat2.html#the_write_ahead_log
_WAL_HEADER_BYTES = _WAL_HEADER.size
"""The size of a log without a commit."""
_WAL_FRAME = struct.Struct(">6I")
_MAGIC_LITTLE, _MAGIC_BIG = 0x377F0682, 0x377F0683
_MASK = 0xFFFFFFFF

OTHER_PROGRAM_SECONDS = 5.0
_LOWEST = -(2**63)
_HIGHEST = 2**63 - 1

Row = tuple[object, ...]

SALVAGE_GAP = 1_000_000
"""The jump of ids after rows were lost, because unreadable rows may have used ids that far above the known ones."""

UNCLEAN_GAP = 10_000
"""The jump of ids after an unclean end: a disk that lied about a flush may have lost rows that were already sent."""

_NOTED = TypeAdapter(dict[str, int])


@dataclass(frozen=True, slots=True)
class Recovery:
    """Result of a recovery.

    Attributes:
        unclean: whether the file was not closed properly last time.
        salvaged: one sentence if the file was damaged, else None.
    """

    unclean: bool
    salvaged: str | None


def closed_mark(path: Path) -> Path:
    """Return the path of a file that exists from a clean close to the next opening.

    If it is missing at an opening in another boot of the machine, the whole database is checked.
    """
    return path.with_name(path.name + ".closed")


def boot_mark(path: Path) -> Path:
    """Return the path of a file that names the boot of the machine in which the database was opened last.

    Until the machine stops, the system keeps every page that was written, however this program ends. So an unclean end
    within the same boot needs no check. A refused commit or damage removes the file; a copied database is another one.
    """
    return path.with_name(path.name + ".boot")


Mend = Callable[[sqlite3.Connection], str]


def recover(
    path: Path,
    steps: tuple[Migration, ...],
    after_salvage: str,
    *,
    fault: str | None = None,
    mend: Mend | None = None,
    boot: str = "",
) -> Recovery:
    """Prepare `path` for opening: check it after an unclean end, and rebuild it from its readable rows if damaged.

    Args:
        path: the database file.
        steps: the migrations of its schema.
        after_salvage: SQL that makes a rebuilt file consistent again.
        fault: the damage, if it is known already; the file is then rebuilt without a check.
        mend: corrects the rows of a rebuilt file and returns a sentence about it, "" for nothing to report.
        boot: the present boot of the machine, "" if unknown.

    Raises:
        StoreError: the schema is newer than this program, or the disk refuses.
    """
    try:
        _finish_replacement(path)
        _roll_back(path)
        known = _was_in_use(path)
        unclean = known and not closed_mark(path).exists()
        if known and fault is None:
            fault = _fault_of(path, steps, thorough=unclean and not _was_opened_in(path, boot))
        salvaged = None if fault is None else _start_afresh(path, steps, after_salvage, fault, mend)
        closed_mark(path).unlink(missing_ok=True)
        sync_folder(path.parent)
    except (sqlite3.Error, OSError) as error:
        raise refused(path, error, "it cannot be opened") from error
    return Recovery(unclean=unclean, salvaged=salvaged)


def _was_opened_in(path: Path, boot: str) -> bool:
    try:
        return boot != "" and boot_mark(path).read_text() == _opened_in(path, boot)
    except (OSError, UnicodeDecodeError):
        return False


def note_boot(path: Path, boot: str) -> None:
    """Note the boot in which the file was found good. It need not be on disk: after a power cut it is out of date."""
    if boot:
        with contextlib.suppress(OSError):  # without the note the file is checked after an unclean end
            boot_mark(path).write_text(_opened_in(path, boot))


def _opened_in(path: Path, boot: str) -> str:
    return f"{boot} {path.stat().st_ino}"


def _roll_back(path: Path) -> None:
    """Roll back a transaction that a crash interrupted while the file was made, before it used a WAL.

    SQLite does that at the first read of the file, but only for a connection that may write.
    """
    if not (path.is_file() and _part(path, "-journal").exists()):
        return
    try:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.Error as error:
        if not is_damage(error):
            raise


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


def _was_in_use(path: Path) -> bool:
    """Return whether the file ever held data.

    A power cut while it is first made leaves an empty file, or none. A -wal without a commit may lie beside it.
    """
    if path.exists() and (not path.is_file() or path.stat().st_size > 0 or closed_mark(path).exists()):
        return True
    return _size(_part(path, "-wal")) > _WAL_HEADER_BYTES or ids_note(path).exists()


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


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


def _fault_of(path: Path, steps: tuple[Migration, ...], *, thorough: bool) -> str | None:
    """Return the damage of the file in words, or None. Changes nothing on disk, not even the -wal."""
    if not path.exists():
        return "the file is missing"
    if not path.is_file():
        raise StoreError(f"{path.name} is not a file; it cannot be opened")
    if path.stat().st_size == 0:
        return "the file is empty"
    try:
        with closing(read_only(path)) as connection:
            refuse_newer(connection, steps)
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            result = connection.execute("PRAGMA quick_check(1)").fetchone()[0] if thorough else "ok"
    except sqlite3.Error as error:
        if not is_damage(error):
            raise
        return str(error)
    if result != "ok":
        return str(result).replace("\n", " ")
    lost = commits_lost(_part(path, "-wal")) if thorough else 0
    return f"{lost} commits of its log cannot be read" if lost > 1 else None


def _start_afresh(path: Path, steps: tuple[Migration, ...], after_salvage: str, fault: str, mend: Mend | None) -> str:
    """Build a fresh file beside the damaged one, then put it in place. After a crash, `recover` completes it."""
    fresh_path, aside = _part(path, ".fresh"), _free_name(path)
    left = any(_part(path, suffix).exists() for suffix in _PARTS)
    with closing(sqlite3.connect(fresh_path, isolation_level=None)) as fresh:
        version = schema_of(path) or steps[-1].number
        migrate(fresh, tuple(step for step in steps if step.number <= version))
        try:
            kept = copy_rows(path, fresh)
        except StoreError:
            fresh.close()
            fresh_path.unlink()
            raise
        migrate(fresh, steps)
        fresh.executescript(f"BEGIN;\n{after_salvage}\nCOMMIT;")
        fresh.execute("BEGIN")
        told = mend(fresh) if mend is not None else ""
        fresh.execute("COMMIT")
        raise_ids(fresh, path, SALVAGE_GAP)
    plan = _plan(path)
    with plan.open("w") as file:
        file.write(aside.name)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)
    _finish_replacement(path)
    log.error("store_salvaged", file=path.name, fault=fault, rows=kept, kept_as=aside.name if left else None)
    kept_as = f", the damaged file is kept as {aside.name}" if left else ""
    return f"{path.name} was damaged ({fault}); {kept} rows were saved{kept_as}{'; ' if told else ''}{told}"


def _finish_replacement(path: Path) -> None:
    """Move the damaged files aside and the fresh file in place; continues where a crash interrupted it."""
    plan, fresh = _plan(path), _part(path, ".fresh")
    if not plan.exists():
        for leftover in (fresh, _part(path, ".fresh-journal")):
            leftover.unlink(missing_ok=True)  # half built when a crash came; the original is still in place
        return
    if fresh.exists():
        aside = path.with_name(plan.read_text().strip())
        for suffix in _PARTS:
            if (part := _part(path, suffix)).exists():
                part.rename(_part(aside, suffix))
        fresh.rename(path)
    sync_folder(path.parent)
    plan.unlink()
    sync_folder(path.parent)


def _plan(path: Path) -> Path:
    """Return the path of a file that exists during the replacement and names where the damaged file goes."""
    return _part(path, ".replacing")


def _part(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _free_name(path: Path) -> Path:
    number = 1
    while any(_part(path, f".damaged-{number}{suffix}").exists() for suffix in _PARTS):
        number += 1
    return _part(path, f".damaged-{number}")


def commits_lost(wal: Path) -> int:
    """Return how many commits of the log are behind its first wrong frame; 0 if it is intact or missing.

    SQLite itself stops silently there. A power cut leaves at most one, because each commit is flushed before the next
    begins. Two or more mean damage. Raises OSError if the file cannot be read.
    """
    try:
        with wal.open("rb") as file:
            return _commits_lost(file)
    except FileNotFoundError:
        return 0


def _commits_lost(file: BinaryIO) -> int:
    head = file.read(_WAL_HEADER.size)
    if len(head) < _WAL_HEADER.size:
        return 0
    magic, _, page_size, _, salt1, salt2, sum1, sum2 = _WAL_HEADER.unpack(head)
    order = "<" if magic == _MAGIC_LITTLE else ">"
    sums = _checksum(order, head[:24], (0, 0))
    whole = magic in (_MAGIC_LITTLE, _MAGIC_BIG) and sums == (sum1, sum2)
    salts = (salt1, salt2)
    if not whole:
        # Without a valid header, take the salts of the first frame and SQLite's default page size.
        page_size = 4096
        salts = _WAL_FRAME.unpack(first)[2:4] if len(first := file.read(_WAL_FRAME.size)) == _WAL_FRAME.size else salts
        file.seek(_WAL_HEADER.size)
    lost = 0
    while len(frame := file.read(_WAL_FRAME.size + page_size)) == _WAL_FRAME.size + page_size:
        _, pages_after_commit, *frame_salts, sum1, sum2 = _WAL_FRAME.unpack(frame[: _WAL_FRAME.size])
        if tuple(frame_salts) != salts:
            if whole:
                whole = False  # left by an earlier use of the log, or damaged: later frames with the salts decide
            continue
        if whole:
            sums = _checksum(order, frame[_WAL_FRAME.size :], _checksum(order, frame[:8], sums))
            whole = sums == (sum1, sum2)
        if not whole and pages_after_commit:
            lost += 1
    return lost


def _checksum(order: str, data: bytes, sums: tuple[int, int]) -> tuple[int, int]:
    first, second = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & _MASK
        second = (second + odd + first) & _MASK
    return first, second
