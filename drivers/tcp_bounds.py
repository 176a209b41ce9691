"""Bounds on the undelivered bytes that the kernel holds for a TCP connection to a device."""

from __future__ import annotations

import socket
import struct
from asyncio.trsock import TransportSocket

_KEEPALIVE_SECONDS = 5
_KEEPALIVE_PROBES = 3
_UNACKNOWLEDGED_MS = 1_000
"""The kernel ends the connection when the peer acknowledges nothing for this long, even if this program hangs."""
_UNSENT_BYTES = 1
"""The kernel accepts no more bytes while it holds this many that it has not sent even once."""
_TCP_NOTSENT_LOWAT = getattr(socket, "TCP_NOTSENT_LOWAT", 25)  # named by Python only from 3.12 on
_NO_LINGER = struct.pack("ii", 1, 0)


def bound_output(line: socket.socket | TransportSocket) -> None:
    """Bound how many bytes the kernel holds for this peer, and for how long.

    Closing the connection resets it, even when the process dies: nothing is sent after that.
    """
    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_SECONDS)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE_SECONDS)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _KEEPALIVE_PROBES)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNACKNOWLEDGED_MS)
    line.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
