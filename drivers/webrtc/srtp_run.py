"""Encryption of several RTP packets, one behind the other, in one piece of memory.

pylibsrtp's own call makes several objects for each packet, which costs as much as the encryption. So its binding of
libsrtp is called directly.
"""
# ruff: noqa: SLF001  # see above: the binding and the session's handle are private

from __future__ import annotations

from collections.abc import Sequence

from pylibsrtp import Session
from pylibsrtp._binding import ffi, lib  # type: ignore[import-not-found]  # a compiled module

LARGEST_TRAILER = 16 + 128
"""The bytes that libsrtp may write behind a packet (SRTP_MAX_TRAILER_LEN)."""


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
