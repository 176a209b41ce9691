"""The pace of a device's polls."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from drivers.contract import MonotonicSeconds

CLOSE_WATCH_SECONDS = 0.02
"""The interval between two polls of a device that is watched closely; a slow line makes it longer."""


class PollPace:
    """The pace of one device's polls: when the next one is due.

    Args:
        poll_seconds: the interval between two polls while the device is not watched closely.
        monotonic: the clock.
    """

    def __init__(self, *, poll_seconds: float, monotonic: Callable[[], float]) -> None:
        self._poll_seconds = poll_seconds
        self._monotonic = monotonic
        self._wake = asyncio.Event()
        self._close_watch_until = float("-inf")

    def begin(self) -> MonotonicSeconds:
        """Begin a poll; return when the next one is due."""
        self._wake.clear()
        now = self._monotonic()
        return now + (CLOSE_WATCH_SECONDS if now < self._close_watch_until else self._poll_seconds)

    def watch_closely(self, *, until: MonotonicSeconds) -> None:
        """Poll as fast as the line allows until `until`."""
        if self._close_watch_until < self._monotonic():
            self._wake.set()
        self._close_watch_until = until

    def wake(self) -> None:
        """Make the next poll due at once."""
        self._wake.set()

    async def rest(self, *, until: MonotonicSeconds) -> None:
        """Wait until `until`, or until `wake` is called."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, until - self._monotonic())):
                await self._wake.wait()
