"""Copies of the database files, taken while a gateway writes them, and their use in place of lost ones.

A restored file lacks what came after the backup. Its ids go on far above those that the lost rows had, every record
that waits for central is looked for there before it is sent, and nobody is signed in any more.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path

from gateway.domain.errors import StoreError
from gateway.store.engine.faults import refused
from gateway.store.engine.ids import ids_note, noted_ids, reached_ids
from gateway.store.engine.migrations import FAMILIES, after_salvage, migrate, migrations, refuse_newer
from gateway.store.engine.recovery import closed_mark
from gateway.store.engine.salvage import read_only

_SITE, _CARDS = FAMILIES
_LOOK_UP_FIRST = "UPDATE outbox SET begun = 1 WHERE parked = 0"


def copy_databases(folder: Path, into: Path) -> dict[str, int]:
    """Copy the databases of a data folder, as they are at one moment; return the schema of each file by its name.

    A gateway may write them meanwhile, and does not wait. Blocks on the disk.

    Raises:
        StoreError: a file is missing or damaged, or there is no room for its copy.
    """
    schemas: dict[str, int] = {}
    with ExitStack() as opened:
        sources = {}
        for family in FAMILIES:
            path = folder / f"{family}.db"
            if not path.is_file():
                raise StoreError(f"{folder} has no {path.name}: it is not the data folder of a gateway that has run")
            try:
                source = sources[path] = opened.enter_context(closing(read_only(path)))
                source.execute("BEGIN")
                schemas[path.name] = int(source.execute("PRAGMA user_version").fetchone()[0])
                source.execute("SELECT count(*) FROM sqlite_master").fetchone()  # from here on it sees one moment
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
    """Check a copied file throughout. Raises StoreError for a damaged one, and for a schema newer than the program."""
    family = _CARDS if path.name == f"{_CARDS}.db" else _SITE
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as copy:
            refuse_newer(copy, migrations(family))
            _expect_sound(copy, path.name)
    except sqlite3.Error as error:
        raise refused(path, error, "it cannot be read") from error


def prepare_restored(path: Path) -> None:
    """Make a copied file ready for a gateway to go on from it: at the next start its ids jump. Blocks on the disk.

    A note of ids that lies beside it, of the file that was there before, is heeded.
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
    """Note that ids above those of the file were given: the gateway then goes on far above them, and says why."""
    note = ids_note(path)
    before = noted_ids(path)
    later = {name: max(seq + 1, before.get(name, 0)) for name, seq in reached_ids(copy).items()}
    if later:
        note.write_text(json.dumps(later))


def _expect_sound(copy: sqlite3.Connection, name: str) -> None:
    result = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
    if result != "ok":
        raise StoreError(f"{name} is damaged: {result}")
