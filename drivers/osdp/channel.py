"""The bytes of a line for libosdp. Reads and writes never wait; a frame is written whole or not at all.

libosdp 3.2.9 has three weaknesses. It loses a reply whose first bytes come alone, as they do at 9600 baud. It leaves a
reader alone for five minutes after one wrong bit. And it says only that a reader is away. So replies are put together
and checked here first, and a wrong one is dropped as if the reader were silent. The codes of replies tell a technician
why a reader is away: it is silent, it has another key, or it opens no secure channel.

A frame: 0x53, address (0x80 added in replies), length low, length high, control, a security block when control has
0x08 set (its first byte is its length), then the code of the reply, which is never encrypted, and its data. At the end
stands a CRC of two bytes when control has 0x04 set, otherwise a sum of one byte.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import termios
import time
from binascii import crc_hqx
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import serial
from osdp import Channel

from drivers.bus.line_quality import Failure, failure_of
from drivers.link import LinkSpec, opening, serial_port, tcp_place
from drivers.osdp.messages import MOST_OUTCOMES, Setup
from drivers.system_messages import system_words

_OPEN_SECONDS = 3.0
_READ_SIZE = 4096
_MOST_STALE_READS = 16
_UNACKNOWLEDGED_MS = 5_000

_START = 0x53
_IS_REPLY = 0x80
_HAS_SECURITY_BLOCK = 0x08
_HAS_CRC = 0x04
_CRC_START = 0x1D0F
_SHORTEST = 7
_LONGEST = 1440

CRYPTOGRAM = 0x76
"""The code of the reply that proves the reader's key. If no reply follows it, the proof was wrong."""


@dataclass(frozen=True, slots=True)
class LastReply:
    """The last reply of a reader: the instant when it was complete, and its code."""

    at: float
    code: int


@dataclass(slots=True)
class _OpenRequest:
    """The request that is not answered yet: its reader, bytes and instant, and the bytes received since."""

    address: int
    request: bytes
    at: float
    received: bytes = b""


class OpenLine:
    """An open line: a serial port or a TCP connection in non-blocking mode."""

    def __init__(self, port: serial.Serial | socket.socket) -> None:
        self._port = port
        self._fd = port.fileno()
        self._hang_up = select.poll()
        self._hang_up.register(self._fd, 0)  # hang-up and error are reported unasked

    @property
    def is_hung_up(self) -> bool:
        """True when the port was pulled out or the peer is gone."""
        return bool(self._hang_up.poll(0))

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes that have come, b"" for none. Raises OSError when the line is lost."""
        try:
            data = os.read(self._fd, size)
        except BlockingIOError:
            return b""
        if not data and isinstance(self._port, socket.socket):
            raise ConnectionResetError("the other side hung up")
        return data

    def write(self, data: bytes) -> bool:
        """Send all bytes; return False when the line takes none now, and drop them.

        Raises OSError when the line is lost, or took only a part of them.
        """
        try:
            sent = os.write(self._fd, data)
        except BlockingIOError:
            # Unsent polls would go out in a burst once the line takes bytes again.
            self._drop_unsent()
            return False
        if sent < len(data):
            raise OSError("the line took a part of a frame")
        return True

    def close(self) -> None:
        """Close the descriptor. Drop unsent bytes first, since a serial port would wait until they are sent."""
        with contextlib.suppress(OSError, serial.SerialException, termios.error):  # a lost line counts as closed
            self._drop_unsent()
        with contextlib.suppress(OSError, serial.SerialException):
            self._port.close()

    def _drop_unsent(self) -> None:
        if isinstance(self._port, serial.Serial):
            termios.tcflush(self._fd, termios.TCOFLUSH)


def open_line(setup: Setup) -> OpenLine:
    """Open the line within 3 s. Raises LinkError when it does not open."""
    spec = LinkSpec(setup.url, baud=setup.baud, parity=setup.parity, stop_bits=setup.stop_bits)
    with opening(spec, within=_OPEN_SECONDS):
        return OpenLine(serial_port(spec) if spec.is_serial else _tcp_connection(spec.url))


@dataclass(frozen=True, slots=True)
class OsdpReply:
    """A whole reply: its sender, its code and its bytes."""

    address: int
    code: int
    frame: bytes


class ReplyFrames:
    """The parser of the single reply to each command, from bytes in any pieces.

    Noise before the reply and all bytes behind it are dropped. So are wrong replies, those of other readers, and the
    echo of the command, which some two-wire adapters return.
    """

    def __init__(self) -> None:
        self._held = b""
        self._address: int | None = None

    def expect(self, command: bytes) -> int | None:
        """Begin to parse the reply to this command; return the address that it asks, None when it has none."""
        self._held = b""
        head = command[command.find(_START) :]
        self._address = head[1] if len(head) > 1 else None
        return self._address

    def feed(self, data: bytes) -> OsdpReply | None:
        """Take bytes; return the reply once it is complete, None before."""
        if self._address is None:
            return None
        held, at = self._held + data, 0
        while (at := held.find(_START, at)) >= 0:
            length = int.from_bytes(held[at + 2 : at + 4], "little")
            is_short = len(held) < at + 4 or (_SHORTEST <= length <= _LONGEST and len(held) < at + length)
            if is_short:
                self._held = held[at:]
                return None
            reply = reply_of(held[at : at + length]) if _SHORTEST <= length <= _LONGEST else None
            if reply is not None and reply.address == self._address:
                self._held, self._address = b"", None
                return reply
            at += 1
        self._held = b""
        return None


def reply_of(frame: bytes) -> OsdpReply | None:
    """Parse a frame; None when it is no reply, or its check value is wrong."""
    if len(frame) < _SHORTEST or not frame[1] & _IS_REPLY:
        return None
    if frame[4] & _HAS_CRC:
        is_sound = crc_hqx(frame[:-2], _CRC_START) == int.from_bytes(frame[-2:], "little")
    else:
        is_sound = sum(frame) & 0xFF == 0
    if not is_sound:
        return None
    at = 5 + (frame[5] if frame[4] & _HAS_SECURITY_BLOCK else 0)
    return OsdpReply(frame[1] & ~_IS_REPLY, frame[at], frame) if at < len(frame) else None


class Absence(StrEnum):
    """The reason why a reader is away, in words."""

    SILENT = "no reply comes from it"
    OTHER_KEY = "answers, but has another key"
    NO_CHANNEL = "answers, but opens no secure channel"


def why_absent(code: int | None) -> Absence:
    """Return the reason why a reader is away, by the code of its last reply (None when it did not reply)."""
    if code is None:
        return Absence.SILENT
    return Absence.OTHER_KEY if code == CRYPTOGRAM else Absence.NO_CHANNEL


class LineChannel(Channel):  # type: ignore[misc]  # osdp has no types
    """An `osdp.Channel` on a line.

    libosdp calls it from C, where an exception has no effect. So a lost line reads and writes nothing, and `lost` has
    the reason; "" while it is up.
    """

    def __init__(self, line: OpenLine, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._line = line
        self._monotonic = monotonic
        self._replies = ReplyFrames()
        self._asked: _OpenRequest | None = None
        self._outcomes: dict[int, deque[float | Failure]] = {}
        self.last_replies: dict[int, LastReply] = {}
        self.lost = ""

    def taken_outcomes(self) -> Iterator[tuple[int, tuple[float | Failure, ...]]]:
        """Iterate over the readers' outcomes since the last call, by address, and clear them.

        An outcome is the time of an answer in milliseconds, or how a request failed.
        """
        for address, outcomes in self._outcomes.items():
            if outcomes:
                yield address, tuple(outcomes)
                outcomes.clear()

    def read(self, max_bytes: int) -> bytes:
        """Return the reply to the last command once it is whole, cut to `max_bytes`; b"" before. Called by libosdp."""
        try:
            data = b"" if self.lost else self._line.read(_READ_SIZE)
        except OSError as error:
            self.lost = system_words(error)
            return b""
        if data and self._asked is not None:
            self._asked.received = (self._asked.received + data)[:_READ_SIZE]
        reply = self._replies.feed(data) if data else None
        if reply is None:
            return b""
        now = self._monotonic()
        if self._asked is not None:
            self._note(self._asked.address, round((now - self._asked.at) * 1000, 1))
            self._asked = None
        self.last_replies[reply.address] = LastReply(now, reply.code)
        return reply.frame[:max_bytes]

    def write(self, buf: bytes) -> int:
        """Send a frame; return its length, or -1 when the line did not take it. Called by libosdp."""
        data = bytes(buf)
        if self._asked is not None:
            failure = failure_of(self._asked.request, self._asked.received, TimeoutError())
            self._note(self._asked.address, failure or Failure.SILENT)
            self._asked = None
        address = self._replies.expect(data)
        try:
            sent = not self.lost and self._line.write(data)
        except OSError as error:
            self.lost = system_words(error)
            return -1
        if sent and address is not None:
            self._asked = _OpenRequest(address, data, self._monotonic())
        return len(data) if sent else -1

    def _note(self, address: int, outcome: float | Failure) -> None:
        self._outcomes.setdefault(address, deque(maxlen=MOST_OUTCOMES)).append(outcome)

    def flush(self) -> None:
        """Drop the bytes that have come and were not read. Called by libosdp."""
        with contextlib.suppress(OSError):  # the next read raises it
            for _ in range(_MOST_STALE_READS):
                if self.lost or not self._line.read(_READ_SIZE):
                    break


def _tcp_connection(url: str) -> socket.socket:
    connection = socket.create_connection(tcp_place(url), timeout=_OPEN_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNACKNOWLEDGED_MS)
    connection.settimeout(0)
    return connection
