"""Outlets for a viewer's packets: its RTSP connection, or UDP. They belong to the event loop."""

from __future__ import annotations

import asyncio
import random
from typing import Protocol

from drivers.rtsp.server.messages import AskedTransport


class Outlet(Protocol):
    """The way of one track's packets to its viewer."""

    async def send(self, packets: list[bytes]) -> None:
        """Send RTP packets; may wait until a slow viewer takes them."""
        ...

    def report(self, packet: bytes) -> None:
        """Send an RTCP packet, without waiting."""
        ...

    def close(self) -> None:
        """Close the outlet's own ports, if it has any."""
        ...


class Interleaved:
    """The outlet inside the RTSP connection (RFC 2326, 10.12)."""

    def __init__(self, *, writer: asyncio.StreamWriter, channel: int, control: int) -> None:
        self._writer = writer
        self._channel = channel
        self._control = control

    async def send(self, packets: list[bytes]) -> None:
        """Send RTP packets, and wait until the connection takes them."""
        mark = bytes((0x24, self._channel))
        self._writer.write(b"".join(mark + len(packet).to_bytes(2, "big") + packet for packet in packets))
        await self._writer.drain()

    def report(self, packet: bytes) -> None:
        """Send an RTCP packet on the control channel."""
        self._writer.write(bytes((0x24, self._control)) + len(packet).to_bytes(2, "big") + packet)

    def close(self) -> None:
        """Do nothing: the session closes the connection."""


class Datagrams:
    """The outlet over UDP, to the viewer's pair of ports."""

    def __init__(self, *, transport: asyncio.DatagramTransport, control: asyncio.DatagramTransport, port: int) -> None:
        self._transport = transport
        self._control = control
        self.port = port

    async def send(self, packets: list[bytes]) -> None:
        """Send RTP packets, without waiting."""
        for packet in packets:
            self._transport.sendto(packet)

    def report(self, packet: bytes) -> None:
        """Send an RTCP packet."""
        self._control.sendto(packet)

    def close(self) -> None:
        """Close both ports."""
        self._transport.close()
        self._control.close()


async def open_datagrams(local: str, remote: str, asked: AskedTransport) -> Datagrams:
    """Bind a free pair of neighbouring ports, the even one for packets (RFC 3550, 11).

    Raises ConnectionAbortedError when none is found.
    """
    loop = asyncio.get_running_loop()
    for _ in range(50):
        port = random.randrange(20_000, 60_000, 2)  # noqa: S311  # a port, no secret
        try:
            transport, _protocol = await loop.create_datagram_endpoint(
                asyncio.DatagramProtocol,
                local_addr=(local, port),
                remote_addr=(remote, asked.first),
            )
        except OSError:
            continue
        try:
            control, _protocol = await loop.create_datagram_endpoint(
                asyncio.DatagramProtocol,
                local_addr=(local, port + 1),
                remote_addr=(remote, asked.second),
            )
        except OSError:
            transport.close()
            continue
        return Datagrams(transport=transport, control=control, port=port)
    raise ConnectionAbortedError("no free pair of UDP ports")
