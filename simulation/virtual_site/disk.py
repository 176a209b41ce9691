"""The box's disk: how long work on it takes, when it hangs, and what survives a power cut.

The model of durability: what SQLite has synced survives. After a power cut within a commit, the write-ahead log has
nothing, a part, or all of what that commit appended; the commit was never acknowledged. A power cut between commits
loses nothing. The files are real, in a folder in memory where the machine has one.
"""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from gateway.store import Connector, Job, SqliteConnection

T = TypeVar("T")

_WAL = "site.db-wal"
_HEADER = 32


class CutAt(StrEnum):
    """The moment of a power cut."""

    REST = "between commits"
    BEFORE = "in a commit, nothing of it written"
    TORN = "in a commit, its log torn"
    AFTER = "in a commit, all of it written"


class Disk:
    """The doer of work that the daemon gives to threads and to the store's connections: it does it in place.

    Fulfils `virtual_time.Work`. `folder` is the present data folder.
    """

    def __init__(self, *, base: Path, dice: random.Random, monotonic: Callable[[], float]) -> None:
        self._base = base
        self._dice = dice
        self._monotonic = monotonic
        self._number = 0
        self._free_at: dict[str, float] = {}
        self._cut: tuple[CutAt, Callable[[], None]] | None = None
        self.hangs_until = float("-inf")
        self.folder = base / "life-0"
        self.folder.mkdir(parents=True)

    def do(self, job: Callable[[], Any]) -> tuple[Callable[[], Any], float]:
        """Do a job now; return a function that gives its result or raises its error, and the seconds that it takes."""
        return self._do(job, thread="worker", writes=True)

    def connect(self, connector: Connector, *, name: str) -> SqliteConnection:
        """Return a connection whose jobs are done in place."""
        return _ConnectionInPlace(connector, name=name, do=partial(self._do, thread=name, writes="write" in name))

    def _do(self, job: Callable[[], Any], *, thread: str, writes: bool) -> tuple[Callable[[], Any], float]:
        """Do a job so that one thread's writes end in order. A hanging disk delays them, but not reads from memory."""
        outcome = self._do_with_cut(job) if writes else _attempt(job)
        now = self._monotonic()
        took = self._dice.uniform(0.0005, 0.004)
        if not writes:
            return outcome, took
        took += max(0.0, self.hangs_until - now)
        ends = max(self._free_at.get(thread, now), now + took)
        self._free_at[thread] = ends
        return outcome, ends - now

    def cut_at_next_commit(self, kind: CutAt, then: Callable[[], None]) -> None:
        """Cut the power within the next piece of writing work; `then` is called in that instant."""
        self._cut = (kind, then)

    def cut_now(self) -> None:
        """Cut the power between commits."""
        self._cut = None
        self._move_on(self.folder)

    def restarted(self) -> None:
        """Start the box again."""
        self._free_at.clear()
        self._cut = None

    def _do_with_cut(self, job: Callable[[], Any]) -> Callable[[], Any]:
        if self._cut is None:
            return _attempt(job)
        (kind, then), self._cut = self._cut, None
        before = self._base / "before"
        _copy(self.folder, before)
        outcome = _attempt(job)
        after = self.folder
        if kind is CutAt.TORN:
            _tear(before / _WAL, after / _WAL, self._dice)
        self._move_on(after if kind is CutAt.AFTER else before)
        shutil.rmtree(before)
        then()
        return outcome

    def _move_on(self, surviving: Path) -> None:
        """Make the surviving copy the next life's folder. Tasks of the last life that still run use the old one."""
        self._number += 1
        fresh = self._base / f"life-{self._number}"
        _copy(surviving, fresh)
        self.folder = fresh


class _ConnectionInPlace(SqliteConnection):
    """A connection without a thread. The outcome of a job is known after the time that the disk takes."""

    def __init__(
        self, connector: Connector, *, name: str, do: Callable[[Callable[[], Any]], tuple[Callable[[], Any], float]]
    ) -> None:
        super().__init__(connector, name=name)
        self._do = do

    async def open(self) -> None:
        await self._outcome(self._connect_in_thread)

    async def run(self, job: Job[T]) -> T:
        assert self._handle is not None  # noqa: S101 (the store runs jobs on open connections alone)
        return await self._outcome(partial(job, self._handle))

    async def close(self) -> None:
        if self._handle is not None:
            await self._outcome(self._handle.close)

    async def _outcome(self, job: Callable[[], T]) -> T:
        outcome: Callable[[], T]
        outcome, seconds = self._do(job)
        await asyncio.sleep(seconds)
        return outcome()


def _attempt(job: Callable[[], Any]) -> Callable[[], Any]:
    try:
        result = job()
    except Exception as error:  # noqa: BLE001 (it belongs to whoever waits for the job, and is raised there)
        failure = error

        def fail() -> Any:
            raise failure

        return fail
    return lambda: result


def _copy(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)


def _tear(before: Path, after: Path, dice: random.Random) -> None:
    """Append a part of what the commit wrote to the log; nothing when the log was started again meanwhile."""
    if not (before.exists() and after.exists()):
        return
    old, new = before.read_bytes(), after.read_bytes()
    if len(new) <= len(old) or old[:_HEADER] != new[:_HEADER]:
        return
    before.write_bytes(new[: dice.randrange(len(old), len(new))])
