"""Virtual TCP: as in a real system, written bytes are kept and may arrive later, unless the connection was reset.

While a line is cut, both ends stay connected, and what they wrote arrives when the line is back. A far end that loses
power forgets its connections. After a connection is closed, written bytes still arrive, except when it was closed with
`SO_LINGER` of 0 seconds, or when `TCP_USER_TIMEOUT` has passed.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from simulation.virtual_site.lane_field import Troubles

_LATENCY = (0.001, 0.012)
_SENT_AGAIN = (0.2, 1.5)
_AFTER_CUT = (0.0, 0.3)
_LOSS = 0.2
_PATIENCE = 15 * 60.0
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Peer:
    """The far end of a host name: its protocol, the troubles of the line, and the flag that the caller is alive."""

    protocol: Callable[[], asyncio.Protocol]
    troubles: Troubles
    alive: Callable[[], bool]
    dice: random.Random


class Network:
    """The hosts that can be reached. Fulfils `virtual_time.Connects`."""

    def __init__(self, *, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._peers: dict[str, Peer] = {}

    def listen(self, name: str, peer: Peer) -> str:
        """Make a peer reachable; return its new, unique host name."""
        host = f"{name}-{len(self._peers) + 1}.invalid"
        self._peers[host] = peer
        return host

    async def connect(self, protocol_factory: Callable[[], asyncio.BaseProtocol], host: str) -> asyncio.Transport:
        """Connect once the line works. Raises OSError for an unknown host."""
        peer = self._peers.get(host)
        if peer is None:
            raise ConnectionRefusedError(f"there is no {host}")
        await asyncio.sleep(peer.dice.uniform(*_LATENCY))
        if (wait := _back_at(peer.troubles) - self._loop.time()) > 0:
            await asyncio.sleep(wait + peer.dice.uniform(*_AFTER_CUT))
        here = _End(peer=peer, loop=self._loop, is_caller=True)
        there = _End(peer=peer, loop=self._loop, is_caller=False)
        here.join(there, protocol_factory())
        there.join(here, peer.protocol())
        return here


class _Socket:
    """The options that were set on a connection."""

    family = socket.AF_UNSPEC

    def __init__(self) -> None:
        self._options: dict[tuple[int, int], Any] = {}

    def setsockopt(self, level: int, option: int, value: int | bytes) -> None:
        self._options[level, option] = value

    @property
    def takes_back(self) -> bool:
        """Return whether closing resets the connection."""
        value = self._options.get((socket.SOL_SOCKET, socket.SO_LINGER), b"")
        return isinstance(value, bytes) and len(value) == 8 and struct.unpack("ii", value) == (1, 0)

    @property
    def patience(self) -> float:
        """Seconds for which undelivered bytes are sent again."""
        milliseconds = self._options.get((socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT), 0)
        return milliseconds / 1000 if milliseconds else _PATIENCE


class _End(asyncio.Transport):
    """One end of a connection, with the bytes that it wrote and the other end has not received."""

    def __init__(self, *, peer: Peer, loop: asyncio.AbstractEventLoop, is_caller: bool) -> None:
        super().__init__()
        self._peer = peer
        self._loop = loop
        self._is_caller = is_caller
        self._socket = _Socket()
        self._other: _End | None = None
        self._protocol: asyncio.Protocol | None = None
        self._unsent: deque[tuple[bytes, float]] = deque()
        self._ready_at = 0.0
        self._is_closing = False
        self._born = loop.time()

    def join(self, other: _End, protocol: asyncio.BaseProtocol) -> None:
        """Connect to the other end."""
        assert isinstance(protocol, asyncio.Protocol)  # noqa: S101 (both ends are streams)
        self._other, self._protocol = other, protocol
        protocol.connection_made(self)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """See `asyncio.BaseTransport`."""
        return self._socket if name == "socket" else default

    def get_protocol(self) -> asyncio.BaseProtocol:
        """See `asyncio.BaseTransport`."""
        assert self._protocol is not None  # noqa: S101 (nobody has the transport before it is joined)
        return self._protocol

    def is_closing(self) -> bool:
        """See `asyncio.BaseTransport`."""
        return self._is_closing

    def get_write_buffer_size(self) -> int:
        """See `asyncio.WriteTransport`: the system takes all."""
        return 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """See `asyncio.WriteTransport`."""
        if self._is_closing:
            return
        now, dice = self._loop.time(), self._peer.dice
        wait = dice.uniform(*_LATENCY)
        if self._peer.troubles.losing_until > now and dice.random() < _LOSS:
            wait += dice.uniform(*_SENT_AGAIN)
        self._ready_at = max(self._ready_at, now + wait)
        self._unsent.append((bytes(data), now))
        self._loop.call_at(self._ready_at, self._deliver)
        self._loop.call_at(now + self._socket.patience, self._judge_patience)

    def close(self) -> None:
        """See `asyncio.BaseTransport`."""
        self.abort()

    def abort(self) -> None:
        """Close at once. Bytes on their way still arrive, unless closing resets the connection."""
        if self._is_closing:
            return
        if self._socket.takes_back:
            self._unsent.clear()
        self.end(None)
        if not self._unsent:
            self._hang_up_other()

    def _deliver(self) -> None:
        """Deliver the next bytes, once the line lets them through."""
        if not self._unsent or self._other is None:
            return
        if self._is_caller and not self._peer.alive():
            self._unsent.clear()  # the power of the box is gone, and with it what it had to send
            return
        now = self._loop.time()
        if (back_at := _back_at(self._peer.troubles)) > now:
            self._loop.call_at(back_at + self._peer.dice.uniform(*_AFTER_CUT), self._deliver)
            return
        if self._peer.troubles.away_until > self._born:  # it has started again since, and knows no connection
            self._unsent.clear()
            self.end(ConnectionResetError("reset by the other end"))
            self._other.end(ConnectionResetError("started again"))
            return
        data, _ = self._unsent.popleft()
        self._other.receive(data)
        if self._is_closing and not self._unsent:
            self._hang_up_other()

    def _judge_patience(self) -> None:
        if self._unsent and self._loop.time() - self._unsent[0][1] > self._socket.patience - _ROUNDING:
            self._unsent.clear()
            self.end(TimeoutError("nothing was acknowledged in time"))

    def receive(self, data: bytes) -> None:
        """Pass on bytes of the other end."""
        if not self._is_closing and self._protocol is not None:
            self._protocol.data_received(data)

    def end(self, error: Exception | None) -> None:
        """Close this end, and tell the protocol once."""
        if self._is_closing:
            return
        self._is_closing = True
        if self._protocol is not None:
            self._loop.call_soon(self._protocol.connection_lost, error)

    def hung_up(self) -> None:
        """Close this end since the other end has closed."""
        if self._protocol is not None and not self._is_closing:
            self._protocol.eof_received()
        self.end(None)

    def _hang_up_other(self) -> None:
        other = self._other
        if other is not None and _back_at(self._peer.troubles) <= self._loop.time():
            self._loop.call_later(self._peer.dice.uniform(*_LATENCY), other.hung_up)


def _back_at(troubles: Troubles) -> float:
    """Return the instant at which the line and the device at its end are back."""
    return max(troubles.cut_until, troubles.away_until)
