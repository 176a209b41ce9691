"""Lines that can be cut and mended, and that keep what was written meanwhile, as real ones do.

- `CutNetwork`: TCP to a network namespace of its own. The kernel keeps what was written and sends it again.
- `HoldingConverter`: a serial device server. It keeps what it cannot send, unless its caller resets the connection.
- `HoldingPort`: a serial adapter. It keeps what it cannot send, unless its output is flushed.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import os
import secrets
import socket
import struct
import subprocess
import termios
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from simulation.far_ends.pseudo_terminal import PseudoTerminal

_CLONE_NEWNET = 0x40000000
_FLUSHED = 0x02  # TIOCPKT_FLUSHWRITE
_READ_SIZE = 4096


class NoNamespacesError(Exception):
    """This machine, or this user, cannot make a network namespace; the text says why.

    Attributes:
        can_be_mended: a program is missing; otherwise the kernel refuses.
    """

    def __init__(self, text: str, *, can_be_mended: bool) -> None:
        super().__init__(text)
        self.can_be_mended = can_be_mended


class CutNetwork:
    """A network namespace behind a cable. Make it with `cut_network`."""

    def __init__(self, *, name: str, near: str, host: str) -> None:
        self.host = host
        self.name = name
        self._near = near

    def listen(self) -> socket.socket:
        """A listening socket in the namespace. Whoever makes a socket decides where it lives: here a thread does."""
        made: list[socket.socket] = []
        thread = threading.Thread(target=lambda: made.append(self._listen()))
        thread.start()
        thread.join()
        return made[0]

    async def cut(self) -> None:
        """Pull the plug at the far side."""
        await self._set("down")

    async def mend(self) -> None:
        """Put the plug back."""
        await self._set("up")

    async def cut_beyond(self) -> None:
        """Take the far end away as behind a switch: it is not reached any more, and the carrier stays."""
        await _ip("-n", self.name, "addr", "del", f"{self.host}/30", "dev", "far")

    async def mend_beyond(self) -> None:
        """Bring the far end back."""
        await _ip("-n", self.name, "addr", "add", f"{self.host}/30", "dev", "far")

    async def forget_peer(self) -> None:
        """Have the kernel forget the far end's hardware address, as a router does whose own cable is cut."""
        await _ip("neigh", "flush", "dev", self._near)

    async def _set(self, state: str) -> None:
        await _ip("-n", self.name, "link", "set", "dev", "far", state)

    def _listen(self) -> socket.socket:
        libc = ctypes.CDLL(None, use_errno=True)
        with Path(f"/run/netns/{self.name}").open("rb") as namespace:
            if libc.setns(namespace.fileno(), _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
        return socket.create_server((self.host, 0))


@asynccontextmanager
async def cut_network() -> AsyncIterator[CutNetwork]:
    """A namespace with its cable; both are gone afterwards. Raises NoNamespacesError."""
    token = secrets.token_hex(3)
    name = near = f"cut-{token}"
    number = secrets.randbelow(1 << 15)
    prefix = f"198.{18 + (number >> 14)}.{number >> 6 & 0xFF}"
    ours, theirs = f"{prefix}.{(number & 0x3F) * 4 + 1}", f"{prefix}.{(number & 0x3F) * 4 + 2}"
    try:
        await _ip("netns", "add", name)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NoNamespacesError(
            f"no network namespace can be made here: {_why(error)}", can_be_mended=isinstance(error, FileNotFoundError)
        ) from error
    try:
        try:
            await _ip("link", "add", near, "type", "veth", "peer", "name", "far", "netns", name)
        except subprocess.CalledProcessError as error:
            text = f"no virtual cable can be made here: {_why(error)}"
            raise NoNamespacesError(text, can_be_mended=False) from error
        await _ip("addr", "add", f"{ours}/30", "dev", near)
        await _ip("link", "set", near, "up")
        await _ip("-n", name, "addr", "add", f"{theirs}/30", "dev", "far")
        await _ip("-n", name, "link", "set", "dev", "far", "up")
        yield CutNetwork(name=name, near=near, host=theirs)
    finally:
        await _ip("netns", "del", name)  # takes the cable along


class HoldingConverter:
    """A serial device server before `port`, with a buffer of its own. An async context; `port` is then its own."""

    def __init__(self, *, device_port: int) -> None:
        self.port = 0
        self._device_port = device_port
        self._is_cut = False
        self.callers: set[_Caller] = set()
        self._held: list[tuple[_Caller, bytes]] = []
        self._to_device: asyncio.Transport | None = None

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[HoldingConverter]:
        """Serve on a free port until the end."""
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(partial(_Device, self), "127.0.0.1", self._device_port)
        self._to_device = transport
        server = await loop.create_server(partial(_Caller, self), "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for caller in tuple(self.callers):
                caller.abort()
            transport.abort()
            await server.wait_closed()

    @property
    def held(self) -> int:
        """Return how many bytes wait for the serial line."""
        return sum(len(data) for _, data in self._held)

    async def cut(self) -> None:
        """Interrupt the serial line behind the converter."""
        self._is_cut = True

    async def mend(self) -> None:
        """Join it again: what is held goes out."""
        self._is_cut = False
        held, self._held = self._held, []
        for _, data in held:
            self._send(data)

    def from_caller(self, caller: _Caller, data: bytes) -> None:
        if self._is_cut:
            self._held.append((caller, data))
        else:
            self._send(data)

    def _send(self, data: bytes) -> None:
        if self._to_device is not None:
            self._to_device.write(data)

    def from_device(self, data: bytes) -> None:
        if not self._is_cut:
            for caller in self.callers:
                caller.write(data)

    def gone(self, caller: _Caller, *, was_reset: bool) -> None:
        self.callers.discard(caller)
        if was_reset:
            self._held = [(whose, data) for whose, data in self._held if whose is not caller]


class _Caller(asyncio.Protocol):
    """One client of the converter."""

    def __init__(self, converter: HoldingConverter) -> None:
        self._converter = converter
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._converter.callers.add(self)

    def data_received(self, data: bytes) -> None:
        self._converter.from_caller(self, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._converter.gone(self, was_reset=isinstance(exc, ConnectionResetError))

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class _Device(asyncio.Protocol):
    """The converter's serial side."""

    def __init__(self, converter: HoldingConverter) -> None:
        self._converter = converter

    def data_received(self, data: bytes) -> None:
        self._converter.from_device(data)


class HoldingPort(PseudoTerminal):
    """A pseudo-terminal that stands for an adapter with an output buffer.

    In packet mode the kernel tells the far side of a flush, so the buffer obeys `tcflush` as an adapter's does.
    """

    def __init__(self, *, path: Path, on_bytes: Callable[[bytes], None]) -> None:
        super().__init__(path=path, on_bytes=on_bytes)
        self._is_cut = False
        self._held = bytearray()

    def plug_in(self) -> None:
        super().plug_in()
        assert self._far is not None
        fcntl.ioctl(self._far, termios.TIOCPKT, struct.pack("i", 1))

    @property
    def held(self) -> int:
        """Return how many bytes wait for the line."""
        return len(self._held)

    async def cut(self) -> None:
        """Interrupt the line behind the adapter."""
        self._is_cut = True

    async def mend(self) -> None:
        """Join it again: what is held goes out."""
        self._is_cut = False
        held, self._held = bytes(self._held), bytearray()
        if held and self._on_bytes is not None:
            self._on_bytes(held)

    def write(self, data: bytes) -> None:
        if not self._is_cut:
            super().write(data)

    def _readable(self) -> None:
        if self._far is None or self._on_bytes is None:
            return
        try:
            packet = os.read(self._far, _READ_SIZE)
        except BlockingIOError:
            return
        if packet[0]:
            if packet[0] & _FLUSHED:
                self._held.clear()
        elif self._is_cut:
            self._held += packet[1:]
        else:
            self._on_bytes(packet[1:])


async def _ip(*arguments: str) -> None:
    process = await asyncio.create_subprocess_exec("ip", *arguments, stderr=asyncio.subprocess.PIPE)
    _, said = await process.communicate()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, "ip", stderr=said)


def _why(error: OSError | subprocess.CalledProcessError) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        return error.stderr.decode(errors="replace").strip()
    return "there is no program `ip` (Debian: iproute2)" if isinstance(error, FileNotFoundError) else str(error)
