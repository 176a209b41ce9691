"""The way in which tests wait: for a condition, never for a time that happens to be long enough.

A bound on a wait does not run while work waits for a processor of this machine, for at most `GENEROUS` seconds more.
A condition that takes long, such as a request to a gateway, is looked at less often, so that waiting leaves the
processors to what is waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar, cast

GENEROUS = 30.0
"""Seconds after which a condition will not come true. A busy machine needs some of them, a healthy one none."""

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.005, 0.2
_PAUSES_PER_LOOK = 4
"""So many times as long as a look takes is the pause after it, between the two above."""

Answer = TypeVar("Answer")


class Patience:
    """The time that is left to a condition, and the pauses between two looks at it."""

    def __init__(self, within: float, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._end = clock() + within
        self._stalled = _stalled()

    def is_over(self) -> bool:
        """Return whether the condition has had its time, and what the machine's processors were taken for longer."""
        over_by = self._clock() - self._end
        return over_by > 0 and over_by > min(_stalled() - self._stalled, GENEROUS)

    def pause_after(self, began: float) -> float:
        """Return the pause after a look that began then."""
        return min(max(_PAUSES_PER_LOOK * (self._clock() - began), _SHORTEST_PAUSE), _LONGEST_PAUSE)


def _stalled() -> float:
    """Return for how many seconds work has waited for a processor of this machine; 0 where the kernel does not say.

    One small file tells it. A loop that is watched for delays may wait here too.
    """
    with contextlib.suppress(OSError):
        return int(Path("/proc/pressure/cpu").read_text().partition("total=")[2].split()[0]) / 1e6
    return 0.0


def soon(seconds: float = 2.0) -> float:
    """Return the deadline of a command that a device answers at once."""
    return time.monotonic() + seconds


async def until(condition: Callable[[], Answer | Awaitable[Answer]], *, within: float = GENEROUS) -> Answer:
    """Wait until the condition, plain or asynchronous, holds; return its answer. Fail the test if it never does."""
    clock = asyncio.get_running_loop().time
    patience = None
    while True:
        late = patience is not None and patience.is_over()
        began = clock()
        found = condition()
        answer = cast("Answer", await found if inspect.isawaitable(found) else found)
        if answer:
            return answer
        assert not late, f"not within {within:g} s: {_text(condition)}"
        patience = patience or Patience(within, clock=clock)
        await asyncio.sleep(patience.pause_after(began))  # looks again; nothing depends on how long this is


def wait_until(condition: Callable[[], Answer], why: str = "", *, within: float = GENEROUS) -> Answer:
    """Wait as `until` does, where there is no loop."""
    patience = None
    while True:
        late = patience is not None and patience.is_over()
        began = time.monotonic()
        if answer := condition():
            return answer
        assert not late, f"not within {within:g} s: {why or _text(condition)} (the last answer: {answer!r})"
        patience = patience or Patience(within, clock=time.monotonic)
        time.sleep(patience.pause_after(began))  # noqa: TID251  # looks again, as above


def _text(condition: Callable[[], object]) -> str:
    """Return the condition as it is written, for the message of a failed test."""
    try:
        return inspect.getsource(condition).strip()
    except (OSError, TypeError):
        return repr(condition)
