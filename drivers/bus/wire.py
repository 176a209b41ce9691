"""The bytes of one line: a request out, its answer in, and the silence since the last byte.

The bus decides which request goes next, and whether an answer counts. Some two-wire adapters return what is sent on
the line, which is an echo.

A device acknowledges many writes by repeating the request, so such an answer cannot be told from an echo. A read's
answer never equals its request: when the request comes back, the line echoes. The echo is cut out then, and a write
counts only by what follows it. Until reads have shown that a line does not echo, no command counts by its own echo
either.
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

_CLEAN_AFTER = 50
"""Answers with no trace of an echo, in a row, after which a line that echoed counts as one that does not.

So many that no series of lost echoes looks like it. Until then a write is not acknowledged, though it may be obeyed.
"""


class Direction(StrEnum):
    """The direction of traced bytes, as the gateway sees it. DROPPED: received, but no request asked for them."""

    SENT = "sent"
    RECEIVED = "received"
    DROPPED = "dropped"


Trace = Callable[[Direction, bytes, MonotonicSeconds], None]
"""The receiver of a line's trace. Called on the loop's thread with each piece of bytes; never blocks, never raises."""


class LineEcho:
    """The evidence that the answers on one line have given so far."""

    def __init__(self) -> None:
        self._shown: bool | None = None
        self._clean = 0

    @property
    def is_proven(self) -> bool:
        """True when requests come back on the line."""
        return self._shown is True

    def hearing(self, exchange: Exchange[object], *, is_command: bool) -> Hearing:
        """Begin to hear the answer to a request."""
        is_doubted = self._shown is None and is_command and not exchange.tagged  # numbers: Modbus TCP, no two-wire line
        cuts = self.is_proven or exchange.is_repeated is False or (exchange.is_repeated is True and is_doubted)
        return Hearing(self, exchange, cuts=cuts)

    def came_back(self) -> None:
        """Note that a request came back which no device repeats."""
        self._shown, self._clean = True, 0

    def came_unclear(self) -> None:
        """Note an answer behind what may be the rest of an echo. It proves no echo, and disproves none."""
        self._clean = 0

    def came_clean(self) -> None:
        """Note an answer that no echo was before."""
        self._clean += 1
        if self._shown is None or self._clean >= _CLEAN_AFTER:
            self._shown = False


class Hearing:
    """The bytes since one request. `cuts`: its echo is looked for, once, and cut out."""

    def __init__(self, line: LineEcho, exchange: Exchange[object], *, cuts: bool) -> None:
        self._line = line
        self._exchange = exchange
        self._cuts = cuts

    def cut(self, received: bytearray) -> None:
        """Cut the echo out of the bytes, if it is whole among them."""
        request = self._exchange.request
        if not self._cuts or (place := received.find(request)) < 0:
            return
        del received[place : place + len(request)]
        self._cuts = False
        if self._exchange.is_repeated is False:
            self._line.came_back()

    def answered(self, received: bytes) -> None:
        """Note the answer. It came without an echo if the bytes before it are too few for one and no part of one."""
        if self._exchange.is_repeated is not False or not self._cuts:
            return
        answer = received[: self._exchange.answer_end(received)]
        begin = next((at for at in range(1, len(answer)) if not self._exchange.is_answered_by(answer[at:])), 1) - 1
        if _may_hold_echo(answer[:begin], self._exchange.request):
            self._line.came_unclear()
        else:
            self._line.came_clean()


def _may_hold_echo(before: bytes, request: bytes) -> bool:
    """Return whether these bytes may be the rest of an echo: as long as the request, or with two of its bytes in a row.

    A byte that is repeated is noise as well, so two equal ones are no sign.
    """
    pairs = (request[at : at + 2] for at in range(len(request) - 1) if request[at] != request[at + 1])
    return len(before) >= len(request) or any(pair in before for pair in pairs)


class Wire:
    """The bytes of one line, over all its connections.

    Args:
        name: the link's id, for messages to people.
        spec: the line's address and settings.
        monotonic: the clock of stamps.
        trace: called with every byte of the line; None for no trace.
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
        self._echo = LineEcho()

    @property
    def has_untold_echo(self) -> bool:
        """True when the line returns what is sent on it, and its settings do not say so."""
        return self._echo.is_proven

    @property
    def quiet(self) -> float:
        """Seconds without a byte after which an answer is over."""
        return max(self._spec.frame_gap, _QUIET_FLOOR)

    @property
    def idle(self) -> float:
        """Seconds since the last byte."""
        return self._monotonic() - self._last_byte_at

    def gap_left(self) -> float:
        """Seconds until the next frame may begin; zero or less when it may begin now."""
        return self._last_byte_at + max(self._spec.frame_gap, self._spec.pause) - self._monotonic()

    def send(self, connection: Connection, request: bytes, *, at: MonotonicSeconds) -> None:
        """Write a request, and trace it. Raises LinkError."""
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
        """Keep the silence and send the break that a request needs before it. Raises LinkError."""
        silence = self._last_byte_at + prelude.silence - self._monotonic()
        if silence > 0:
            await asyncio.sleep(silence)
        if prelude.break_seconds > 0:
            await connection.send_break(prelude.break_seconds)

    async def reply(
        self, connection: Connection, exchange: Exchange[object], received: bytearray, *, is_command: bool
    ) -> tuple[object, MonotonicSeconds]:
        """Wait for the answer; return it and its time. Add all bytes since the request, except the echo, to `received`.

        There is no limit in time. Raises LinkError, and ProtocolViolation for bytes that can become no answer.
        """
        if not exchange.answered:
            # Nothing will arrive. The system tells when it has sent all bytes, but not what an adapter still holds,
            # so the silence is counted from when the line's speed lets the last byte leave.
            self._last_byte_at += self._spec.seconds_for(len(exchange.request))
            await connection.sent()
            return exchange.parse(b""), self._last_byte_at
        echo = exchange.request if self._spec.echoes else b""
        hearing = None if self._spec.echoes else self._echo.hearing(exchange, is_command=is_command)
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
            if hearing is not None:
                hearing.cut(received)
            reply = exchange.parse(bytes(received))
            if reply is not None and hearing is not None:
                hearing.answered(bytes(received))
            if reply is not None:
                return reply, arrival.at
            if len(received) > _LONGEST_REPLY:
                raise ProtocolViolation(f"{self._name} babbles: {len(received)} bytes and no answer among them")

    def _tell(self, direction: Direction, data: bytes, at: MonotonicSeconds) -> None:
        if self.trace is not None:
            self.trace(direction, data, at)
