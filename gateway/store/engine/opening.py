"""Open a SQLite file for writing: recover it, migrate it, and raise its ids above all that were used."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import structlog

from gateway.domain.errors import StoreError
from gateway.store.engine.faults import is_damage, refused
from gateway.store.engine.ids import SALVAGE_GAP, UNCLEAN_GAP, is_behind_note, note_ids, raise_ids
from gateway.store.engine.migrations import Migration, migrate
from gateway.store.engine.recovery import Recovery, recover

log = structlog.get_logger(__name__)

_WAL_KEPT_BYTES = 16 * 1024 * 1024
WAL_PAGES = 1000
"""After so many pages in the log a commit moves them into the file."""
_OTHER_PROGRAM_SECONDS = 5.0


class Opening:
    """Opening of a file in the writing thread, with its findings."""

    def __init__(
        self,
        *,
        path: Path,
        steps: tuple[Migration, ...],
        after_salvage: str,
        mend: Callable[[sqlite3.Connection], str] | None,
        opened: Callable[[sqlite3.Connection], None] | None,
    ) -> None:
        """Take the same arguments as `Database`."""
        self.path = path
        self.salvaged: str | None = None
        self.was_unclean = False
        self._steps = steps
        self._after_salvage = after_salvage
        self._mend = mend
        self._opened = opened
        self._recovery: Recovery | None = None

    def connect(self) -> sqlite3.Connection:
        """Return the writing connection. Raises StoreError, DiskTakesNothing where the disk is to blame."""
        if self._recovery is None:
            self._recovery = recover(self.path, self._steps, self._after_salvage, mend=self._mend)
            self.was_unclean, self.salvaged = self._recovery.unclean, self._recovery.salvaged
        try:
            try:
                return self._connect_writer()
            except sqlite3.Error as error:
                if not is_damage(error):
                    raise
                self._recovery = recover(self.path, self._steps, self._after_salvage, fault=str(error), mend=self._mend)
                self.salvaged = self._recovery.salvaged
                return self._connect_writer()
        except (sqlite3.Error, OSError) as error:
            raise refused(self.path, error, "it cannot be opened") from error

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
            self._look_through(connection)
            # What a savepoint may have to undo is not written down; migrations before this may sort much, on disk.
            connection.execute("PRAGMA temp_store = MEMORY")
        except BaseException:  # a refusal, or a migration's own fault: recovery needs the file to itself
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
        """Let ids go on above those that rows which are gone may have had."""
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
    """Note how far ids have come; a disk that takes no note stops nothing. Raises sqlite3.Error for a damaged file."""
    try:
        note_ids(connection, path)
    except (OSError, sqlite3.Error) as error:
        if is_damage(error):
            raise
        log.warning("ids_not_noted", file=path.name, error=str(error))
