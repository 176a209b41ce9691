"""Helpers of a run: random generators, a folder in memory, and the report of tasks that fail."""

from __future__ import annotations

import asyncio
import gc
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import structlog
from structlog.types import EventDict, WrappedLogger

from simulation.virtual_site import observations as seen
from simulation.virtual_site.virtual_time import VirtualLoop
from simulation.virtual_site.witness import Witness

T = TypeVar("T")
_MEMORY = Path("/dev/shm")  # noqa: S108 (a folder in memory; what goes there gets a name of its own)


def fresh_folder() -> Path:
    """Make a new folder, in memory where possible. The caller removes it."""
    return Path(tempfile.mkdtemp(prefix="edge-gateway-simulation-", dir=_MEMORY if _MEMORY.is_dir() else None))


def on_virtual_time(
    loop: VirtualLoop, *, seed: int, witness: Witness, run: Callable[[Path], Coroutine[Any, Any, T]]
) -> T:
    """Run something on a loop, in this thread, with a folder of its own, and return its outcome.

    Meanwhile, Python's shared random generator is seeded and logging is off; both are restored afterwards.
    """
    base = fresh_folder()
    try:
        with (
            own_chance(seed),
            failures_to(witness, loop),
            without_collecting(),
            asyncio.Runner(loop_factory=lambda: loop) as runner,
        ):
            return runner.run(run(base))
    finally:
        shutil.rmtree(base, ignore_errors=True)


def dice_of(seed: int, name: str) -> random.Random:
    """Make the random generator of one part of a run, which is independent of all other parts."""
    return random.Random(f"{seed}-{name}")  # noqa: S311 (chance of a simulation)


@contextmanager
def own_chance(seed: int) -> Iterator[None]:
    """Seed Python's shared random generator inside this context, because backoffs take their jitter from it."""
    before = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)


@contextmanager
def failures_to(witness: Witness, loop: VirtualLoop) -> Iterator[None]:
    """Inside this context, switch the log off, and report failed tasks to the witness."""
    before = structlog.get_config()

    def listen(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        if event.get("event") == "task_failed":
            witness.see(seen.TaskFailed(loop.time(), str(event.get("task")), _error_now()))
        raise structlog.DropEvent

    structlog.configure(processors=[listen], cache_logger_on_first_use=False)
    try:
        yield
    finally:
        structlog.configure(**before)


def _error_now() -> str:
    return repr(sys.exc_info()[1])


@contextmanager
def without_collecting() -> Iterator[None]:
    """Inside this context, collect garbage rarely: nearly none is cyclic, and that saves a fifth of the time."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
