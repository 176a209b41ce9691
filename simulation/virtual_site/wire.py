"""Connections to the simulated central without a socket: real HTTP, byte for byte, on virtual time."""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.tracing import Trace

_CALLS = 9
_FOREVER = 1e6  # the connector measures with the real clock; central itself closes what is idle
_A_MOMENT = 0.001  # a loss is reported a little after the last bytes, and never in the same turn of the loop


class LineState(Enum):
    """The state of the line to central."""

    UP = "up"
    REFUSED = "connections are refused, and those there were are reset"
    SILENT = "nothing goes through, and nobody says so"


class Line:
    """The line to central, for one gateway after the other. `serve` makes central's protocol for each connection."""

    def __init__(self, *, serve: Callable[[], asyncio.Protocol]) -> None:
        self.serve = serve
        self._state = LineState.UP
        self._plugs: dict[Plug, None] = {}  # in order, so that runs of one seed are equal

    @property
    def state(self) -> LineState:
        """The present state."""
        return self._state

    def put(self, state: LineState) -> None:
        """Change the line's state. A connection that was silent once stays silent: its bytes are lost."""
        self._state = state
        if state is LineState.REFUSED:
            for plug in self._plugs:
                plug.reset()
        elif state is LineState.SILENT:
            for plug in self._plugs:
                plug.deafen()

    def plug(self) -> Plug:
        """Connect one gateway to the line."""
        made = Plug(self)
        self._plugs[made] = None
        return made

    def forget(self, plug: Plug) -> None:
        """Forget a gateway that is gone."""
        self._plugs.pop(plug, None)


class Plug:
    """One gateway's end of the line, until it is pulled."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._ends: dict[_End, None] = {}
        self._pulled = False

    async def connect(self, client: asyncio.Protocol) -> None:
        """Connect this protocol to central. Waits for ever on a silent line. Raises OSError when refused."""
        if self._line.state is LineState.SILENT:
            await asyncio.Event().wait()
        if self._pulled or self._line.state is LineState.REFUSED:
            raise OSError(errno.ECONNREFUSED, "connection refused")
        server = self._line.serve()
        near, far = _End(client, over=self._over), _End(server, over=self._over)
        near.other, far.other = far, near
        self._ends |= {near: None, far: None}
        server.connection_made(far)
        client.connection_made(near)

    def pull(self) -> None:
        """Cut all connections in this instant."""
        self._pulled = True
        self._line.forget(self)
        self.reset()

    def reset(self) -> None:
        """Break every connection."""
        for end in tuple(self._ends):
            end.break_off()

    def _over(self, end: _End) -> None:
        self._ends.pop(end, None)

    def deafen(self) -> None:
        """Keep connections open, but lose everything that is sent on them."""
        for end in self._ends:
            end.deaf = True


class WireConnector(aiohttp.BaseConnector):
    """An aiohttp connector that connects through a plug instead of sockets."""

    def __init__(self, plug: Plug) -> None:
        super().__init__(limit=_CALLS, keepalive_timeout=_FOREVER)
        self._plug = plug

    async def _create_connection(
        self, req: ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        del traces, timeout
        protocol = self._factory()
        try:
            await self._plug.connect(protocol)
        except OSError as error:
            raise aiohttp.ClientConnectorError(req.connection_key, error) from error
        return protocol


class _End(asyncio.Transport):
    """One end of a connection. Written bytes arrive at the other end in order, in the next turn of the loop."""

    other: _End

    def __init__(self, protocol: asyncio.BaseProtocol, *, over: Callable[[_End], None]) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._protocol = protocol
        self._over = over
        self._closing = False
        self._lost = False
        self._reading = True
        self._come: deque[bytes | None] = deque()
        self.deaf = False

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """See `asyncio.WriteTransport`."""
        if data and not self._closing and not self.deaf:
            self._loop.call_soon(self.other.deliver, bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview[Any]]) -> None:
        """See `asyncio.WriteTransport`."""
        self.write(b"".join(list_of_data))

    def deliver(self, data: bytes | None) -> None:
        """Deliver bytes, or None as the end of the stream."""
        if self._closing or self.deaf:
            return
        self._come.append(data)
        self._hand_on()

    def _hand_on(self) -> None:
        while self._reading and self._come and not self._closing:
            data = self._come.popleft()
            if data is None:
                self.close()
            elif isinstance(self._protocol, asyncio.Protocol):
                self._protocol.data_received(data)

    def pause_reading(self) -> None:
        """See `asyncio.ReadTransport`."""
        self._reading = False

    def resume_reading(self) -> None:
        """See `asyncio.ReadTransport`."""
        self._reading = True
        self._loop.call_soon(self._hand_on)

    def is_reading(self) -> bool:
        """See `asyncio.ReadTransport`."""
        return self._reading

    def is_closing(self) -> bool:
        """See `asyncio.BaseTransport`."""
        return self._closing

    def close(self) -> None:
        """See `asyncio.BaseTransport`."""
        if not self._closing:
            self._closing = True
            self._loop.call_later(_A_MOMENT, self._lose, None)
            if not self.deaf:
                self._loop.call_soon(self.other.deliver, None)

    def abort(self) -> None:
        """See `asyncio.WriteTransport`."""
        self._closing = True
        self._loop.call_later(_A_MOMENT, self._lose, None)
        if not self.deaf:
            self._loop.call_soon(self.other.break_off)

    def break_off(self) -> None:
        """Reset the connection."""
        self._closing = True
        self._come.clear()
        self._loop.call_later(_A_MOMENT, self._lose, ConnectionResetError(errno.ECONNRESET, "connection reset by peer"))

    def can_write_eof(self) -> bool:
        """See `asyncio.WriteTransport`."""
        return False

    def get_write_buffer_size(self) -> int:
        """See `asyncio.WriteTransport`."""
        return 0

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """See `asyncio.BaseTransport`."""
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        """See `asyncio.BaseTransport`."""
        return self._protocol

    def _lose(self, error: Exception | None) -> None:
        if not self._lost:
            self._lost = True
            self._over(self)
            self._protocol.connection_lost(error)
