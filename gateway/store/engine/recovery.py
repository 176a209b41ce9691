"""Recovery of a database file before it is opened: check it after an unclean end, and salvage a damaged one.

A damaged file is never deleted and never keeps the gateway from starting: it is moved aside with its -wal and -shm, and
a fresh file with every row that can be read takes its place, ids going on far above any that was in use.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import structlog

from gateway.domain.errors import StoreError
from gateway.runtime.durable_files import sync_folder
from gateway.store.engine.faults import is_damage, refused
from gateway.store.engine.ids import SALVAGE_GAP, ids_note, raise_ids
from gateway.store.engine.migrations import Migration, migrate, refuse_newer
from gateway.store.engine.salvage import copy_rows, read_only, schema_of
from gateway.store.engine.wal import commits_lost

log = structlog.get_logger(__name__)

_PARTS = ("-wal", "-shm", "")


@dataclass(frozen=True, slots=True)
class Recovery:
    """Result of opening a database. `salvaged` is one sentence if the file was damaged, else None."""

    unclean: bool
    salvaged: str | None


def closed_mark(path: Path) -> Path:
    """Return the file that exists from a clean close to the next opening. Without it, the file is checked
    throughout.
    """
    return path.with_name(path.name + ".closed")


Mend = Callable[[sqlite3.Connection], str]


def recover(
    path: Path,
    steps: tuple[Migration, ...],
    after_salvage: str,
    *,
    fault: str | None = None,
    mend: Mend | None = None,
) -> Recovery:
    """Prepare `path` for opening: check it after an unclean end, and start afresh from what is readable if damaged.

    `fault` says that it is known to be damaged; `mend` puts saved rows right and says what is to be told. Raises
    StoreError for a newer schema and for a disk that refuses.
    """
    try:
        _finish_replacement(path)
        _finish_rollback(path)
        known = _was_in_use(path)
        unclean = known and not closed_mark(path).exists()
        if known and fault is None:
            fault = _fault_of(path, steps, thorough=unclean)
        salvaged = None if fault is None else _start_afresh(path, steps, after_salvage, fault, mend)
        closed_mark(path).unlink(missing_ok=True)
        sync_folder(path.parent)
    except (sqlite3.Error, OSError) as error:
        raise refused(path, error, "it cannot be opened") from error
    return Recovery(unclean=unclean, salvaged=salvaged)


def _was_in_use(path: Path) -> bool:
    """Return whether the file ever held anything. An empty one alone is left by a power cut while it was first made."""
    if path.exists() and (not path.is_file() or path.stat().st_size > 0 or closed_mark(path).exists()):
        return True
    return _part(path, "-wal").exists() or ids_note(path).exists()


def _finish_rollback(path: Path) -> None:
    """Undo what a crash cut short while the file was made, before its log was in use.

    SQLite does that at the first look at the file, but only for a connection that may write.
    """
    if not (path.is_file() and _part(path, "-journal").exists()):
        return
    try:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.Error as error:
        if not is_damage(error):
            raise


def _fault_of(path: Path, steps: tuple[Migration, ...], *, thorough: bool) -> str | None:
    """Return the fault of the file's content, or None. Changes nothing on disk, the -wal included."""
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
    """Build the fresh file beside the damaged one, then put it in place; a crash on the way is taken up again."""
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
    """Move the damaged parts aside and the fresh file in place, from wherever a crash left it."""
    plan, fresh = _plan(path), _part(path, ".fresh")
    if not plan.exists():
        for leftover in (fresh, _part(path, ".fresh-journal")):
            leftover.unlink(missing_ok=True)  # half built from the file that is still in place
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
    """Return the file that names where the damaged file goes, while it is being replaced by a complete fresh one."""
    return _part(path, ".replacing")


def _part(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _free_name(path: Path) -> Path:
    number = 1
    while any(_part(path, f".damaged-{number}{suffix}").exists() for suffix in _PARTS):
        number += 1
    return _part(path, f".damaged-{number}")
