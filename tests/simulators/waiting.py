"""The way in which tests wait: for a condition, never for a time that happens to be long enough."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

GENEROUS = 30.0
"""Seconds after which a condition will not come true. A busy machine needs some of them, a healthy one none."""

_PAUSE_SECONDS = 0.005

Answer = TypeVar("Answer")


async def until(condition: Callable[[], Answer | Awaitable[Answer]], *, within: float = GENEROUS) -> Answer:
    """Wait until the condition, plain or asynchronous, holds; return its answer. Fail the test if it never does."""
    loop = asyncio.get_running_loop()
    end = loop.time() + within
    while True:
        late = loop.time() > end
        found = condition()
        answer = cast("Answer", await found if inspect.isawaitable(found) else found)
        if answer:
            return answer
        assert not late, f"not within {within:g} s: {_text(condition)}"
        await asyncio.sleep(_PAUSE_SECONDS)  # looks again; nothing depends on how long this is


def wait_until(condition: Callable[[], Answer], why: str = "", *, within: float = GENEROUS) -> Answer:
    """Wait as `until` does, where there is no loop."""
    end = time.monotonic() + within
    while True:
        late = time.monotonic() > end
        if answer := condition():
            return answer
        assert not late, f"not within {within:g} s: {why or _text(condition)} (the last answer: {answer!r})"
        time.sleep(_PAUSE_SECONDS)  # noqa: TID251  # looks again, as above


def _text(condition: Callable[[], object]) -> str:
    """Return the condition as it is written, for the message of a failed test."""
    try:
        return inspect.getsource(condition).strip()
    except (OSError, TypeError):
        return repr(condition)
