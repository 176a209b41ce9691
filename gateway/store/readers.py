"""The reading connections of a database file, one for each reading thread."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

from gateway.store.salvage import read_without_writing

_OTHER_PROGRAM_SECONDS = 5.0


class Readers:
    """Makes a connection for each thread that asks, and closes all of them together."""

    def __init__(self, *, path: Path) -> None:
        self._path = path
        self._local = threading.local()
        self._all: list[sqlite3.Connection] = []
        self._lock = threading.Lock()

    def mine(self, *, without_writing: bool) -> sqlite3.Connection:
        """This thread's connection. `without_writing`: nobody writes the file, for its disk takes nothing."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = read_without_writing(self._path) if without_writing else self._connect()
            self._local.connection = connection
            with self._lock:
                self._all.append(connection)
        return connection

    def close(self) -> None:
        """Close them, while nobody reads. Who asks later gets a new one."""
        for connection in self._all:
            connection.close()
        self._all.clear()
        self._local = threading.local()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, isolation_level=None, check_same_thread=False, timeout=_OTHER_PROGRAM_SECONDS
        )
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("PRAGMA query_only = ON")
        return connection
