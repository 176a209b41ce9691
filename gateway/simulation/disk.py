"""The box's disk: how long work on it takes, when it hangs, and what is still there after the power was cut.

The model of durability: what SQLite has synced is there. A cut in the middle of a commit leaves the files as they were
before it, or that and a part of what the commit appended to the write-ahead log, or all of it; nobody was told of that
commit. Between commits nothing is at stake. The files are real, on a folder in memory where there is one.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

_WAL = "site.db-wal"
_HEADER = 32


class CutAt(StrEnum):
    """In which moment the power is cut."""

    REST = "between commits"
    BEFORE = "in a commit, nothing of it written"
    TORN = "in a commit, its log torn"
    AFTER = "in a commit, all of it written"


class Disk:
    """Work for executors, done in place. Fulfils `virtual_time.Work`. `folder` is where the data is at present."""

    def __init__(self, *, base: Path, dice: random.Random, monotonic: Callable[[], float]) -> None:
        self._base = base
        self._dice = dice
        self._monotonic = monotonic
        self._number = 0
        self._free_at: dict[int, float] = {}
        self._cut: tuple[CutAt, Callable[[], None]] | None = None
        self.hangs_until = float("-inf")
        self.folder = base / "life-0"
        self.folder.mkdir(parents=True)

    def do(self, job: Callable[[], Any], executor: object) -> tuple[Callable[[], Any], float]:
        """See `Work`. Jobs of one executor end in their order; a hanging disk holds writes, not what is in memory."""
        writes = _writes(executor)
        outcome = self._do_with_cut(job) if writes else _attempt(job)
        now = self._monotonic()
        took = self._dice.uniform(0.0005, 0.004)
        if writes:
            took += max(0.0, self.hangs_until - now)
        ends = max(self._free_at.get(id(executor), now), now + took) if writes else now + took
        if writes:
            self._free_at[id(executor)] = ends
        return outcome, ends - now

    def cut_at_next_commit(self, kind: CutAt, then: Callable[[], None]) -> None:
        """Cut the power within the next piece of writing work; `then` is called in that instant."""
        self._cut = (kind, then)

    def cut_now(self) -> None:
        """Cut the power between commits."""
        self._cut = None
        self._move_on(self.folder)

    def restarted(self) -> None:
        """The box is up again."""
        self._free_at.clear()
        self._cut = None

    def surviving_copy(self) -> Path:
        """A copy of what would be left if the power went now."""
        copy = self._base / f"copy-{self._number}"
        _copy(self.folder, copy)
        return copy

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
        """What survived becomes the data of the next life; the old folder is left to the ghost of the last one."""
        self._number += 1
        fresh = self._base / f"life-{self._number}"
        _copy(surviving, fresh)
        self.folder = fresh


def _writes(executor: object) -> bool:
    """Whether these are a writer's jobs: a pool of one thread; readers have more."""
    return getattr(executor, "_max_workers", 1) == 1


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
    """Append a part of what was written to the log; nothing when the log was begun anew meanwhile."""
    if not (before.exists() and after.exists()):
        return
    old, new = before.read_bytes(), after.read_bytes()
    if len(new) <= len(old) or old[:_HEADER] != new[:_HEADER]:
        return
    before.write_bytes(new[: dice.randrange(len(old), len(new))])
