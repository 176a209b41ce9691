"""The threads that read a database file beside its writer, each with a connection of its own."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TypeVar

from gateway.domain.errors import StoreError
from gateway.store.engine.faults import is_damage, refused
from gateway.store.engine.group_commit import Job
from gateway.store.engine.salvage import read_without_writing
from gateway.store.engine.text_search import teach_search

T = TypeVar("T")

_THREADS = 2
_OTHER_PROGRAM_SECONDS = 5.0


class Readers:
    """Reads from `start` until `stop`.

    While nobody can write the file, because its disk takes nothing, it is read without locks and indexes on disk, and
    readers take turns with whoever opens it for writing after all.
    """

    def __init__(self, *, path: Path, without_writing: Callable[[], bool], damaged: Callable[[str], None]) -> None:
        """`without_writing`: whether nobody can write just now. `damaged`: told in a thread of what cannot be read."""
        self._path = path
        self._without_writing = without_writing
        self._damaged = damaged
        self._threads: ThreadPoolExecutor | None = None
        self._searching: ThreadPoolExecutor | None = None
        self._turn = threading.Lock()
        self._local = threading.local()
        self._all: list[sqlite3.Connection] = []
        self._lock = threading.Lock()

    def start(self) -> None:
        """Read from now on."""
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix=f"read-{self._path.stem}")
        self._searching = ThreadPoolExecutor(1, thread_name_prefix=f"search-{self._path.stem}")

    def refuse(self) -> Callable[[], None]:
        """Take no more questions. What is returned waits until those that were taken are answered, and closes."""
        ending = [threads for threads in (self._threads, self._searching) if threads is not None]
        self._threads = self._searching = None

        def end() -> None:
            for threads in ending:
                threads.shutdown()
            self._close()

        return end

    async def read(self, query: Job[T], *, lengthy: bool, alone: bool) -> T:
        """See `Database.read`."""
        threads = self._searching if lengthy else self._threads
        if threads is None:
            raise StoreError(f"{self._path.name} is not open")
        # The loop hands it over, not this room: on virtual time it passes the seconds that reading takes.
        return await asyncio.get_running_loop().run_in_executor(threads, partial(self._read, query, alone=alone))

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Nobody reads without locks meanwhile; whoever reads later gets a new connection."""
        with self._turn:
            self._close()
            yield

    def _read(self, query: Job[T], *, alone: bool) -> T:
        """In a reading thread. The transaction makes all of a query's statements see one moment."""
        turn: AbstractContextManager[object] = self._turn if self._without_writing() else nullcontext()
        try:
            with turn:
                connection = self._mine()
                if alone:
                    return query(connection)
                connection.execute("BEGIN")
                try:
                    return query(connection)
                finally:
                    connection.rollback()
        except sqlite3.Error as error:
            if is_damage(error):
                self._damaged(str(refused(self._path, error, "it is checked and mended at the next start")))
            raise refused(self._path, error, "it cannot be read") from error
        except OverflowError as error:
            raise StoreError(f"{self._path.name}: a number that was asked for is out of range") from error

    def _mine(self) -> sqlite3.Connection:
        """This thread's connection."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = read_without_writing(self._path) if self._without_writing() else self._connect()
            teach_search(connection)
            self._local.connection = connection
            with self._lock:
                self._all.append(connection)
        return connection

    def _close(self) -> None:
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
