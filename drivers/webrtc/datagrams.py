"""Datagrams to one address, many in one system call: Linux cuts them to size (UDP generic segmentation offload)."""

from __future__ import annotations

import contextlib
import errno
import socket
import struct

_UDP_SEGMENT = 103
"""Option of udp(7): the size of the datagrams into which a larger one is cut. Python does not name it."""
_SEGMENT_SIZE = struct.Struct("=H")
_REFUSALS = frozenset({errno.EIO, errno.EINVAL, errno.EMSGSIZE, errno.ENOPROTOOPT, errno.EOPNOTSUPP})
"""Errors for data that the kernel or the network device cannot cut to size."""


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
