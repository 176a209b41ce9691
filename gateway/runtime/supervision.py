"""Supervised tasks, each with a name and a restart rule, and the progress of parts for the watchdog."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Self

import structlog

from drivers.backoff import Backoff
from gateway.runtime.clock import Clock

__all__ = [
    "Backoff",
    "Progress",
    "Supervisor",
    "heed_cancellation",
    "heeding_cancellation",
]

log = structlog.get_logger(__name__)


class Progress:
    """The heartbeats of named parts, for the watchdog. A part whose heartbeat is overdue counts as stuck."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._limits: dict[str, float] = {}
        self._last: dict[str, float] = {}

    def expect(self, part: str, *, within: float) -> None:
        """Require a heartbeat of `part` at least every `within` seconds from now on."""
        self._limits[part] = within
        self._last[part] = self._clock.monotonic()

    def beat(self, part: str) -> None:
        """Record a heartbeat of `part`."""
        self._last[part] = self._clock.monotonic()

    def forget(self, part: str) -> None:
        """Expect no more heartbeats of `part`."""
        self._limits.pop(part, None)
        self._last.pop(part, None)

    @property
    def parts(self) -> frozenset[str]:
        """The parts of which heartbeats are expected."""
        return frozenset(self._limits)

    def stuck(self) -> tuple[str, ...]:
        """Return the parts whose heartbeat is overdue, by name."""
        now = self._clock.monotonic()
        return tuple(sorted(part for part, limit in self._limits.items() if now - self._last[part] > limit))


class Supervisor:
    """Runs children inside one TaskGroup.

    A child of `keep` is restarted after a backoff when it fails or ends. Failures are logged with the child's name and
    never affect other children. Leaving the context cancels all children and waits for them; an exception from the body
    of the context is raised unchanged.
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

        Cancelling the task ends the child for good. Raises RuntimeError while the supervisor's context is being left.
        """
        return self._start(name, self._kept(name, child))

    def once(self, name: str, child: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `child` once; a failure is only logged, with its name.

        Raises RuntimeError while the supervisor's context is being left.
        """
        try:
            task = self._start(name, self._guarded(name, child))
        except RuntimeError:
            child.close()
            raise
        task.add_done_callback(lambda _: child.close())  # one that is cancelled before its first step never began it
        return task

    def _start(self, name: str, body: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        if self._leaving:  # nobody would cancel it, and leaving would wait for it forever
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
        except Exception:  # a child's fault must not reach its siblings; a result is passed on by other means
            log.exception("task_failed", task=name)


def _cancelled_from_outside() -> bool:
    """Return whether the running task itself was cancelled.

    Otherwise a CancelledError came from something that it awaited, and ending because of it would be silent.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def heed_cancellation() -> None:
    """Raise CancelledError if this task was cancelled.

    A library may swallow a cancellation, or raise an error of its own in its place.
    """
    if _cancelled_from_outside():
        raise asyncio.CancelledError


@contextmanager
def heeding_cancellation() -> Iterator[None]:
    """Heed a cancellation at the end of the context, also instead of an error."""
    try:
        yield
    finally:
        heed_cancellation()
