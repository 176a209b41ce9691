"""One SQLite file: one connection that writes and checkpoints, in a thread of its own, with group commit; and readers.

WAL with synchronous=FULL: what `write` returned for is on disk. One writing connection, because SQLite 3.7.0 to
3.51.2 can corrupt a WAL file that two connections write or checkpoint (the WAL-reset bug).
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Generic, TypeVar

import structlog

from gateway.domain.errors import StoreError
from gateway.store.migrations import Migration, migrate
from gateway.store.recovery import note_ids, open_mark, recover

T = TypeVar("T")
Job = Callable[[sqlite3.Connection], T]

log = structlog.get_logger(__name__)

_QUEUE = 4096
_BATCH = 256
_WAL_LIMIT_BYTES = 64 * 1024 * 1024
_READERS = 2
_NOTE_EVERY = 1000  # commits of at most _BATCH jobs: well under recovery.ID_GAP ids


class _Waiting(Generic[T]):
    """A job in the queue and who waits for it."""

    __slots__ = ("done", "job")

    def __init__(self, job: Job[T], done: asyncio.Future[T]) -> None:
        self.job = job
        self.done = done


class Database:
    """A SQLite file with one writer and group commit.

    `open`, then keep `run` alive as a task; `write` and `read` may be used from then on until `close`.
    """

    def __init__(self, *, path: Path, steps: tuple[Migration, ...]) -> None:
        self.path = path
        self.salvaged: str | None = None
        self.was_unclean = False
        self._steps = steps
        self._queue: asyncio.Queue[_Waiting[Any]] = asyncio.Queue(_QUEUE)
        self._writer: sqlite3.Connection | None = None
        self._writing = ThreadPoolExecutor(1, thread_name_prefix=f"write-{path.stem}")
        self._reading = ThreadPoolExecutor(_READERS, thread_name_prefix=f"read-{path.stem}")
        self._local = threading.local()
        self._readers: list[sqlite3.Connection] = []
        self._readers_lock = threading.Lock()
        self._closed = False
        self.commits = 0
        self.failing = ""

    @property
    def waiting(self) -> int:
        """Writes that are not in a commit yet."""
        return self._queue.qsize()

    async def open(self) -> None:
        """Recover if the last end was unclean, migrate, and be ready. Raises StoreError with one sentence."""
        await asyncio.get_running_loop().run_in_executor(self._writing, self._open)

    async def run(self) -> None:
        """Commit what is queued, together, until cancelled. One batch is one transaction."""
        loop = asyncio.get_running_loop()
        while True:
            batch = [await self._queue.get()]
            while len(batch) < _BATCH and not self._queue.empty():
                batch.append(self._queue.get_nowait())
            committing = loop.run_in_executor(self._writing, self._commit, [waiting.job for waiting in batch])
            try:
                outcomes = await asyncio.shield(committing)
            except asyncio.CancelledError:
                # The thread is past recall: those who wait hear what became of their rows, then the end comes.
                _resolve(batch, await committing)
                raise
            _resolve(batch, outcomes)

    async def write(self, job: Job[T]) -> T:
        """Run `job` in the next commit and return its result once it is on disk.

        `job` runs in the writing thread inside a savepoint: what it raises undoes its own work alone and is raised
        here. Raises StoreError when the disk refuses the commit: nothing of it was kept.
        """
        if self._closed:
            raise StoreError(f"{self.path.name} is closed")
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        await self._queue.put(_Waiting(job, done))
        return await done

    async def read(self, query: Job[T]) -> T:
        """Run `query` on a reading connection, beside the writer. It sees what was committed before it began."""
        if self._closed:
            raise StoreError(f"{self.path.name} is closed")
        return await asyncio.get_running_loop().run_in_executor(self._reading, self._read, query)

    async def close(self) -> None:
        """Commit what is still queued, checkpoint and close. The next opening is a clean one."""
        self._closed = True
        loop = asyncio.get_running_loop()
        rest: list[_Waiting[Any]] = []
        while not self._queue.empty():
            rest.append(self._queue.get_nowait())
        if rest:
            _resolve(rest, await loop.run_in_executor(self._writing, self._commit, [item.job for item in rest]))
        self._reading.shutdown(wait=True)
        await loop.run_in_executor(self._writing, self._close)
        self._writing.shutdown(wait=True)

    def _open(self) -> None:
        try:
            recovery = recover(self.path, self._steps)
            self.was_unclean, self.salvaged = recovery.unclean, recovery.salvaged
            connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=5)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT_BYTES}")
            connection.execute("PRAGMA wal_autocheckpoint = 1000")
            migrate(connection, self._steps)
            note_ids(connection, self.path)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{self.path} cannot be opened: {error}") from error
        self._writer = connection

    def _commit(self, jobs: list[Job[Any]]) -> list[_Outcome]:
        connection = self._writer
        if connection is None:
            return [_Outcome(error=StoreError(f"{self.path.name} is not open")) for _ in jobs]
        outcomes: list[_Outcome] = []
        try:
            connection.execute("BEGIN IMMEDIATE")
            outcomes.extend(_run(connection, job) for job in jobs)
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.rollback()
            if not self.failing:
                log.error("store_failing", file=self.path.name, error=str(error))  # noqa: TRY400 (the disk's words suffice)
            self.failing = str(error)
            return [_Outcome(error=_translated(self.path.name, error)) for _ in jobs]
        if self.failing:
            log.info("store_recovered", file=self.path.name)
            self.failing = ""
        self.commits += 1
        if self.commits % _NOTE_EVERY == 0:
            self._note_ids(connection)
        return outcomes

    def _note_ids(self, connection: sqlite3.Connection) -> None:
        try:
            note_ids(connection, self.path)
        except (OSError, sqlite3.Error) as error:
            log.warning("ids_not_noted", file=self.path.name, error=str(error))

    def _read(self, query: Job[T]) -> T:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        try:
            if connection is None:
                connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=5)
                connection.execute("PRAGMA wal_autocheckpoint = 0")
                connection.execute("PRAGMA query_only = ON")
                self._local.connection = connection
                with self._readers_lock:
                    self._readers.append(connection)
            return query(connection)
        except sqlite3.Error as error:
            raise StoreError(f"{self.path.name} cannot be read: {error}") from error

    def _close(self) -> None:
        for reader in self._readers:
            reader.close()
        if self._writer is not None:
            try:
                self._note_ids(self._writer)
                self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                self._writer.close()
                open_mark(self.path).unlink(missing_ok=True)
            except (sqlite3.Error, OSError) as error:
                log.warning("store_not_closed_cleanly", file=self.path.name, error=str(error))
            self._writer = None


class _Outcome:
    """What became of one job: its result or its error."""

    __slots__ = ("error", "result")

    def __init__(self, *, result: object = None, error: Exception | None = None) -> None:
        self.result = result
        self.error = error


def _run(connection: sqlite3.Connection, job: Job[Any]) -> _Outcome:
    connection.execute("SAVEPOINT job")
    try:
        result = job(connection)
    except (sqlite3.OperationalError, sqlite3.DatabaseError) as error:
        if not isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError):
            raise
        _undo(connection)
        return _Outcome(error=error)
    except Exception as error:  # noqa: BLE001 (the job's own error goes to whoever queued it; the batch goes on)
        _undo(connection)
        return _Outcome(error=error)
    connection.execute("RELEASE job")
    return _Outcome(result=result)


def _undo(connection: sqlite3.Connection) -> None:
    connection.execute("ROLLBACK TO job")
    connection.execute("RELEASE job")


def _resolve(batch: list[_Waiting[Any]], outcomes: list[_Outcome]) -> None:
    for waiting, outcome in zip(batch, outcomes, strict=True):
        if waiting.done.done():
            continue
        if outcome.error is not None:
            waiting.done.set_exception(outcome.error)
        else:
            waiting.done.set_result(outcome.result)


def _translated(name: str, error: sqlite3.Error) -> StoreError:
    text = str(error)
    if "full" in text:
        return StoreError(f"{name}: the disk is full; nothing was recorded")
    if "readonly" in text or "read-only" in text:
        return StoreError(f"{name}: the data folder is read-only; nothing was recorded")
    return StoreError(f"{name}: {text}; nothing was recorded")
