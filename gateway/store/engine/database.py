"""One SQLite file: one connection that writes and checkpoints, with group commit, and connections that read.

WAL with synchronous=FULL: when `write` returns, its work is on disk. There is only one writing connection, because
SQLite 3.7.0 to 3.51.2 can corrupt a WAL file that two connections write or checkpoint (the WAL-reset bug).
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import structlog

from gateway.domain.errors import StoreError
from gateway.runtime.data_folder import takes_data
from gateway.runtime.timings import Timings, UsualTime
from gateway.store.engine.connection import Connect, Job, Readers, SqliteConnection
from gateway.store.engine.faults import DiskTakesNothing, fault_of, is_damage, is_own, refused
from gateway.store.engine.migrations import Migration, refuse_newer
from gateway.store.engine.opening import WAL_PAGES, Opening, note_reached
from gateway.store.engine.recovery import boot_mark, closed_mark, note_ids, read_without_writing

T = TypeVar("T")

log = structlog.get_logger(__name__)

QUEUE = 4096
_BATCH = 256
_NOTE_EVERY = 500  # commits of at most _BATCH jobs: well under ids.SALVAGE_GAP ids
TEND_SECONDS = 5.0
LONG_WAL_PAGES = 8 * WAL_PAGES
_HIGHEST = 2**63
_SLOW_SECONDS = 0.5
"""Commits are slow from here on. On a worn card they take some tenths of a second, and a person at a button waits."""


class JobResult:
    """Outcome of one job: its result or its error."""

    __slots__ = ("error", "result")

    def __init__(self, *, result: object = None, error: Exception | None = None) -> None:
        self.result = result
        self.error = error


def commit(connection: sqlite3.Connection, jobs: Sequence[Job[Any]]) -> list[JobResult]:
    """Run the jobs and commit them together; on return they are on disk.

    Of a job that fails by its own fault, only its own work is undone. Raises sqlite3.Error if the disk refuses; then
    no job's work is kept.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")
        outcomes = [_run(connection, job) for job in jobs]
        connection.execute("COMMIT")
    except BaseException:  # a refusing disk or an interrupt: no transaction may stay open for the next commit
        if connection.in_transaction:
            connection.rollback()
        raise
    return outcomes


def _run(connection: sqlite3.Connection, job: Job[Any]) -> JobResult:
    connection.execute("SAVEPOINT job")
    try:
        result = job(connection)
    except sqlite3.Error as error:
        if not is_own(error):
            raise
        _undo(connection)
        mistake = StoreError(f"the statement was refused: {error}")
        mistake.__cause__ = error
        return JobResult(error=mistake)
    except Exception as error:  # noqa: BLE001 (the job's own error goes to whoever queued it; the batch goes on)
        _undo(connection)
        return JobResult(error=error)
    connection.execute("RELEASE job")
    return JobResult(result=result)


def _undo(connection: sqlite3.Connection) -> None:
    connection.execute("ROLLBACK TO job")
    connection.execute("RELEASE job")


def is_id(number: int) -> bool:
    """Return whether a row can have this id: SQLite's ids end at 2**63 - 1, and those of rows begin at 1."""
    return 0 < number < _HIGHEST


class _Waiting(Generic[T]):
    """A queued job, the future of its caller, and a function to call once the work is on disk."""

    __slots__ = ("done", "job", "then")

    def __init__(self, job: Job[T], done: asyncio.Future[T], then: Callable[[], None] | None) -> None:
        self.job = job
        self.done = done
        self.then = then

    def settle(self, outcome: JobResult) -> None:
        """Call `then` after success, and give the caller the outcome unless it was cancelled."""
        if outcome.error is None and self.then is not None:
            self.then()
        if self.done.done():
            return
        if outcome.error is not None:
            self.done.set_exception(outcome.error)
        else:
            self.done.set_result(outcome.result)  # type: ignore[arg-type]  # the job's own result


class Database:
    """A SQLite file with one writer and group commit.

    `write` and `read` work between `open` and `close`. `run` is a task that maintains the file meanwhile.
    `generation` rises with every commit. `commit_seconds` are the durations of commits.

    If the disk is full or read-only at the opening, the file is opened for reading alone. `run` opens it for writing
    as soon as the disk takes data again. Until then it is read without locks and without an index on disk, so all
    readers are closed during that later opening.
    """

    def __init__(
        self,
        *,
        path: Path,
        steps: tuple[Migration, ...],
        after_salvage: str = "",
        mend: Callable[[sqlite3.Connection], str] | None = None,
        opened: Callable[[sqlite3.Connection], None] | None = None,
        connect: Connect = SqliteConnection,
        boot: str = "",
    ) -> None:
        """Prepare a file.

        Args:
            path: the file.
            steps: the migrations of its schema, in order.
            after_salvage: SQL that makes a salvaged file consistent again.
            mend: called after that SQL, in the writing thread; corrects the rows and returns a sentence about it, ""
                for nothing to report.
            opened: called in the writing thread with each file that was opened for writing.
            connect: makes connections; simulations pass their own, on virtual time.
            boot: the present boot of the machine, "" if unknown; see `recovery.boot_mark`.
        """
        self._opening = Opening(
            path=path, steps=steps, after_salvage=after_salvage, mend=mend, opened=opened, boot=boot
        )
        self.path = path
        self.commits = 0
        self.generation = 0
        self.commit_seconds = Timings()
        self._usual = UsualTime(limit_seconds=_SLOW_SECONDS)
        self._steps = steps
        self._connect = connect
        self._is_open = False
        self._queue: deque[_Waiting[Any]] = deque()
        self._room = asyncio.Semaphore(QUEUE)
        self._idle = asyncio.Event()
        self._idle.set()
        self._writer: SqliteConnection | None = None
        self._readers = Readers(
            path=path, connect=connect, without_writing=lambda: self._writer is None, damaged=self._note_damage
        )
        self._committing: asyncio.Task[None] | None = None
        self._in_commit = 0
        self._tending: asyncio.Task[None] | None = None
        self._failing = ""
        self._damage = ""

    @property
    def was_unclean(self) -> bool:
        """True if the file was not closed properly last time: after a crash or a power cut."""
        return self._opening.was_unclean

    @property
    def salvaged(self) -> str | None:
        """One sentence if rows were lost: the file was damaged and rebuilt, or is older than ids already given."""
        return self._opening.salvaged

    @property
    def failing(self) -> str:
        """The reason why commits fail at present; "" while they work."""
        return f"{self._failing}; nothing is recorded" if self._failing else ""

    @property
    def damaged(self) -> str:
        """The damage that was found in the open file; rows elsewhere in it are read and written. "" without any."""
        return self._damage

    @property
    def slow_seconds(self) -> float:
        """The duration that most recent commits exceed, in seconds; 0 while commits are quick."""
        return self._usual.slow_seconds

    @property
    def waiting(self) -> int:
        """The number of writes that are queued or in a commit that has not ended."""
        return len(self._queue) + self._in_commit

    async def open(self) -> None:
        """Recover the file if needed, migrate it and open it; for reading alone if the disk is full or read-only.

        Raises StoreError with one sentence.
        """
        try:
            self._writer = await self._opened_for_writing()
        except DiskTakesNothing as refusal:
            if not await asyncio.to_thread(self._can_be_read):
                raise
            self._failing = refusal.fault
            log.error("store_only_read", file=self.path.name, error=str(refusal))  # noqa: TRY400 (the sentence says it all)
        try:
            await self._readers.start()
        except BaseException:  # unreadable or cancelled: nobody else would close the writer
            if self._writer is not None:
                await self._writer.close()
                self._writer = None
            raise
        self._is_open = True

    async def run(self) -> None:
        """Maintain the file until cancelled: try commits again after failures, and keep the WAL short."""
        while True:
            await asyncio.sleep(TEND_SECONDS)
            self._tending = asyncio.get_running_loop().create_task(self._tend(), name=f"tend-{self.path.stem}-once")
            await asyncio.shield(self._tending)  # work in a thread cannot be cancelled, and `close` must wait for it

    async def write(self, job: Job[T], *, then: Callable[[], None] | None = None) -> T:
        """Run `job` in the next commit and return its result once it is on disk.

        `job` runs in the writing thread inside a savepoint: an exception undoes only its own work and is raised here.
        `then` is called on the loop once the work is on disk. If the caller is cancelled, the job is still committed
        and `then` is called.

        Raises StoreError if the disk refuses the commit, of which nothing is then kept, or if the file is not open.
        """
        self._refuse_unless_open()
        await self._room.acquire()
        if not self._is_open:  # it was closed while there was no room
            self._room.release()
            raise self._not_open()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self._queue.append(_Waiting(job, done, then))
        if self._idle.is_set():
            self._idle.clear()
            # The task begins in the loop's next turn, so that all writes of this turn share its commit.
            self._committing = loop.create_task(self._commit_queue(), name=f"commit-{self.path.stem}")
        return await done

    async def read(self, query: Job[T], *, lengthy: bool = False, alone: bool = False) -> T:
        """Run `query` on a reading connection, beside the writer, in one snapshot of all earlier commits.

        `lengthy`: the query may take tens of milliseconds. Such queries run one at a time on a connection of their own,
        so that other queries do not wait for them.
        `alone`: the query is one statement with one row, which is a snapshot by itself and needs no transaction.

        Raises StoreError if the file cannot be read or is not open.
        """
        self._refuse_unless_open()
        return await self._readers.read(query, lengthy=lengthy, alone=alone)

    async def in_memory(self, job: Job[T]) -> T:
        """Run `job` on a connection to a new database in memory, to which this file is attached as `file` meanwhile.

        It is a lengthy query, which may keep the connection and use it in another thread. Raises StoreError.
        """

        def query(_: sqlite3.Connection) -> T:
            memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False, uri=True)
            try:
                self._readers.attach(memory)
                result = job(memory)
                memory.execute("DETACH file")
            except BaseException:  # whatever ends the job: the file must not stay attached
                memory.close()
                raise
            return result

        return await self.read(query, lengthy=True, alone=True)

    async def rows(
        self, sql: str, parameters: Sequence[object] | Mapping[str, object] = (), *, of: Callable[[Any], T]
    ) -> tuple[T, ...]:
        """Run one statement as `read` does, and return the result of `of` for each row, in order."""
        return await self.read(lambda connection: tuple(map(of, connection.execute(sql, parameters))))

    async def close(self) -> None:
        """Commit all queued writes, checkpoint and close. Without failures, the next opening counts as clean."""
        if not self._is_open:
            return
        self._is_open = False
        if self._tending is not None:
            await asyncio.wait({self._tending})
        await self._readers.stop()
        await self._idle.wait()
        writer, self._writer = self._writer, None
        if writer is not None:
            await writer.run(self._finish)
            await writer.close()

    def doubt_end(self) -> None:
        """Make the next opening treat this end as unclean. Call it only after `close`. Blocks on the disk."""
        closed_mark(self.path).unlink(missing_ok=True)

    def _refuse_unless_open(self) -> None:
        if not self._is_open:
            raise self._not_open()

    def _not_open(self) -> StoreError:
        return StoreError(f"{self.path.name} is not open")

    async def _opened_for_writing(self) -> SqliteConnection:
        connection = self._connect(self._opening.connect, name=f"write-{self.path.stem}")
        await connection.open()
        return connection

    def _can_be_read(self) -> bool:
        """Return whether this program can read the file without writing. For a thread."""
        try:
            with closing(read_without_writing(self.path)) as connection:
                return refuse_newer(connection, self._steps) > 0
        except (sqlite3.Error, OSError):
            return False

    async def _commit_queue(self) -> None:
        while self._queue:
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), _BATCH))]
            self._in_commit = len(batch)
            began = asyncio.get_running_loop().time()
            outcomes = await self._commit([waiting.job for waiting in batch])
            self.commit_seconds.add(asyncio.get_running_loop().time() - began)
            self.generation += 1
            for waiting, outcome in zip(batch, outcomes, strict=True):
                self._room.release()
                waiting.settle(outcome)
        self._in_commit = 0
        self._idle.set()

    async def _commit(self, jobs: Sequence[Job[Any]]) -> list[JobResult]:
        """Commit the jobs together. Never raises: each job has its outcome."""
        if self._writer is not None:
            loop = asyncio.get_running_loop()
            began = loop.time()
            outcomes = await self._writer.run(partial(self._commit_in_thread, jobs))
            if jobs:  # an empty commit does not wait for the disk, so its time says nothing
                self._usual.took(loop.time() - began)
            return outcomes
        self.commits += 1
        return [JobResult(error=StoreError(f"{self._failing}; nothing was recorded")) for _ in jobs]

    def _commit_in_thread(self, jobs: Sequence[Job[Any]], connection: sqlite3.Connection) -> list[JobResult]:
        self.commits += 1
        try:
            outcomes = commit(connection, jobs)
        except Exception as error:  # noqa: BLE001 (whatever it is, those who wait must hear of it, and the writer goes on)
            return self._all_refused(len(jobs), error)
        if self._failing:
            log.info("store_recovered", file=self.path.name)
            self._failing = ""
        if self.commits % _NOTE_EVERY == 0:
            note_reached(connection, self.path)
        return outcomes

    def _all_refused(self, jobs: int, error: Exception) -> list[JobResult]:
        self._doubt_file()
        if not self._failing:
            log.error("store_failing", file=self.path.name, error=str(error))
        if is_damage(error):
            self._damage = str(error)
        refusals = [refused(self.path, error, "nothing was recorded") for _ in range(jobs)]
        for refusal in refusals:
            refusal.__cause__ = error
        self._failing = fault_of(self.path, error)
        return [JobResult(error=refusal) for refusal in refusals]

    def _note_damage(self, said: str) -> None:
        self._doubt_file()
        self._damage = said

    def _doubt_file(self) -> None:
        """Have the file checked at the next start, unless it is closed properly. For a thread."""
        with contextlib.suppress(OSError):  # a disk that takes nothing keeps the mark, but it also keeps its pages
            boot_mark(self.path).unlink(missing_ok=True)

    async def _tend(self) -> None:
        """Open the file for writing if it is not, run a trial commit while commits fail or are slow, and checkpoint."""
        if self._writer is None:
            await self._take_up()
        await self._commit([_rewrite_version] if self._failing or self.slow_seconds else [])
        if self._writer is not None and not self._failing:
            await self._writer.run(self._checkpoint)

    def _checkpoint(self, connection: sqlite3.Connection) -> None:
        try:
            _, pages, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if pages > LONG_WAL_PAGES:
                # Readers that always overlap let the WAL grow, also when all its pages are in the database file.
                # RESTART waits for present readers; new ones do not wait.
                connection.execute("PRAGMA wal_checkpoint(RESTART)")
        except sqlite3.Error as error:
            log.warning("checkpoint_failed", file=self.path.name, error=str(error))

    async def _take_up(self) -> None:
        """Open the file for writing if the disk takes data by now."""
        if not await asyncio.to_thread(takes_data, self.path.parent):
            return
        async with self._readers.aside():  # readers without locks must not have the file open while it changes
            try:
                self._writer = await self._opened_for_writing()
            except StoreError as error:
                log.warning("store_still_only_read", file=self.path.name, error=str(error))

    def _finish(self, connection: sqlite3.Connection) -> None:
        """Close in the writing thread, and mark the end as clean unless commits fail or the file is damaged."""
        try:
            note_ids(connection, self.path)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.close()
            if not self._failing and not self._damage:
                closed_mark(self.path).touch()
        except (sqlite3.Error, OSError) as error:
            log.warning("store_not_closed_cleanly", file=self.path.name, error=str(error))


def _rewrite_version(connection: sqlite3.Connection) -> None:
    """Write a page with its present content, as a trial of whether the disk takes commits again."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.execute(f"PRAGMA user_version = {int(version)}")
