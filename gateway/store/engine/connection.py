"""One SQLite connection in a thread of its own, to which a job of many statements goes in one hop; and several readers.

Readers read a database file beside its writer.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import aiosqlite

from gateway.domain.errors import StoreError
from gateway.store.engine.faults import is_damage, refused
from gateway.store.engine.recovery import address_without_locks, read_without_writing
from gateway.store.engine.text_search import teach_search

T = TypeVar("T")

Job = Callable[[sqlite3.Connection], T]
Connector = Callable[[], sqlite3.Connection]

_CONNECTIONS = 2
_OTHER_PROGRAM_SECONDS = 5.0


class SqliteConnection(aiosqlite.Connection):
    """An aiosqlite connection that also runs jobs: functions of the sqlite3 connection.

    aiosqlite makes one hop to its thread per statement. Group commit needs a whole batch in one hop, and so does a read
    of several statements in one snapshot. For that, `run` calls aiosqlite's `_execute`, the only protected name used
    here; aiosqlite's version is pinned, and `tests/gateway/store/test_connection.py` fails when an upgrade breaks it.

    `waiting` counts the jobs that are queued or running.
    """

    def __init__(self, connector: Connector, *, name: str) -> None:
        """Prepare a connection. `connector` runs in the thread, which gets this name."""
        super().__init__(self._connect_in_thread, iter_chunk_size=1)
        self.name = name
        self.waiting = 0
        self._open_file = connector
        self._handle: sqlite3.Connection | None = None
        self._stopped: asyncio.Future[object] | None = None

    async def open(self) -> None:
        """Start the thread and connect. If the connector raises, end the thread and raise its error."""
        try:
            await self
        except BaseException:  # also when cancelled: the thread must not outlive the loop
            # aiosqlite has told its thread to stop but does not wait; the loop could close before the thread ends.
            if self._stopped is not None:
                await self._stopped
            raise

    def stop(self) -> asyncio.Future[object] | None:
        """Stop the thread after the jobs already queued, as aiosqlite does; the future is done when it has stopped."""
        self._stopped = super().stop()
        return self._stopped

    async def run(self, job: Job[T]) -> T:
        """Run `job` in the thread, after all earlier jobs, and return its result or raise its error.

        The job runs even if the caller is cancelled.
        """
        # aiosqlite's thread keeps its last function and result alive until the next one, so neither may be large.
        answer: list[T] = []
        self.waiting += 1
        try:
            await self._execute(_into, answer, job, self._handle)  # type: ignore[no-untyped-call]  # not annotated there
        finally:
            self.waiting -= 1
        return answer.pop()

    def _connect_in_thread(self) -> sqlite3.Connection:
        threading.current_thread().name = self.name
        self._handle = self._open_file()
        return self._handle


class Connect(Protocol):
    """Factory of connections that are not open yet."""

    def __call__(self, connector: Connector, *, name: str) -> SqliteConnection:
        """Return a new connection; the arguments are those of `SqliteConnection`."""
        ...


def _into(answer: list[T], job: Job[T], handle: sqlite3.Connection) -> None:
    answer.append(job(handle))


class Readers:
    """Reading connections, open from `start` until `stop`.

    While the disk cannot be written to, the file is read without locks and without an index on disk.
    """

    def __init__(
        self, *, path: Path, connect: Connect, without_writing: Callable[[], bool], damaged: Callable[[str], None]
    ) -> None:
        """Prepare to read.

        Args:
            path: the database file.
            connect: makes connections.
            without_writing: asked at `start`; returns whether the file is not open for writing.
            damaged: called in a reading thread with a sentence about damage that a query found.
        """
        self._path = path
        self._connect = connect
        self._without_writing = without_writing
        self._damaged = damaged
        self._reading: tuple[SqliteConnection, ...] = ()
        self._searching: tuple[SqliteConnection, ...] = ()
        self._not_aside = asyncio.Event()
        self._not_aside.set()

    async def start(self) -> None:
        """Open the connections. Raises StoreError."""
        connector = self._read_alone if self._without_writing() else self._read_beside_writer
        stem = self._path.stem
        reading = tuple(self._connect(connector, name=f"read-{stem}") for _ in range(_CONNECTIONS))
        searching = (self._connect(connector, name=f"search-{stem}"),)
        try:
            for connection in (*reading, *searching):
                await connection.open()
        except BaseException as error:  # also when cancelled: nobody else would close those that are open
            await _close(*reading, *searching)
            if isinstance(error, sqlite3.Error):
                raise refused(self._path, error, "it cannot be read") from error
            raise
        self._reading, self._searching = reading, searching

    async def stop(self) -> None:
        """Refuse new queries, wait for those that were accepted, and close."""
        connections = (*self._reading, *self._searching)
        self._reading = self._searching = ()
        await _close(*connections)

    @asynccontextmanager
    async def aside(self) -> AsyncIterator[None]:
        """Keep the file closed within the context; queries wait, and run after it on new connections."""
        self._not_aside.clear()
        try:
            await self.stop()
            try:
                yield
            finally:
                await self.start()
        finally:
            self._not_aside.set()

    async def read(self, query: Job[T], *, lengthy: bool, alone: bool) -> T:
        """Run a query; arguments and errors are those of `Database.read`."""
        await self._not_aside.wait()
        connections = self._searching if lengthy else self._reading
        if not connections:
            raise StoreError(f"{self._path.name} is not open")
        least_busy = min(connections, key=lambda connection: connection.waiting)
        return await least_busy.run(partial(self._answer, query, alone=alone))

    def attach(self, memory: sqlite3.Connection) -> None:
        """Attach the file as `file` to a connection that only reads it. Call it in a query, and detach in the same."""
        address = f"{self._path.absolute().as_uri()}?mode=ro"
        if self._without_writing():
            memory.execute("PRAGMA locking_mode = EXCLUSIVE")
            address = address_without_locks(self._path)
        memory.execute("ATTACH ? AS file", (address,))

    def _answer(self, query: Job[T], connection: sqlite3.Connection, *, alone: bool) -> T:
        """Run a query in a reading thread. A transaction gives all its statements one snapshot."""
        try:
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

    def _read_beside_writer(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None, timeout=_OTHER_PROGRAM_SECONDS)
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("PRAGMA query_only = ON")
        teach_search(connection)
        return connection

    def _read_alone(self) -> sqlite3.Connection:
        connection = read_without_writing(self._path)
        teach_search(connection)
        return connection


async def _close(*connections: SqliteConnection) -> None:
    for connection in connections:
        await connection.close()
