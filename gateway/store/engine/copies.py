"""Backup copies of the database files, taken while a gateway writes them, and their restoration.

A restored file lacks everything after the backup. Therefore its ids continue far above those of the lost rows, every
record that waits for central is looked for there before it is sent, and all sessions have ended.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path

from gateway.domain.errors import StoreError
from gateway.runtime.beneath import acting_as_owner
from gateway.store.engine.faults import refused
from gateway.store.engine.migrations import FAMILIES, after_salvage, migrate, migrations, refuse_newer
from gateway.store.engine.recovery import closed_mark, ids_note, noted_ids, reached_ids, read_only

_SITE, _CARDS = FAMILIES
_LOOK_UP_FIRST = "UPDATE outbox SET begun = 1 WHERE parked = 0"


def copy_databases(folder: Path, into: Path) -> dict[str, int]:
    """Copy the databases of a data folder, each in one snapshot; return the schema number of each file by its name.

    A gateway may write to them meanwhile and is not held up. Blocks on the disk.

    Raises:
        StoreError: a file is missing or damaged, or there is no room for its copy.
    """
    schemas: dict[str, int] = {}
    with ExitStack() as opened:
        sources = {}
        for family in FAMILIES:
            path = folder / f"{family}.db"
            # The first read opens all of SQLite's files: none of them leads root further than the folder's owner.
            with acting_as_owner(folder):
                if not path.is_file():
                    raise StoreError(
                        f"{folder} has no {path.name}: it is not the data folder of a gateway that has run"
                    )
                try:
                    source = sources[path] = opened.enter_context(closing(read_only(path)))
                    source.execute("BEGIN")
                    schemas[path.name] = int(source.execute("PRAGMA user_version").fetchone()[0])
                    source.execute("SELECT count(*) FROM sqlite_master").fetchone()  # this begins the snapshot
                except sqlite3.Error as error:
                    raise refused(path, error, "it cannot be read") from error
        for path, source in sources.items():
            try:
                with closing(sqlite3.connect(into / path.name, isolation_level=None)) as copy:
                    source.backup(copy)
                    copy.execute("PRAGMA journal_mode = DELETE")
                    _expect_sound(copy, path.name)
            except sqlite3.Error as error:
                raise refused(path, error, "it cannot be copied") from error
    return schemas


def check_copy(path: Path) -> None:
    """Check a whole copied file. Raises StoreError if it is damaged or its schema is newer than this program."""
    family = _CARDS if path.name == f"{_CARDS}.db" else _SITE
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as copy:
            refuse_newer(copy, migrations(family))
            _expect_sound(copy, path.name)
    except sqlite3.Error as error:
        raise refused(path, error, "it cannot be read") from error


def prepare_restored(path: Path) -> None:
    """Prepare a copied file for use by a gateway, whose ids then jump at the next start. Blocks on the disk.

    If a note of the highest ids of the replaced file lies beside it, ids jump above those too.
    """
    family = _CARDS if path.name == f"{_CARDS}.db" else _SITE
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as copy:
            migrate(copy, migrations(family))
            copy.executescript(f"BEGIN;\n{after_salvage(family)}\nCOMMIT;")
            if family == _SITE:
                copy.execute(_LOOK_UP_FIRST)
            _note_later_ids(copy, path)
    except sqlite3.Error as error:
        raise refused(path, error, "it cannot be restored") from error
    closed_mark(path).touch()


def _note_later_ids(copy: sqlite3.Connection, path: Path) -> None:
    """Write a note of ids above those in the file, so that the gateway continues far above them and reports why."""
    note = ids_note(path)
    before = noted_ids(path)
    later = {name: max(seq + 1, before.get(name, 0)) for name, seq in reached_ids(copy).items()}
    if later:
        note.write_text(json.dumps(later))


def _expect_sound(copy: sqlite3.Connection, name: str) -> None:
    result = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
    if result != "ok":
        raise StoreError(f"{name} is damaged: {result}")
