"""The bytes of one line: a request out, its answer in, and how quiet the line has been meanwhile.

The bus decides which request goes next, and whether an answer counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import StrEnum

from drivers.bus.transactions import Exchange, Prelude
from drivers.contract import MonotonicSeconds, ProtocolViolation
from drivers.link import Connection, LinkSpec

_LONGEST_REPLY = 1024
_LONGEST_DRAIN = 0.25
_QUIET_FLOOR = 0.02


class Direction(StrEnum):
    """The direction of traced bytes, as seen from here."""

    SENT = "sent"
    RECEIVED = "received"
    DROPPED = "dropped"


Trace = Callable[[Direction, bytes, MonotonicSeconds], None]
"""The receiver of a technician's trace of the line. Called on the loop's thread; never blocks, never raises."""


class Wire:
    """The bytes of one line, over all its connections.

    Args:
        name: for people: the link's id.
        spec: where the line is.
        monotonic: the clock of stamps.
        trace: called with every byte of the line.
        dropped: called with bytes that no request asked for, and their time.
    """

    def __init__(
        self,
        *,
        name: str,
        spec: LinkSpec,
        monotonic: Callable[[], float],
        trace: Trace | None,
        dropped: Callable[[bytes, MonotonicSeconds], None],
    ) -> None:
        self._name = name
        self._spec = spec
        self._monotonic = monotonic
        self.trace = trace
        self._dropped = dropped
        self._last_byte_at = float("-inf")

    @property
    def quiet(self) -> float:
        """Seconds without a byte after which nothing more of an answer comes."""
        return max(self._spec.frame_gap, _QUIET_FLOOR)

    @property
    def idle(self) -> float:
        """Seconds since the last byte."""
        return self._monotonic() - self._last_byte_at

    def gap_left(self) -> float:
        """Seconds until the next frame may begin; zero or less when it may begin now."""
        return self._last_byte_at + self._spec.frame_gap - self._monotonic()

    def send(self, connection: Connection, request: bytes, *, at: MonotonicSeconds) -> None:
        """Hand a request to the system."""
        connection.write(request)
        self._last_byte_at = at
        self._tell(Direction.SENT, request, at)

    def drop(self, data: bytes) -> None:
        """Drop bytes that no request asked for, and report them."""
        if data:
            self._last_byte_at = self._monotonic()
            self._dropped(data, self._last_byte_at)
            self._tell(Direction.DROPPED, data, self._last_byte_at)

    async def quieten(self, connection: Connection) -> None:
        """Drop bytes until the line is quiet. Raises LinkError."""
        self.drop(await connection.drain_to_quiet(quiet=self.quiet, longest=_LONGEST_DRAIN))

    async def prepare(self, connection: Connection, prelude: Prelude) -> None:
        """Do what goes before a request on the line. Raises LinkError."""
        silence = self._last_byte_at + prelude.silence - self._monotonic()
        if silence > 0:
            await asyncio.sleep(silence)
        if prelude.break_seconds > 0:
            await connection.send_break(prelude.break_seconds)

    async def reply(
        self, connection: Connection, exchange: Exchange[object], received: bytearray
    ) -> tuple[object, MonotonicSeconds]:
        """Return the answer and its time. All bytes since the request, except the echo, are added to `received`."""
        if not exchange.answered:
            # No arrival is reported. The system says that it is out, but not what an adapter still holds.
            self._last_byte_at += self._spec.seconds_for(len(exchange.request))
            await connection.sent()
            return exchange.parse(b""), self._last_byte_at
        echo = exchange.request if self._spec.echoes else b""
        while True:
            arrival = await connection.read()
            self._last_byte_at = arrival.at
            self._tell(Direction.RECEIVED, arrival.data, arrival.at)
            echoed, rest = arrival.data[: len(echo)], arrival.data[len(echo) :]
            if not echo.startswith(echoed):
                raise ProtocolViolation(
                    f"what was sent on {self._name} did not come back as sent: somebody else sends too"
                )
            echo = echo[len(echoed) :]
            if not rest:
                continue
            received += rest
            reply = exchange.parse(bytes(received))
            if reply is not None:
                return reply, arrival.at
            if len(received) > _LONGEST_REPLY:
                raise ProtocolViolation(f"{self._name} babbles: {len(received)} bytes and no answer among them")

    def _tell(self, direction: Direction, data: bytes, at: MonotonicSeconds) -> None:
        if self.trace is not None:
            self.trace(direction, data, at)
