"""One SQLite connection in a thread of its own, to which a job of many statements goes in one hop."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

import aiosqlite

T = TypeVar("T")

Job = Callable[[sqlite3.Connection], T]
Connector = Callable[[], sqlite3.Connection]


class Connection(aiosqlite.Connection):
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

    def __call__(self, connector: Connector, *, name: str) -> Connection:
        """Return a new connection; the arguments are those of `Connection`."""
        ...


def _into(answer: list[T], job: Job[T], handle: sqlite3.Connection) -> None:
    answer.append(job(handle))
