"""Encrypted RTP in UDP datagrams: a run of packets is encrypted in one piece of memory and sent in one system call.

pylibsrtp's own call makes several objects for each packet, which costs as much as the encryption. So its binding of
libsrtp is called directly. Linux cuts what it is sent into datagrams (UDP generic segmentation offload).
"""

from __future__ import annotations

import contextlib
import errno
import socket
import struct

# ruff: noqa: SLF001  # see above: the binding and the session's handle are private
from collections.abc import Sequence

from pylibsrtp import Session
from pylibsrtp._binding import ffi, lib  # type: ignore[import-not-found]  # a compiled module

LARGEST_TRAILER = 16 + 128
"""The bytes that libsrtp may write behind a packet (SRTP_MAX_TRAILER_LEN)."""
_UDP_SEGMENT = 103
"""Option of udp(7): the size of the datagrams into which a larger one is cut. Python does not name it."""
_SEGMENT_SIZE = struct.Struct("=H")
_REFUSALS = frozenset({errno.EIO, errno.EINVAL, errno.EMSGSIZE, errno.ENOPROTOOPT, errno.EOPNOTSUPP})
"""Errors for data that the kernel or the network device cannot cut to size."""


class SrtpRun:
    """The memory for a run of encrypted packets. Each run replaces the one before."""

    def __init__(self, *, size: int) -> None:
        """Reserve `size` bytes for the packets of a run."""
        self._memory = ffi.new("unsigned char[]", size + LARGEST_TRAILER)
        self._view = memoryview(ffi.buffer(self._memory))
        self._length = ffi.new("int *")

    def encrypt(self, packets: Sequence[bytes], session: Session) -> tuple[memoryview, int]:
        """Return the packets encrypted, and the size of the first. Raises ValueError for invalid packets."""
        view, memory, length, handle, protect = (
            self._view,
            self._memory,
            self._length,
            session._srtp[0],
            lib.srtp_protect,
        )
        at, size, room = 0, 0, len(view) - LARGEST_TRAILER
        for packet in packets:
            end = at + len(packet)
            if end > room:
                raise ValueError("the packets are too large for one run")
            view[at:end] = packet
            length[0] = end - at
            if status := protect(handle, memory + at, length):
                raise ValueError(f"a packet cannot be encrypted: status {status} of libsrtp")
            size = size or length[0]
            at += length[0]
        return view[:at], size


class DatagramSocket:
    """A non-blocking UDP socket of its own, which it closes at the end.

    Datagrams that cannot be sent now, because the network is full or the address is out of reach, are lost.
    """

    def __init__(self, own: socket.socket) -> None:
        self._socket = own
        self.cuts = _can_cut(own)
        """True while the kernel cuts data to size."""

    def send(self, data: memoryview, *, size: int, address: tuple[str, int]) -> None:
        """Send data in datagrams of `size` bytes, of which the last may be smaller.

        The kernel takes at most 64 of them at once, and together at most 65,000 bytes.
        """
        if self.cuts and len(data) > size:
            try:
                self._socket.sendmsg(
                    (data,), ((socket.IPPROTO_UDP, _UDP_SEGMENT, _SEGMENT_SIZE.pack(size)),), 0, address
                )
            except OSError as error:
                self.cuts = error.errno not in _REFUSALS
            if self.cuts:
                return
        for at in range(0, len(data), size):
            with contextlib.suppress(OSError):  # lost: see above
                self._socket.sendto(data[at : at + size], address)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def _can_cut(own: socket.socket) -> bool:
    try:
        own.getsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT)
    except OSError:  # before Linux 4.18, which would send what it must cut as one large datagram
        return False
    return True
