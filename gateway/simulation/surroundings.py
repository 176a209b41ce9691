"""Surroundings of a simulation: its own randomness, a folder in memory, and a listener for failed tasks."""

from __future__ import annotations

import gc
import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog
from structlog.types import EventDict, WrappedLogger

from gateway.simulation import observations as seen
from gateway.simulation.virtual_time import VirtualLoop
from gateway.simulation.witness import Witness

_MEMORY = Path("/dev/shm")  # noqa: S108 (a folder in memory; what goes there gets a name of its own)


def fresh_folder() -> Path:
    """Make a new folder, in memory where possible. The caller removes it."""
    return Path(tempfile.mkdtemp(prefix="edge-gateway-simulation-", dir=_MEMORY if _MEMORY.is_dir() else None))


@contextmanager
def own_chance(seed: int) -> Iterator[None]:
    """Backoffs take their jitter from the process's shared source."""
    before = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)


@contextmanager
def failures_to(witness: Witness, loop: VirtualLoop) -> Iterator[None]:
    """Nothing is logged; a task that a supervisor saw fail is an observation."""
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
    """Nearly nothing here goes round in circles: collecting seldom saves a fifth of the time."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
