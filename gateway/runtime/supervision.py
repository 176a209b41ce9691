"""Owned tasks: each child of the one TaskGroup has a name, a restart rule and an owner who hears of its end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Self

import structlog

from gateway.runtime.clock import Clock

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits between restarts: doubling from `first` to `longest` seconds, with up to half of jitter."""

    first: float = 0.5
    longest: float = 30.0

    def wait(self, failures: int) -> float:
        """Seconds to wait after the given number of failures in a row (1 or more)."""
        full = min(self.longest, self.first * 2.0 ** min(failures - 1, 16))
        return full * (0.5 + random.random() / 2)  # noqa: S311 (spreads load; guards nothing)


class Progress:
    """The progress of named parts, which feeds the watchdog. Each reports that it moved on; a stuck one is named."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._limits: dict[str, float] = {}
        self._last: dict[str, float] = {}

    def expect(self, part: str, *, within: float) -> None:
        """Require a beat of `part` at least every `within` seconds from now on."""
        self._limits[part] = within
        self._last[part] = self._clock.monotonic()

    def beat(self, part: str) -> None:
        """`part` has moved on."""
        self._last[part] = self._clock.monotonic()

    def forget(self, part: str) -> None:
        """`part` is no longer expected."""
        self._limits.pop(part, None)
        self._last.pop(part, None)

    @property
    def parts(self) -> frozenset[str]:
        """The parts that are expected to move."""
        return frozenset(self._limits)

    def stuck(self) -> tuple[str, ...]:
        """Return the parts that are overdue, in name order."""
        now = self._clock.monotonic()
        return tuple(sorted(part for part, limit in self._limits.items() if now - self._last[part] > limit))


class Supervisor:
    """Runs children inside one TaskGroup.

    A child that must not end (`keep`) is restarted after a backoff when it fails; its failure is logged with its name
    and never reaches a sibling. Leaving the context cancels all children and waits for them; what the body of the
    context raised goes on as it was.
    """

    def __init__(self, *, clock: Clock, backoff: Backoff | None = None) -> None:
        self._clock = clock
        self._backoff = backoff or Backoff()
        self._group = asyncio.TaskGroup()
        self._children: set[asyncio.Task[None]] = set()
        self._leaving = False

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._leaving = True
        for child in self._children:
            child.cancel()
        # The group is not told of the body's exception: it would wrap it, and the children are cancelled already.
        await self._group.__aexit__(None, None, None)

    def keep(self, name: str, child: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """Run `child()` for as long as this supervisor lives, restarting it after failures.

        Cancelling the task ends the child for good. Raises RuntimeError when this supervisor is being left.
        """
        return self._start(name, self._kept(name, child))

    def once(self, name: str, child: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `child` to its end; a failure is logged with its name and goes no further.

        Raises RuntimeError when this supervisor is being left.
        """
        try:
            return self._start(name, self._guarded(name, child))
        except RuntimeError:
            child.close()
            raise

    def _start(self, name: str, body: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        if self._leaving:  # nobody would cancel it, and leaving would wait for it for ever
            body.close()
            raise RuntimeError(f"task {name!r} was started while its supervisor was being left")
        task = self._group.create_task(body, name=name)
        self._children.add(task)
        task.add_done_callback(self._children.discard)
        return task

    async def _kept(self, name: str, child: Callable[[], Awaitable[None]]) -> None:
        failures = 0
        while True:
            started = self._clock.monotonic()
            try:
                await child()
                log.warning("task_ended", task=name)
            except asyncio.CancelledError:
                if _cancelled_from_outside():
                    raise
                log.exception("task_failed", task=name)
            except Exception:  # a child's fault must not reach its siblings; it is logged and the child restarted
                log.exception("task_failed", task=name)
            failures = 1 if self._clock.monotonic() - started > self._backoff.longest else failures + 1
            await asyncio.sleep(self._backoff.wait(failures))

    async def _guarded(self, name: str, child: Coroutine[Any, Any, None]) -> None:
        try:
            await child
        except asyncio.CancelledError:
            if _cancelled_from_outside():
                raise
            log.exception("task_failed", task=name)
        except Exception:  # a child's fault must not reach its siblings; whoever waits for a result has its own way
            log.exception("task_failed", task=name)


def _cancelled_from_outside() -> bool:
    """Return whether the running task was asked to end.

    Otherwise a CancelledError came out of something that it waited for, and to end for that would be to die silently.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
