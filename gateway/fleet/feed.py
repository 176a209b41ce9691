"""A stream's messages as they come: the last of each subject at first, then each new one, without a gap."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from nats.aio.msg import Msg

from gateway.fleet.line import STATUS, FleetAway, FleetLine, kept
from gateway.fleet.messages import Kept

_HEARTBEAT_SECONDS = 2.0
_SILENCE_SECONDS = 3 * _HEARTBEAT_SECONDS
_MOST_PENDING = 500_000
_IN_ONE_TURN = 64
_HEARTBEAT = "100"
_LAST_SENT = "Nats-Last-Consumer"


class Feed:
    """The messages of a stream. `take` gets each one, in their order.

    Attributes:
        heard_at: when the server last said anything, by the loop's clock.
        is_complete: set once every message that was there at the beginning has come.
    """

    def __init__(self, take: Callable[[Kept], None]) -> None:
        self._take = take
        self._number = 0
        self._has_gap = False
        self.heard_at = asyncio.get_running_loop().time()
        self.is_complete = asyncio.Event()

    def check(self) -> None:
        """Raise FleetAway if a message was missed, or the server has been silent for too long."""
        if self._has_gap:
            raise FleetAway("messages were missed")
        if asyncio.get_running_loop().time() > self.heard_at + _SILENCE_SECONDS:
            raise FleetAway(f"silent for {_SILENCE_SECONDS:g} s")

    async def came(self, message: Msg) -> None:
        """Take a message, or a sign that the server is alive."""
        self.heard_at = asyncio.get_running_loop().time()
        headers = message.headers or {}
        if headers.get(STATUS) == _HEARTBEAT:
            self._has_gap |= headers.get(_LAST_SENT, str(self._number)) != str(self._number)
            return
        *_, number, _, pending = message.reply.split(".")
        self._number += 1
        self._has_gap |= int(number) != self._number
        if self._has_gap:
            return
        self._take(kept(message))
        if pending == "0":
            self.is_complete.set()
        if self._number % _IN_ONE_TURN == 0:
            await asyncio.sleep(0)  # thousands may come at once, and lanes must have their turn


@asynccontextmanager
async def followed(line: FleetLine, stream: str, subject: str, take: Callable[[Kept], None]) -> AsyncIterator[Feed]:
    """Follow the subjects of a stream while the context lasts. Raises FleetAway, FleetRefused."""
    feed = Feed(take)
    pushed = line.pushed(stream, subject, feed.came, heartbeat=_HEARTBEAT_SECONDS, pending=_MOST_PENDING)
    async with pushed as waiting:
        if not waiting:
            feed.is_complete.set()
        yield feed
