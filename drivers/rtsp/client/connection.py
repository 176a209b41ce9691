"""The TCP connection to a camera: requests and answers, and interleaved packets. Blocking; belongs in a thread.

The socket is read in large pieces, about one system call for each picture. One for each packet would be most of the
cost of a camera.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import string
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from drivers.contract import ProtocolViolation
from drivers.rtsp.client.accounts import Account, Proofs, camera_context, may_be_older
from drivers.rtsp.client.habits import CameraHabits
from drivers.rtsp.client.messages import (
    LONGEST_LINE,
    RtspResponse,
    begins_request,
    parse_request_head,
    parse_response_head,
    reply,
    request,
    sendable,
)
from drivers.rtsp.compiled import compiled
from drivers.rtsp.errors import AccountRefused, CameraEnded, CameraSilent, CameraUnreachable
from drivers.system_messages import system_words

_PIECE = 262_144
_LARGEST_HEAD = 16_384
_LARGEST_BODY = 65_536
_MOST_UNANSWERED = 16
_MOST_ATTEMPTS = 5
_MOST_ADDRESSES = 8
_TICK_SECONDS = 0.1
_SILENT_READS = 5
"""Reads without bytes, of 0.1 s each, that end a description whose length the camera does not name."""
_MOST_EARLY = 2_000
_DOLLAR = 0x24
_LETTERS = string.ascii_uppercase.encode()
_BEGINS = b"$" + _LETTERS
"""The bytes with which a packet, an answer or a request of the camera begins."""
_FRAMING = struct.Struct("!HH")
_BUFFER = 2 * _PIECE
_MOST_SPARE = 2
_TOO_LONG = f"the camera's answer is too long: its header has more than {_LARGEST_HEAD // 1024} KiB"
_NO_RTSP = "what answers at the camera's address does not speak RTSP"

Packets = list[tuple[int, list[bytes | memoryview]]]
"""Runs of packets in order of arrival: a channel, and the packets that came on it one after the other."""


class ReadBuffers:
    """The buffers of connections that share them while they wait for bytes. Thread-safe.

    With 24 cameras, two buffers of half a megabyte do for all of them.
    """

    def __init__(self) -> None:
        self._spare: deque[bytearray] = deque(maxlen=_MOST_SPARE)

    def take(self) -> bytearray:
        """Take a buffer, whose content is of no use."""
        try:
            return self._spare.pop()
        except IndexError:  # all are in use
            return bytearray(_BUFFER)

    def give_back(self, buffer: bytearray) -> None:
        """Give a buffer back, to be used by others."""
        self._spare.append(buffer)


class RtspConnection:
    """One TCP connection to a camera. Only `interrupt` may be called from another thread."""

    def __init__(
        self,
        *,
        host: str,
        port: int,
        encrypted: bool,
        account: Account | None,
        habits: CameraHabits,
        seconds: float,
        buffers: ReadBuffers,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Set up a connection, which `open` opens. `seconds` is how long connecting and each answer may take."""
        self._host = host
        self._port = port
        self._encrypted = encrypted
        self._habits = habits
        self._proofs = Proofs(account, habits)
        self._seconds = seconds
        self._monotonic = monotonic
        self._socket: socket.socket | None = None
        self._buffers = buffers
        self._take_buffer(b"")
        self._sequence = 0
        self._unanswered: list[int] = []
        self._answers: list[tuple[int, RtspResponse]] = []
        self._early: Packets = []
        self._speaks_rtsp = self._heard_else = self._heard_too_long = False
        self._in_step = True
        self._headless_until = 0
        self._waits_for_silence = False
        self._silent_reads = 0
        self._interrupted = threading.Event()
        self._enough: Callable[[], object] | None = None
        self.channels: set[int] = set()
        """The channels on which packets may come; whole packets on other channels are skipped."""
        self.local_host = ""
        self.remote_host = ""

    def open(self) -> None:
        """Connect.

        Raises:
            CameraUnreachable: nothing listens at the address, or it did not answer in time.
        """
        self._enough = None
        self._unanswered.clear()
        self._socket = plain = self._connected()
        if self._encrypted:
            self._socket = plain = self._secured(plain)
        plain.settimeout(None)
        self._tick(_TICK_SECONDS)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(self._seconds) or 1, 0))

    def _connected(self) -> socket.socket:
        """Connect to the first of the host's addresses that answers. Each gets its share of the time that is left."""
        deadline = self._monotonic() + self._seconds
        failed: OSError = TimeoutError()
        try:
            places = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)[:_MOST_ADDRESSES]
        except (OSError, UnicodeError) as error:
            raise CameraUnreachable(f"no connection to the camera ({system_words(error)})") from None
        for number, (family, kind, protocol, _, address) in enumerate(places):
            left = max(_TICK_SECONDS, deadline - self._monotonic())
            plain = socket.socket(family, kind, protocol)
            try:
                plain.settimeout(left / (len(places) - number))
                plain.connect(address)
            except OSError as error:
                plain.close()
                failed = error
                continue
            plain.settimeout(self._seconds)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            self.local_host, self.remote_host = plain.getsockname()[0], plain.getpeername()[0]
            return plain
        if isinstance(failed, ConnectionRefusedError):
            raise CameraUnreachable("nothing listens at the camera's address") from None
        if isinstance(failed, TimeoutError):
            raise CameraUnreachable("the camera did not answer in time") from None
        raise CameraUnreachable(f"no connection to the camera ({system_words(failed)})") from None

    def _secured(self, plain: socket.socket) -> socket.socket:
        """Encrypt a connection; on another connection with the TLS of older cameras where today's is refused."""
        try:
            return self._wrapped(plain)
        except OSError as error:
            if isinstance(error, TimeoutError):  # some hang at today's handshake; the next connection tries the other
                self._habits.older_tls = not self._habits.older_tls
            if self._interrupted.is_set() or not may_be_older(error):
                raise CameraUnreachable(f"no encrypted connection ({system_words(error)})") from None
        self._habits.older_tls = not self._habits.older_tls
        self._socket = plain = self._connected()
        try:
            return self._wrapped(plain)
        except OSError as error:
            self._habits.older_tls = False
            raise CameraUnreachable(f"no encrypted connection ({system_words(error)})") from None

    def _wrapped(self, plain: socket.socket) -> socket.socket:
        context = camera_context(older=self._habits.older_tls)
        try:
            return context.wrap_socket(plain, server_hostname=self._host)
        except OSError:
            plain.close()
            raise

    def gather(self, size: int, seconds: float) -> None:
        """Make `read` wait until `size` bytes are there or `seconds` have passed, to save work at the cost of delay.

        This has no effect on an encrypted connection, whose records have sizes of their own.
        """
        if self._socket is None or self._encrypted:
            return
        with contextlib.suppress(OSError):  # only a hint; the next read reports a lost socket
            least = max(1, min(size, _PIECE))
            # makes the kernel's buffer large enough, unless SO_RCVBUF has set its size
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least)
            self._tick(seconds)
            self._enough = _waiting_for(self._socket, seconds) if least > 1 else None

    def _tick(self, seconds: float) -> None:
        """Limit each read to `seconds`, by the kernel's time-out. Python's own would cost a poll before every call."""
        if self._socket is not None:
            whole, part = divmod(round(seconds * 1_000_000), 1_000_000)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", whole, part))

    def fileno(self) -> int:
        """Return the socket's descriptor, for polling."""
        return -1 if self._socket is None else self._socket.fileno()

    def interrupt(self) -> None:
        """End all waits on this connection at once; callable from any thread."""
        self._interrupted.set()
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()

    def ask(self, method: str, url: str, headers: Mapping[str, str] | None = None) -> RtspResponse:
        """Send a request and wait for its answer. Authenticate as the camera demands.

        Raises:
            AccountRefused: the camera does not accept the account.
            CameraUnreachable: the connection broke, or no answer came in time.
            CameraEnded: the camera hung up.
        """
        refused = False
        for _ in range(_MOST_ATTEMPTS):
            try:
                answer = self.wait_for(self.send(method, url, headers))
            except (CameraEnded, CameraUnreachable):
                if not refused or self._interrupted.is_set() or self.channels:
                    raise
                # some cameras hang up after the challenge, and accept the account on the next connection
                refused = False
                self.close()
                self._from = self._until = 0
                self.open()
                continue
            refused = answer.status == 401
            if not refused:
                return answer
            if not self.challenged(answer):
                break
        self._proofs.refused()
        raise AccountRefused("the camera refused the account (user name or password)")

    def challenged(self, answer: RtspResponse) -> bool:
        """Take the challenge of a 401; return whether another attempt makes sense."""
        return self._proofs.take(answer.headers.get("www-authenticate", ""))

    def send(self, method: str, url: str, headers: Mapping[str, str] | None = None) -> int:
        """Send a request without waiting for the answer; return its sequence number (CSeq)."""
        url = sendable(url)
        self._sequence += 1
        if not self._unanswered:
            self._answers.clear()
        self._unanswered.append(self._sequence)
        del self._unanswered[:-_MOST_UNANSWERED]
        lines = dict(headers or {})
        if proof := self._proofs.proof(method, url):
            lines["Authorization"] = proof
        self.send_bytes(request(method, url, self._sequence, lines))
        return self._sequence

    def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are.

        Raises:
            CameraUnreachable: the connection broke, or the camera does not take them in time.
        """
        try:
            if self._socket is None:
                raise CameraUnreachable("the source is not open")
            self._socket.sendall(data)
        except OSError as error:
            raise CameraUnreachable(f"the connection broke ({system_words(error)})") from None

    def send_packet(self, channel: int, packet: bytes) -> None:
        """Send a packet on an interleaved channel."""
        self.send_bytes(bytes((_DOLLAR, channel)) + len(packet).to_bytes(2, "big") + packet)

    @property
    def has_packets(self) -> bool:
        """True when packets came while an answer was awaited; the next `read` returns them."""
        return bool(self._early)

    def answers(self) -> list[RtspResponse]:
        """Return the answers that came since the last call."""
        came, self._answers = self._answers, []
        return [answer for _, answer in came]

    def read(self) -> Packets:
        """Return the next packets; empty when only answers came, or nothing for 0.1 s (see `gather`).

        The packets are views of a buffer, valid until the next call.

        Raises:
            CameraEnded: the camera closed the connection.
            CameraUnreachable: it broke.
        """
        if self._early:
            early, self._early = self._early, []
            return early
        if self._socket is None:
            raise CameraUnreachable("the source is not open")
        try:
            if self._enough is not None:
                self._wait_without_buffer(self._enough)
            elif self._from:
                unread = self._until - self._from
                self._buffer[:unread] = self._buffer[self._from : self._until]
                self._from, self._until = 0, unread
            flags = 0 if self._enough is None else socket.MSG_DONTWAIT
            count = self._socket.recv_into(self._view[self._until :], _PIECE, flags)
        except (BlockingIOError, ssl.SSLWantReadError):
            self._silent_reads += 1
            return self._parse() if self._waits_for_silence else []
        except OSError as error:
            raise CameraUnreachable(f"the connection broke ({system_words(error)})") from None
        if not count:
            if self._interrupted.is_set():
                raise CameraUnreachable("reading was ended")
            raise CameraEnded("the camera ended the stream")
        self._until += count
        self._silent_reads = 0
        return self._parse()

    def _wait_without_buffer(self, enough: Callable[[], object]) -> None:
        """Wait for bytes while another connection may use the buffer; keep the unread bytes."""
        unread = bytes(self._view[self._from : self._until])
        self._buffers.give_back(self._buffer)
        try:
            enough()
        finally:
            self._take_buffer(unread)

    def _take_buffer(self, unread: bytes) -> None:
        self._buffer = self._buffers.take()
        self._view = memoryview(self._buffer)
        self._buffer[: len(unread)] = unread
        self._from, self._until = 0, len(unread)

    def _parse(self) -> Packets:
        packets: Packets = []
        buffer, at, until = self._buffer, self._from, self._until
        self._headless_until = 0
        while until - at >= 4:
            runs, at = _packet_runs(self._view, at, until, self.channels)
            if runs:
                packets += runs
                self._in_step = True
                continue
            mark, size = _FRAMING.unpack_from(buffer, at)
            begin = at + 4
            if mark >> 8 == _DOLLAR and mark & 0xFF in self.channels:
                break  # it is not all there
            if buffer[at] in _LETTERS:
                after = self._message(at, until)
                if after is None:
                    break
                if after > at:
                    at = after
                    continue
            if self._in_step and mark >> 8 == _DOLLAR:  # perhaps a packet of a channel that nobody asked for
                if begin + size >= until:
                    break
                if buffer[begin + size] in _BEGINS:
                    at = begin + size
                    continue
            at = self._after_noise(at, until)
        self._from = at
        return packets

    def _after_noise(self, at: int, until: int) -> int:
        """Return the place of the next possible packet or answer. Raises CameraUnreachable for an answer of HTTP."""
        self._in_step = False
        if not self._speaks_rtsp:
            self._heard_else = True
            if self._buffer.startswith(b"HTTP/", at):
                raise CameraUnreachable(_NO_RTSP)
        found = (self._buffer.find(mark, at + 1, until) for mark in (b"$", b"RTSP/"))
        return min((place for place in found if place > 0), default=until)

    def _message(self, at: int, until: int) -> int | None:
        """Take the answer, or the camera's request, that begins at `at`; return the place after it.

        Return `at` when neither begins there, and None while it is incomplete.
        """
        return self._answer(at, until) if self._buffer.startswith(b"RTSP", at) else self._asked(at, until)

    def _answer(self, at: int, until: int) -> int | None:
        found = self._head(at, until)
        if found is None:
            if until - at < _LARGEST_HEAD:
                return None
            self._heard_too_long = True
            return at + 4
        end, after = found
        try:
            answer = parse_response_head(bytes(self._view[at:end]))
        except ProtocolViolation:
            return after
        self._speaks_rtsp = self._in_step = True
        length = _body_length(answer.headers)
        if _is_without_length(answer):
            self._waits_for_silence = self._silent_reads < _SILENT_READS
            if self._waits_for_silence:
                return None
            length = min(until - after, _LARGEST_BODY)
        if until < after + length:
            return None
        self._keep(replace(answer, body=bytes(self._view[after : after + length])))
        return after + length

    def _keep(self, answer: RtspResponse) -> None:
        """Keep an answer with the number of the request that it answers.

        Its own number is compared only where several requests wait: some cameras always answer with 0, or with the
        number before. An answer that nothing waits for is dropped, and so is a provisional one (1xx).
        """
        if answer.status < 200 or not self._unanswered:
            return
        number = answer.sequence if answer.sequence in self._unanswered else self._unanswered[0]
        self._unanswered.remove(number)
        if answer.status != 401:
            self._proofs.accepted()
        self._answers.append((number, answer))
        del self._answers[:-_MOST_UNANSWERED]

    def _asked(self, at: int, until: int) -> int | None:
        begins = begins_request(bytes(self._view[at : min(until, at + LONGEST_LINE + 1)]))
        if not begins:
            return at if begins is False else None
        found = self._head(at, until)
        if found is None:
            return None if until - at < _LARGEST_HEAD else at
        end, after = found
        asked = parse_request_head(bytes(self._view[at:end]))
        length = _body_length(asked.headers)
        if until < after + length:
            return None
        self._speaks_rtsp = self._in_step = True
        self.send_bytes(reply(asked))
        if asked.ends_session:
            raise CameraEnded("the camera ended the stream")
        return after + length

    def _head(self, at: int, until: int) -> tuple[int, int] | None:
        """Return where the head that begins at `at` ends, and where its body begins. Some cameras end lines by LF."""
        limit = min(until, at + _LARGEST_HEAD)
        # what was searched in vain from an earlier place is not searched again
        begin = max(at, self._headless_until)
        ends = ((self._buffer.find(mark, begin, limit), len(mark)) for mark in (b"\n\r\n", b"\n\n"))
        end, size = min(((end, size) for end, size in ends if end >= 0), default=(-1, 0))
        if end < 0:
            self._headless_until = max(begin, limit - 2)
            return None
        return end, end + size

    def wait_for(self, sequence: int, *, seconds: float | None = None) -> RtspResponse:
        """Wait for the answer to the request with this number, for at most `seconds` or the connection's usual limit.

        Packets that come meanwhile are kept for `read`.

        Raises:
            CameraSilent: no answer came in time, it was too long, or what answers does not speak RTSP.
            CameraUnreachable: the connection broke.
            CameraEnded: the camera hung up.
        """
        deadline = self._monotonic() + (self._seconds if seconds is None else seconds)
        early: Packets = []
        self._heard_too_long = False
        while self._monotonic() < deadline:
            early += [(channel, [bytes(packet)]) for channel, packets in self.read() for packet in packets]
            del early[:-_MOST_EARLY]
            came, self._answers = self._answers, []
            for number, answer in came:
                if number == sequence:
                    self._early = early
                    return answer
        self._early = early
        if self._heard_too_long:
            raise CameraSilent(_TOO_LONG)
        raise CameraSilent(_NO_RTSP if self._heard_else else "the camera did not answer in time")


def packet_runs(view: memoryview, at: int, until: int, channels: set[int]) -> tuple[Packets, int]:
    """Return the packets on these channels that follow one another from `at` on, and the place after the last one.

    What stands at that place is something else, or not all of it is there.

    Raises:
        IndexError: a place is outside of the buffer.
    """
    length = len(view)
    if not 0 <= at <= until <= length:
        raise IndexError
    runs: Packets = []
    current, same = -1, list[bytes | memoryview]()
    unpack = _FRAMING.unpack_from
    while until - at >= 4:
        mark, size = unpack(view, at)
        begin = at + 4
        # most packets are on the channel of the one before
        if mark != current and (mark >> 8 != _DOLLAR or mark & 0xFF not in channels):
            break
        if begin + size > until:
            break
        if mark != current:
            current, same = mark, []
            runs.append((mark & 0xFF, same))
        at = begin + size
        same.append(view[begin:at])
    return runs, at


_packet_runs = compiled(packet_runs)


def _is_without_length(answer: RtspResponse) -> bool:
    """Return whether an answer has a description whose length it does not name, which it must (RFC 2326, 12.14)."""
    return "content-length" not in answer.headers and "application/sdp" in answer.headers.get("content-type", "")


def _body_length(headers: Mapping[str, str]) -> int:
    """Return the length of a message's body; 0 when it is not named, or too large to be true."""
    given = headers.get("content-length", "").partition(",")[0]
    length = int(given) if len(given) < 9 and given.isdecimal() else 0
    return length if length <= _LARGEST_BODY else 0


def _waiting_for(connection: socket.socket, seconds: float) -> Callable[[], object]:
    """Return a function that waits until SO_RCVLOWAT bytes are there, or `seconds` have passed.

    A blocking read would take the bytes that are there already, and then wait for as many again.
    """
    ready = select.poll()
    ready.register(connection, select.POLLIN)
    return partial(ready.poll, round(seconds * 1000))
