"""The network interface that a connection leaves by: does it have a carrier, that is, a cable with a peer at its end?

Without a carrier the kernel forgets the peer's hardware address. What is written then waits for that address for up to
3 s, and is delivered when the cable is back even if its connection was reset meanwhile.
"""

from __future__ import annotations

import socket
import struct
from asyncio.trsock import TransportSocket
from pathlib import Path

_NETWORKS = Path("/sys/class/net")
_RTM_GETROUTE, _NLM_F_REQUEST, _RTM_NEWROUTE = 26, 1, 24
_RTA_DST, _RTA_OIF = 1, 4
_HEADER, _ROUTE, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=BBBBBBBBI"), struct.Struct("=HH")
_ANSWER_SIZE = 4096


class Carrier:
    """The carrier of one interface; one that is not known counts as present.

    Args:
        interface: its name, "" when it is not known.
    """

    def __init__(self, interface: str) -> None:
        self.interface = interface
        self._path = _NETWORKS / interface / "carrier"

    @classmethod
    def under(cls, line: TransportSocket) -> Carrier:
        """Find the interface by which the kernel reaches the peer of this connection."""
        try:
            return cls(socket.if_indextoname(_interface_to(line.family, line.getpeername()[0])))
        except (OSError, ValueError, struct.error):
            return cls("")  # no route any more, or no permission to ask

    def is_lost(self) -> bool:
        """Return whether nothing can leave by it now."""
        if not self.interface:
            return False
        try:
            return self._path.read_bytes().strip() == b"0"
        except OSError:
            return True  # switched off, or gone


def _interface_to(family: int, address: str) -> int:
    """Ask the kernel for the number of the interface on the route to an address. Raises OSError, ValueError."""
    name, _, zone = address.partition("%")
    if zone:
        return socket.if_nametoindex(zone)
    target = socket.inet_pton(family, name)
    size = _HEADER.size + _ROUTE.size + _ATTRIBUTE.size + len(target)
    question = (
        _HEADER.pack(size, _RTM_GETROUTE, _NLM_F_REQUEST, 1, 0)
        + _ROUTE.pack(family, len(target) * 8, 0, 0, 0, 0, 0, 0, 0)
        + _ATTRIBUTE.pack(_ATTRIBUTE.size + len(target), _RTA_DST)
        + target
    )
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as asking:
        asking.send(question)
        answer = asking.recv(_ANSWER_SIZE, socket.MSG_DONTWAIT)  # the kernel answers before `send` returns
    if _HEADER.unpack_from(answer)[1] != _RTM_NEWROUTE:
        raise ValueError(f"there is no route to {address}")
    at = _HEADER.size + _ROUTE.size
    while at + _ATTRIBUTE.size <= len(answer):
        length, kind = _ATTRIBUTE.unpack_from(answer, at)
        if kind == _RTA_OIF:
            return int(struct.unpack_from("=I", answer, at + _ATTRIBUTE.size)[0])
        at += max(_ATTRIBUTE.size, (length + 3) & ~3)
    raise ValueError(f"the route to {address} has no interface")
