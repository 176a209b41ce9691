"""Serial ports and TCP behind one interface: a byte stream that can be opened again."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import socket
import struct
import termios
import time
from asyncio.trsock import TransportSocket
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import serial
from serial_asyncio_fast import connection_for_serial

from drivers.contract import Cause, LineDown, LinkError, MonotonicSeconds
from drivers.delivery import Delivery
from drivers.system_messages import system_words

_UNREAD_LIMIT = 64 * 1024
_UNSENT_LIMIT = 4 * 1024
_CLOSE_SECONDS = 1.0
_OUTPUT_LOOK_SECONDS = 0.005
_PARITIES = {"none": serial.PARITY_NONE, "even": serial.PARITY_EVEN, "odd": serial.PARITY_ODD}
_KEEPALIVE_SECONDS = 5
_KEEPALIVE_PROBES = 3
_UNACKNOWLEDGED_MS = 1_000
"""The kernel ends the connection when the peer acknowledges nothing for this long, even if this program hangs."""
_UNSENT_BYTES = 1
"""The kernel accepts no more bytes while it holds this many that it has not sent even once."""
_TCP_NOTSENT_LOWAT = getattr(socket, "TCP_NOTSENT_LOWAT", 25)  # named by Python only from 3.12 on
_NO_LINGER = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class LinkSpec:
    """The address of a line and its settings. Baud rate, parity and stop bits matter to serial ports alone.

    Attributes:
        url: `tcp://host:port` or `serial:/dev/…`.
        baud: bits per second.
        parity: of each character.
        stop_bits: of each character.
        data_bits: of each character.
        pause: seconds without a byte that the devices need before each request.
        numbers_come_back: whether devices on Modbus TCP copy the number of a request into its answer.
        echoes: whether the adapter returns each sent byte before the answer, as some two-wire adapters do.
        exclusive: whether a serial port is opened exclusively: it does not open while another program has it, and no
            other program can open it meanwhile.
    """

    url: str
    baud: int = 9600
    parity: Literal["none", "even", "odd"] = "none"
    stop_bits: Literal[1, 2] = 1
    data_bits: Literal[7, 8] = 8
    pause: float = 0.0
    numbers_come_back: bool = True
    echoes: bool = False
    exclusive: bool = True

    @property
    def is_serial(self) -> bool:
        """True when this is a serial port of this machine."""
        return self.url.startswith("serial:")

    def seconds_for(self, count: int) -> float:
        """Return how long `count` bytes take on a serial line, at 11 bits each; 0.0 over TCP."""
        return count * 11 / self.baud if self.is_serial else 0.0

    @property
    def frame_gap(self) -> float:
        """Seconds of silence between two Modbus RTU frames: 3.5 characters, or 1.75 ms above 19200 baud."""
        return 0.00175 if self.baud > 19_200 else 3.5 * 11 / self.baud


@dataclass(frozen=True, slots=True)
class Arrival:
    """Bytes that the system handed over together.

    Attributes:
        data: the bytes, at least one.
        at: when they were handed over.
    """

    data: bytes
    at: MonotonicSeconds


class Connection:
    """An open line, made by `open_link`. A lost connection stays lost; open a new one instead.

    One task reads; anyone on the loop's thread may write.
    """

    def __init__(
        self,
        *,
        url: str,
        monotonic: Callable[[], float] = time.monotonic,
        on_change: Callable[[], None] | None = None,
    ) -> None:
        self._url = url
        self._monotonic = monotonic
        self._on_change = on_change
        self._arrivals: deque[Arrival] = deque()
        self._unread = 0
        self._arrived = asyncio.Event()
        self._closed = asyncio.Event()
        self._reason: str | None = None
        self._has_hung_up = False
        self._transport: asyncio.Transport | None = None
        self._breaking: asyncio.Future[None] | None = None
        self._delivery: Delivery | None = None

    @property
    def lost(self) -> str | None:
        """The reason why the line is gone, None while it is up."""
        return self._reason

    @property
    def has_hung_up(self) -> bool:
        """True when the far end has closed a TCP connection."""
        return self._has_hung_up

    @property
    def has_arrivals(self) -> bool:
        """True when bytes wait to be read."""
        return bool(self._arrivals)

    async def read(self) -> Arrival:
        """Wait for the next bytes. On a lost line, return what arrived before the loss, then raise LinkError."""
        while not self._arrivals:
            if self._reason is not None:
                raise LinkError(self._reason)
            self._arrived.clear()
            await self._arrived.wait()
        arrival = self._arrivals.popleft()
        self._unread -= len(arrival.data)
        return arrival

    def write(self, data: bytes) -> None:
        """Hand bytes to the system, without waiting. Raises LinkError when the line is lost or its buffer is full."""
        if self._reason is not None or self._transport is None or self._transport.is_closing():
            raise LinkError(self._reason or f"{self._url} is closing")
        if self._transport.get_write_buffer_size() > _UNSENT_LIMIT:
            raise LinkError(f"{self._url} takes no more bytes")
        self._transport.write(data)

    def discard(self) -> bytes:
        """Drop the bytes that wait to be read, and return them."""
        dropped = b"".join(arrival.data for arrival in self._arrivals)
        self._arrivals.clear()
        self._unread = 0
        return dropped

    async def send_break(self, seconds: float) -> None:
        """Hold the line in its break condition for at least `seconds`.

        Raises LineDown when the line is lost, is no serial port, or its port cannot send a break.
        """
        port = None if self._transport is None else self._transport.get_extra_info("serial")
        if self._reason is not None or port is None:
            raise LineDown(self._reason or f"{self._url} is no serial port and cannot send a break")
        # In a thread: a system call to a USB adapter takes as long as the adapter likes.
        self._breaking = asyncio.get_running_loop().run_in_executor(None, _hold_break, port, seconds)
        try:
            await asyncio.shield(self._breaking)
        except (OSError, serial.SerialException, termios.error) as error:
            raise LineDown(f"{self._url} sends no break: {system_words(error)}") from error

    async def drain_to_quiet(self, *, quiet: float, longest: float) -> bytes:
        """Drop bytes until none came for `quiet` seconds, for at most `longest` seconds; return the dropped bytes.

        Raises LinkError when the line is lost meanwhile.
        """
        dropped = bytearray(self.discard())
        until = self._monotonic() + longest
        while self._monotonic() < until:
            try:
                async with asyncio.timeout(quiet):
                    dropped += (await self.read()).data
            except TimeoutError:
                if not self._arrivals:  # otherwise bytes came right at the time-out, before they could be read
                    break
        return bytes(dropped)

    def reset(self, reason: str) -> None:
        """Discard every byte that was written and has not left this machine or was not acknowledged.

        A TCP connection is closed by that and lost for this reason: it is closed without lingering, so the kernel drops
        what it would send again. A serial port stays open; its output buffers are emptied.
        """
        if self._transport is None or self._reason is not None:
            return
        if self._transport.get_extra_info("serial") is not None:
            self._discard_output()
        else:
            self._hung_up(reason)
            self._transport.abort()

    @property
    def why_not_write(self) -> str:
        """The reason why a command must not be written now, since it would not leave this machine; "" for none."""
        return "" if self._delivery is None else self._delivery.why_not_write

    @contextlib.contextmanager
    def guarding_delivery(self) -> Iterator[None]:
        """Reset the line if the peer does not acknowledge what is written inside this context.

        `drivers.delivery` says how fast.
        """
        under_way = True
        if self._delivery is not None:
            self._delivery.guard(
                until=lambda: not under_way or self._reason is not None,
                take_back=lambda reason: self.reset(f"{self._url}: {reason}"),
            )
        try:
            yield
        finally:
            under_way = False

    async def sent(self) -> None:
        """Wait until every byte written has left this machine: acknowledged by TCP, or out of the serial port.

        Raises LinkError when the line is lost first.
        """
        while self._reason is None:
            if not self._unsent():
                return
            await asyncio.sleep(_OUTPUT_LOOK_SECONDS)
        raise LinkError(self._reason)

    async def close(self) -> None:
        """Close the line and its descriptor; unsent bytes are dropped. Harmless when already closed."""
        if self._transport is None:
            return
        if self._breaking is not None:
            # The thread that holds the break must not use the descriptor after it belongs to another file.
            await asyncio.wait({self._breaking}, timeout=_CLOSE_SECONDS)
        self._discard_output()
        if not self._transport.is_closing() or self._transport.get_write_buffer_size():
            # A serial port that hung up with nothing left to send is closing already; abort would close it twice.
            self._transport.abort()
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._closed.wait()
        except TimeoutError as error:
            raise LinkError(f"{self._url} does not close") from error

    def _discard_output(self) -> None:
        """Empty a serial port's output buffers, here and in the system; otherwise closing would wait and send them."""
        port = None if self._transport is None else self._transport.get_extra_info("serial")
        if port is None or self._transport is None:
            return
        self._transport.flush()  # type: ignore[attr-defined]  # the serial transport's own: it discards
        with contextlib.suppress(OSError, serial.SerialException, termios.error):  # unplugged: nothing is left to send
            port.reset_output_buffer()

    def _unsent(self) -> int:
        """Return how many bytes have not left this machine, or have not been acknowledged."""
        if self._transport is None or self._transport.is_closing():
            return 0
        waiting = self._transport.get_write_buffer_size()
        port = self._transport.get_extra_info("serial")
        if port is None:
            return waiting + (self._delivery.unacknowledged if self._delivery is not None else 0)
        try:
            (held,) = struct.unpack("i", fcntl.ioctl(port.fileno(), termios.TIOCOUTQ, bytes(4)))
        except (OSError, serial.SerialException) as error:
            raise LinkError(f"{self._url} cannot be asked what it has sent: {system_words(error)}") from error
        return waiting + int(held)

    def opened(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport of the line that has just opened."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 (both kinds of line make one)
        self._transport = transport
        self._delivery = Delivery(transport)

    def received(self, data: bytes) -> None:
        """Queue received bytes for `read`; called by the transport.

        More than 64 KiB unread bytes end the connection.
        """
        if self._reason is not None:
            return
        self._arrivals.append(Arrival(data, self._monotonic()))
        self._unread += len(data)
        if self._unread > _UNREAD_LIMIT:
            self._hung_up(f"{self._url} sent more than anyone reads")
            if self._transport is not None:
                self._transport.abort()
            return
        self._tell()

    def _hung_up(self, reason: str) -> None:
        if self._reason is None:
            self._reason = reason
        self._tell()

    def _tell(self) -> None:
        self._arrived.set()
        if self._on_change is not None:
            self._on_change()

    def far_end_closed(self) -> None:
        """Note that the far end closes the connection; called by the transport."""
        self._has_hung_up = self._reason is None

    def ended(self, error: Exception | None) -> None:
        """Note that the line is lost; called by the transport."""
        self._has_hung_up = self._has_hung_up or isinstance(error, ConnectionResetError)
        self._hung_up(f"{self._url} hung up: {system_words(error)}" if error else f"{self._url} hung up")
        self._closed.set()


class _Feed(asyncio.Protocol):
    """The protocol that passes a transport's callbacks to its Connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._connection.opened(transport)

    def data_received(self, data: bytes) -> None:
        self._connection.received(data)

    def eof_received(self) -> None:
        self._connection.far_end_closed()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.ended(exc)


async def open_link(
    spec: LinkSpec,
    *,
    timeout: float = 3.0,
    monotonic: Callable[[], float] = time.monotonic,
    on_change: Callable[[], None] | None = None,
) -> Connection:
    """Open the line within `timeout` seconds, or raise LinkError.

    `on_change` is called on the loop's thread whenever bytes arrive and when the line is lost.
    """
    connection = Connection(url=spec.url, monotonic=monotonic, on_change=on_change)
    with opening(spec, within=timeout):
        async with asyncio.timeout(timeout):
            if spec.is_serial:
                await _open_serial(spec, connection)
            else:
                await _open_tcp(spec, connection)
    return connection


@contextlib.contextmanager
def opening(spec: LinkSpec, *, within: float) -> Iterator[None]:
    """Convert the errors of opening a line within so many seconds to LinkError, with their cause."""
    try:
        yield
    except TimeoutError as error:
        cause = None if spec.is_serial else Cause.SILENT_HOST
        raise LinkError(f"{spec.url} did not open within {within:g} s", cause=cause) from error
    except FileNotFoundError as error:
        raise LinkError(f"{spec.url} does not open: {error}", cause=Cause.NO_PORT) from error
    except (OSError, serial.SerialException, termios.error, ValueError) as error:
        raise LinkError(f"{spec.url} does not open: {system_words(error)}", cause=_cause_of(error)) from error


def _cause_of(error: Exception) -> Cause | None:
    if isinstance(error, ConnectionRefusedError):
        return Cause.REFUSED
    if isinstance(error, OSError) and error.errno in {errno.ENETUNREACH, errno.EHOSTUNREACH}:
        return Cause.NO_ROUTE
    return None


def tcp_place(url: str) -> tuple[str, int]:
    """Return host and port of `tcp://host:port`. Raises ValueError for any other URL."""
    parts = urlsplit(url)
    if parts.scheme != "tcp" or not parts.hostname or not parts.port:
        raise ValueError("not tcp://host:port")
    return parts.hostname, parts.port


async def _open_tcp(spec: LinkSpec, connection: Connection) -> None:
    host, port = tcp_place(spec.url)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_connection(partial(_Feed, connection), host, port)
    bound_output(transport.get_extra_info("socket"))


async def _open_serial(spec: LinkSpec, connection: Connection) -> None:
    loop = asyncio.get_running_loop()
    opening = loop.run_in_executor(None, serial_port, spec)
    try:
        port = await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_close_unwanted)
        raise
    transport, _ = await connection_for_serial(loop, partial(_Feed, connection), port)
    connection.opened(transport)  # the transport calls connection_made only at the loop's next turn


def serial_port(spec: LinkSpec) -> serial.Serial:
    """Open a serial port, which never waits for bytes. Blocks. Raises FileNotFoundError when there is none."""
    path = spec.url.removeprefix("serial:")
    if not path.startswith("/"):
        raise ValueError("not serial:/dev/…")
    if not Path(path).exists():
        raise FileNotFoundError("there is no such port: its adapter is unplugged, or has another name")
    return serial.Serial(
        path,
        baudrate=spec.baud,
        parity=_PARITIES[spec.parity],
        stopbits=spec.stop_bits,
        bytesize=spec.data_bits,
        timeout=0,
        exclusive=spec.exclusive,
    )


def _hold_break(port: serial.Serial, seconds: float) -> None:
    """Hold the break, in a thread. pyserial's own `send_break` knows only multiples of a quarter of a second."""
    port.break_condition = True
    try:
        time.sleep(seconds)  # noqa: TID251 (in a thread of its own)
    finally:
        port.break_condition = False


def _close_unwanted(opening: asyncio.Future[serial.Serial]) -> None:
    """Close a port that opened after its opener had given up."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


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
