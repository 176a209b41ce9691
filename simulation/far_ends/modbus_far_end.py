"""Simulated Modbus devices: any number of units behind one TCP port or serial port, well-behaved or not."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from drivers.contract import ProtocolViolation
from drivers.modbus.frames import (
    Asked,
    Framing,
    FunctionCall,
    Read,
    Refusal,
    Reply,
    Request,
    Write,
    WriteMany,
    Written,
    decode_request,
    encode_reply,
)
from simulation.far_ends.barrier import Wish
from simulation.far_ends.line_devices import WELL_BEHAVED, LineDevices, Misbehaviour, deliver
from simulation.far_ends.pseudo_terminal import PseudoTerminal

_LONGEST_REQUEST = 512
_ILLEGAL_FUNCTION = Refusal(1)


@dataclass(frozen=True, slots=True)
class Received:
    """A request that a unit received.

    Attributes:
        unit: the address that it asked.
        request: the request.
        wish: the gate command that it was; None for none.
        at: when its last byte arrived.
    """

    unit: int
    request: Request | None
    wish: Wish | None
    at: float


class Wiring(Protocol):
    """A unit as the far end uses it, once for each request."""

    def read(self, read: Read, *, now: float) -> Reply:
        """Return the values, or a refusal."""
        ...

    def write(self, write: Write | WriteMany, *, now: float) -> Reply:
        """Obey, or refuse."""
        ...

    def wish_of(self, write: Write | WriteMany) -> Wish | None:
        """Return the command that a write is, or None."""
        ...


class _Outlet(Protocol):
    """Outlet for the answers to one caller."""

    def send(self, data: bytes) -> None: ...

    def hang_up(self) -> None: ...

    def close(self) -> None: ...


class ModbusFarEnd(LineDevices[Received, Received]):
    """The devices behind one line.

    Args:
        units: the unit at each address.
        framing: the framing of the line.
        monotonic: the clock of the barriers and of the received requests.

    Attributes:
        connections: its open TCP connections.
    """

    def __init__(
        self,
        *,
        units: Mapping[int, Wiring],
        framing: Framing = "tcp",
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(monotonic=monotonic)
        self._units = dict(units)
        self._framing = framing
        self._answers = 0
        self.connections: set[_TcpCaller] = set()

    def misbehaviour(self, unit: int, wish: Wish | None, now: float) -> Misbehaviour:  # noqa: ARG002 (for far ends below)
        """Return the faults of `unit` for a request that is the command `wish`, or none."""
        return self._misbehaviours.get(unit, WELL_BEHAVED)

    def hang_up(self) -> None:
        """Drop all TCP connections; new ones are accepted."""
        for connection in tuple(self.connections):
            connection.hang_up()

    def caller(self) -> asyncio.Protocol:
        """Make the far end of one connection."""
        return _TcpCaller(self)

    @asynccontextmanager
    async def tcp(
        self, *, host: str = "127.0.0.1", port: int = 0, listening: socket.socket | None = None
    ) -> AsyncIterator[int]:
        """Serve on TCP, and give the port. On leaving, the port and all connections are closed.

        `listening` is a socket that is bound already, instead of `host` and `port`.
        """
        create_server = partial(asyncio.get_running_loop().create_server, self.caller)
        server = await (create_server(host, port) if listening is None else create_server(sock=listening))
        try:
            yield int(server.sockets[0].getsockname()[1])
        finally:
            server.close()
            self.hang_up()
            await server.wait_closed()

    @asynccontextmanager
    async def serial(
        self, *, path: Path, make: Callable[..., PseudoTerminal] = PseudoTerminal
    ) -> AsyncIterator[PseudoTerminal]:
        """Serve on a pseudo-terminal under `path`, of the kind that `make` makes. On leaving, it is unplugged."""
        outlet = _SerialCaller(self)
        terminal = make(path=path, on_bytes=outlet.received)
        outlet.terminal = terminal
        terminal.plug_in()
        try:
            yield terminal
        finally:
            terminal.unplug()

    def take(self, buffer: bytearray, outlet: _Outlet) -> None:
        """Answer every whole request in the buffer, and take it out."""
        try:
            while (asked := decode_request(self._framing, bytes(buffer))) is not None:
                del buffer[: asked.length]
                self._hear(asked, outlet)
        except ProtocolViolation:
            # A device that receives noise drops what came, and does not answer.
            buffer.clear()
        if len(buffer) > _LONGEST_REQUEST:
            buffer.clear()

    def _hear(self, asked: Asked, outlet: _Outlet) -> None:
        wiring = self._units.get(asked.unit)
        now = self._monotonic()
        wish = wiring.wish_of(asked.request) if wiring and isinstance(asked.request, Write | WriteMany) else None
        how = self.misbehaviour(asked.unit, wish, now)
        received = Received(asked.unit, asked.request, wish, now)
        self._received.append(received)
        if wish is not None:
            self._commands.append(received)
        if wiring is None or how.deaf or (how.loses_commands and wish is not None):
            return
        if how.exception is not None:
            reply: Reply = Refusal(how.exception)
        elif how.pretends and wish is not None:
            reply = Written()
        else:
            reply = self._obey(wiring, asked.request, now)
        if how.hangs_up:
            outlet.hang_up()
        elif not how.silent:
            asked = asked if how.number is None else replace(asked, tag=how.number)
            frame = encode_reply(
                self._framing, asked=asked, reply=reply, unit=asked.unit % 247 + 1 if how.wrong_unit else None
            )
            deliver(frame, how, outlet.send)
            self._answers += 1
            if how.hangs_up_behind and self._answers % how.hangs_up_behind == 0:
                outlet.close()

    def _obey(self, wiring: Wiring, request: Request | None, now: float) -> Reply:
        match request:
            case Read():
                return wiring.read(request, now=now)
            case Write() | WriteMany():
                return wiring.write(request, now=now)
            case FunctionCall() | None:
                return _ILLEGAL_FUNCTION


class _TcpCaller(asyncio.Protocol):
    """One connection of a client."""

    def __init__(self, far_end: ModbusFarEnd) -> None:
        self._far_end = far_end
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 (a TCP server makes these)
        self._transport = transport
        self._far_end.connections.add(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._far_end.take(self._buffer, self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (asyncio's signature)
        self._transport = None
        self._far_end.connections.discard(self)

    def send(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def hang_up(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


class _SerialCaller:
    """Caller on the serial port."""

    terminal: PseudoTerminal

    def __init__(self, far_end: ModbusFarEnd) -> None:
        self._far_end = far_end
        self._buffer = bytearray()

    def received(self, data: bytes) -> None:
        self._buffer += data
        self._far_end.take(self._buffer, self)

    def send(self, data: bytes) -> None:
        self.terminal.write(data)

    def hang_up(self) -> None:
        self.terminal.unplug()

    def close(self) -> None:
        self.terminal.unplug()
