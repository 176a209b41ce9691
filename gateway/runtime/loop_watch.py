"""Watch over the event loop: how late it runs due work, and which task held it up.

A task sleeps for half a second in a loop, and measures by how much it wakes late. While it is overdue, a thread looks
which task the loop runs, so that the name of the task is known although nothing else can run. A hold counts from the
moment at which the task was to wake: each hold of 0.6 s is seen, a shorter one only if it lies over such a moment.
"""

from __future__ import annotations

import asyncio
import re
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import structlog

from gateway.runtime.timings import Timings

log = structlog.get_logger(__name__)

_PERIOD_SECONDS = 0.5
_LATE_SECONDS = 0.1
_SHORTEST_WAIT = 0.01
_LONG_SECONDS = 0.5
_LONG_HOLDS = 3
_WITHIN_SECONDS = 60.0
_QUIET_SECONDS = 30.0
_BUSY_SHARE = 0.5
_OTHERS = "others"
_NO_TASK = "no task"
_UNNAMED = re.compile(r"Task-\d+")
_OWN_FOLDER = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class _Sighting:
    """A look at the overdue loop: the turn of the watch, the name of the running task, and its line of code."""

    turn: int = -1
    task: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class LongHold:
    """A hold of the loop for more than half a second.

    Attributes:
        task: the name of the task that the loop ran, "" if unknown.
        busy: whether the loop's thread computed meanwhile; otherwise it waited, or the machine gave it no time.
        at: the end of the hold, by the loop's clock (seconds).
    """

    task: str
    busy: bool
    at: float


class LoopWatch:
    """Watch over the loop on which `run` is kept alive as a task.

    Attributes:
        lag: the delays with which the loop woke, measured once a period.
    """

    def __init__(self, *, period: float = _PERIOD_SECONDS, most_names: int = 30) -> None:
        """Prepare to watch.

        Args:
            period: seconds between two measurements. Each costs a wake-up of the loop and one of the thread.
            most_names: holds of further tasks are counted together as "others".
        """
        self.lag = Timings()
        self._period = period
        self._most_names = most_names
        self._held: Counter[str] = Counter()
        self._due = float("inf")
        self._turn = 0
        self._seen = _Sighting()
        self._over = threading.Event()
        self._long = deque[LongHold](maxlen=_LONG_HOLDS)
        self._comes_again = False

    def held(self) -> Mapping[str, int]:
        """Return how often each task held the loop up for more than a tenth of a second."""
        return dict(self._held)

    @property
    def guilty(self) -> str:
        """The name of the task that holds the loop up now, "" while the loop is not held up."""
        return self._seen.task if self._seen.turn == self._turn else ""

    def held_again(self, now: float) -> LongHold | None:
        """Return the last long hold if long holds recur, else None. `now` is by the loop's clock (seconds).

        They recur after three within a minute: a person who presses Open notices each, but a single one may be due to a
        start or a backup. They no longer recur half a minute after the last, so that a steady pace is reported once.
        """
        long = self._long
        if not long or now - long[-1].at >= _QUIET_SECONDS:
            self._comes_again = False
        elif len(long) == _LONG_HOLDS and long[-1].at - long[0].at <= _WITHIN_SECONDS:
            self._comes_again = True
        return long[-1] if self._comes_again else None

    async def run(self) -> None:
        """Watch until cancelled."""
        loop = asyncio.get_running_loop()
        self._over.clear()
        self._due = loop.time() + self._period
        looking = threading.Thread(
            target=self._look, args=(loop, threading.get_ident()), name="loop watch", daemon=True
        )
        looking.start()
        try:
            while True:
                computed = time.thread_time()
                await asyncio.sleep(self._period)
                late = loop.time() - self._due
                self.lag.add(max(0.0, late))
                if late > _LATE_SECONDS:
                    self._note(late, computed=time.thread_time() - computed)
                self._turn += 1
                self._due = loop.time() + self._period
        finally:
            self._over.set()
            looking.join()

    def _note(self, late: float, *, computed: float) -> None:
        seen = self._seen if self._seen.turn == self._turn else _Sighting()
        task = seen.task or _NO_TASK
        name = task if task in self._held or len(self._held) < self._most_names else _OTHERS
        self._held[name] += 1
        log.warning("loop_held_up", task=task, place=seen.place, seconds=round(late, 3))
        if late > _LONG_SECONDS:
            at = self._due + late
            self._long.append(LongHold("" if task == _NO_TASK else task, computed >= _BUSY_SHARE * late, at))

    def _look(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        """Note the running task whenever the loop is overdue. Runs in a thread."""
        wait = self._period + _LATE_SECONDS
        while not self._over.wait(wait):
            turn, overdue = self._turn, loop.time() - self._due - _LATE_SECONDS
            wait = max(_SHORTEST_WAIT, -overdue)
            if overdue > 0 and self._seen.turn != turn:
                frame = sys._current_frames().get(thread)  # noqa: SLF001 (the only way to see another thread's frames)
                self._seen = _Sighting(turn, _name(asyncio.current_task(loop)), _place(frame))


def _name(task: asyncio.Task[object] | None) -> str:
    """Return the task's name; for a task without a name, that of its coroutine function, to limit their number."""
    if task is None:
        return _NO_TASK
    if _UNNAMED.fullmatch(task.get_name()):
        code = task.get_coro()
        return getattr(code, "__qualname__", type(code).__name__)
    return task.get_name()


def _place(frame: FrameType | None) -> str:
    """Return the innermost frame of the product's own code as "file:line", "" for none."""
    while frame is not None:
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(_OWN_FOLDER) and "site-packages" not in file.relative_to(_OWN_FOLDER).parts:
            return f"{file.relative_to(_OWN_FOLDER)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
