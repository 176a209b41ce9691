"""Time that passes only when nothing is left to do: an event loop without a selector, and a clock that can step."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, Protocol, TypeVar

from gateway.runtime.clock import KeptTime, Stamp

T = TypeVar("T")


class Work(Protocol):
    """The doer of work on the disk that the daemon gives to threads."""

    def do(self, job: Callable[[], Any]) -> tuple[Callable[[], Any], float]:
        """Do a job now; return a function that gives its result or raises its error, and the seconds that it takes."""
        ...


class Connects(Protocol):
    """The network of a loop without sockets."""

    async def connect(self, protocol_factory: Callable[[], asyncio.BaseProtocol], host: str) -> asyncio.Transport:
        """Connect to a host. Raises OSError."""
        ...


class DeadEnd(RuntimeError):
    """The loop can never go on: nothing is ready, and no timer is set."""


class _NumberedTask(asyncio.Task[T]):
    """A task whose hash is its number.

    A TaskGroup cancels its tasks in the order of a set. By the usual hash that order follows from their addresses, so
    that runs of one seed would differ.
    """

    def __init__(self, number: int, coro: Coroutine[Any, Any, T], **options: Any) -> None:
        self._number = number
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self._number


class VirtualLoop(asyncio.BaseEventLoop):
    """A loop whose `time()` jumps to the next timer as soon as nothing is ready.

    `quiet_until` may be set to an instant before which nothing of interest happens. Then time jumps there at once, and
    timers that were due earlier fire late, together and in order. `work` does jobs for executors in place, in order.
    """

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._numbers = itertools.count()
        self._ready: deque[asyncio.Handle]
        self._stopping: bool
        self.work: Work | None = None
        self.network: Connects | None = None
        self.quiet_until: Callable[[], float] | None = None
        tasks = itertools.count()
        self.set_task_factory(lambda _, coro, **options: _NumberedTask(next(tasks), coro, loop=self, **options))

    def time(self) -> float:
        """Return the seconds since the simulation's start."""
        return self._now

    def call_at(  # type: ignore[override]  # as below
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Set a timer. Timers of the same instant fire in the order in which they were set."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._numbers), timer))
        return timer

    def _run_once(self) -> None:
        """Run what is ready; when nothing is, move time on to the next timer."""
        ready, timers = self._ready, self._timers
        if not ready and not self._stopping:
            while timers and timers[0][2].cancelled():
                heapq.heappop(timers)
            if not timers:
                raise DeadEnd("nothing is left to happen")
            self._pass_time_to(timers[0][0])
        now = self._now
        while timers and timers[0][0] <= now:
            ready.append(heapq.heappop(timers)[2])
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle.cancelled():
                handle._run()  # noqa: SLF001 (this is the loop, whose handles these are)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Leave a cancelled timer in the heap until its time."""

    def _pass_time_to(self, when: float) -> None:
        if self.quiet_until is not None:
            when = max(when, self.quiet_until())
        self._now = max(when, self._now)

    def run_in_executor(  # type: ignore[override]  # BaseEventLoop spells its arguments' types as TypeVarTuples
        self,
        executor: Any,  # noqa: ARG002 (there is one line of work)
        func: Callable[..., T],
        *args: Any,
    ) -> asyncio.Future[T]:
        """Do the job in place; its outcome is known after the seconds that `work` returns."""
        done: asyncio.Future[T] = self.create_future()
        if self.work is None:
            done.set_result(func(*args))
            return done
        outcome, seconds = self.work.do(lambda: func(*args))

        def tell() -> None:
            if done.cancelled():
                return
            try:
                done.set_result(outcome())
            except Exception as error:  # noqa: BLE001 (the job's error belongs to whoever waits for it)
                done.set_exception(error)

        self.call_later(seconds, tell)
        return done

    async def create_connection(  # type: ignore[override]  # it knows host names alone
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], host: str, port: int, **_: Any
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """See `asyncio.AbstractEventLoop`."""
        if self.network is None:
            raise OSError(f"there is no network with {host}:{port}")
        transport = await self.network.connect(protocol_factory, host)
        return transport, transport.get_protocol()

    def _process_events(self, event_list: list[Any]) -> None:
        """Do nothing: there are no sockets."""

    def _write_to_self(self) -> None:
        """Do nothing: no thread waits to be woken."""


class VirtualClock:
    """Both clocks of the simulated box. `monotonic` is the loop's time. The wall clock may be wrong and untrusted.

    `true_micros` is the time that a right wall clock would show.
    """

    def __init__(self, *, monotonic: Callable[[], float], start_micros: int) -> None:
        self._monotonic = monotonic
        self._start = start_micros
        self._offset = 0
        self._trusted = True
        self._kept = KeptTime()
        self.wall()

    def monotonic(self) -> float:
        """Return the loop's time in seconds."""
        return self._monotonic()

    def true_micros(self) -> int:
        """Return the true wall time in microseconds."""
        return self._start + int(self._monotonic() * 1_000_000)

    def wall(self) -> Stamp:
        """Return the wall time as the gateway sees it, and whether it is trusted."""
        shown, monotonic = self.true_micros() + self._offset, int(self._monotonic() * 1_000_000)
        return self._kept.stamp(shown, monotonic=monotonic, trusted=self._trusted)

    def step(self, seconds: float) -> None:
        """Make the wall clock wrong by this many seconds, and untrusted."""
        self._offset, self._trusted = int(seconds * 1_000_000), False

    def synchronise(self) -> None:
        """Make the wall clock right and trusted."""
        self._offset, self._trusted = 0, True
