"""Does the network interface of a connection have a carrier, that is, a cable with somebody at its other end?

A reset takes back what TCP holds, but not a packet that the kernel has put by until it knows the peer's hardware
address again. It forgets that address when the carrier is lost, and the first retransmission (after 200 ms or more)
waits for it for up to 3 s. So a command whose carrier is lost is taken back before that.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path

_LOOK_SECONDS = 0.02
"""Between two looks while a command is under way: well below the first retransmission."""
_SIOCGIFADDR = 0x8915
_NETWORKS = Path("/sys/class/net")


class Carrier:
    """The carrier of one interface; an interface that is not known counts as well.

    Args:
        interface: its name, "" when it is not known.
    """

    def __init__(self, interface: str) -> None:
        self.interface = interface
        self._path = _NETWORKS / interface / "carrier"

    @classmethod
    def of(cls, address: str) -> Carrier:
        """The interface that has this IPv4 address."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            for _, name in socket.if_nameindex():
                try:
                    answer = fcntl.ioctl(asking.fileno(), _SIOCGIFADDR, struct.pack("256s", name.encode()))
                except OSError:
                    continue  # it has no such address
                if socket.inet_ntoa(answer[20:24]) == address:
                    return cls(name)
        return cls("")

    @classmethod
    def under(cls, transport: asyncio.BaseTransport) -> Carrier:
        """The interface that a TCP connection leaves by."""
        line = transport.get_extra_info("socket")
        is_ip = line is not None and line.family == socket.AF_INET
        return cls.of(line.getsockname()[0]) if is_ip else cls("")

    def guard(self, *, until: Callable[[], bool], lost: Callable[[], None]) -> None:
        """Call `lost` once if the carrier is lost before `until` holds. Looks often; returns at once."""
        if until():
            return
        if self.is_lost():
            lost()
        else:
            asyncio.get_running_loop().call_later(_LOOK_SECONDS, partial(self.guard, until=until, lost=lost))

    def is_lost(self) -> bool:
        """Whether nothing can leave by it now."""
        if not self.interface:
            return False
        try:
            return self._path.read_bytes().strip() == b"0"
        except OSError:
            return True  # switched off, or gone
