"""Open a SQLite file for writing: recover it, migrate it, and raise its ids above all that were ever given."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import structlog

from gateway.domain.errors import StoreError
from gateway.store.engine.faults import is_damage, refused
from gateway.store.engine.migrations import Migration, migrate
from gateway.store.engine.recovery import (
    SALVAGE_GAP,
    UNCLEAN_GAP,
    Recovery,
    is_behind_note,
    note_boot,
    note_ids,
    raise_ids,
    recover,
)

log = structlog.get_logger(__name__)

_WAL_KEPT_BYTES = 16 * 1024 * 1024
WAL_PAGES = 1000
"""When the WAL has this many pages, a commit moves them into the database file (SQLite's automatic checkpoint)."""
_OTHER_PROGRAM_SECONDS = 5.0


class Opening:
    """Opening of a file in the writing thread.

    Attributes:
        salvaged: one sentence if rows were lost, else None; see `Database.salvaged`.
        was_unclean: whether the file was not closed properly last time.
    """

    def __init__(
        self,
        *,
        path: Path,
        steps: tuple[Migration, ...],
        after_salvage: str,
        mend: Callable[[sqlite3.Connection], str] | None,
        opened: Callable[[sqlite3.Connection], None] | None,
        boot: str,
    ) -> None:
        """Take the same arguments as `Database`."""
        self.path = path
        self.salvaged: str | None = None
        self.was_unclean = False
        self._steps = steps
        self._after_salvage = after_salvage
        self._mend = mend
        self._opened = opened
        self._boot = boot
        self._recovery: Recovery | None = None

    def connect(self) -> sqlite3.Connection:
        """Return the writing connection. Raises StoreError; DiskTakesNothing if the disk is full or read-only."""
        if self._recovery is None:
            self._recovery = self._recovered(None)
            self.was_unclean, self.salvaged = self._recovery.unclean, self._recovery.salvaged
        try:
            try:
                return self._connect_writer()
            except sqlite3.Error as error:
                if not is_damage(error):
                    raise
                self._recovery = self._recovered(str(error))
                self.salvaged = self._recovery.salvaged
                return self._connect_writer()
        except (sqlite3.Error, OSError) as error:
            raise refused(self.path, error, "it cannot be opened") from error

    def _recovered(self, fault: str | None) -> Recovery:
        return recover(self.path, self._steps, self._after_salvage, fault=fault, mend=self._mend, boot=self._boot)

    def _connect_writer(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None, timeout=_OTHER_PROGRAM_SECONDS)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(f"PRAGMA journal_size_limit = {_WAL_KEPT_BYTES}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
            migrate(connection, self._steps)
            self._pass_used_ids(connection)
            note_reached(connection, self.path)
            note_boot(self.path, self._boot)
            self._look_through(connection)
            # Savepoint journals in memory, to save writes. Only from here on: migrations may sort more than fits there.
            connection.execute("PRAGMA temp_store = MEMORY")
        except BaseException:  # recovery, which may follow, needs the file to itself
            connection.close()
            raise
        return connection

    def _mended(self, connection: sqlite3.Connection) -> str:
        if self._mend is None:
            return ""
        connection.execute("BEGIN IMMEDIATE")
        told = self._mend(connection)
        connection.execute("COMMIT")
        return f"; {told}" if told else ""

    def _look_through(self, connection: sqlite3.Connection) -> None:
        if self._opened is None:
            return
        try:
            self._opened(connection)
        except (sqlite3.Error, StoreError) as error:
            if connection.in_transaction:
                connection.rollback()
            if is_damage(error):
                raise
            log.warning("not_looked_through", file=self.path.name, error=str(error))  # a full disk must not stop lanes

    def _pass_used_ids(self, connection: sqlite3.Connection) -> None:
        """Raise ids above those that lost rows may have had, if the note or an unclean end says that rows are lost."""
        if is_behind_note(connection, self.path):
            raise_ids(connection, self.path, SALVAGE_GAP)
            told = self._mended(connection)
            self.salvaged = (
                self.salvaged or f"{self.path.name} is older than ids already given; later rows are missing{told}"
            )
            log.error("store_behind_its_ids", file=self.path.name)
        elif self.was_unclean and self.salvaged is None:
            try:
                raise_ids(connection, self.path, UNCLEAN_GAP)
            except sqlite3.Error as error:
                if is_damage(error):
                    raise
                log.warning("ids_not_raised", file=self.path.name, error=str(error))  # a full disk must not stop lanes


def note_reached(connection: sqlite3.Connection, path: Path) -> None:
    """Write the note of the highest ids; log it if the disk refuses. Raises sqlite3.Error for a damaged database."""
    try:
        note_ids(connection, path)
    except (OSError, sqlite3.Error) as error:
        if is_damage(error):
            raise
        log.warning("ids_not_noted", file=path.name, error=str(error))
