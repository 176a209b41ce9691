"""The delivery of a command over TCP: acknowledged by the peer's kernel, or taken back before it is sent twice.

To take bytes back means to reset the connection, so that the kernel drops what it has not delivered. A reset cannot
recall a packet that is on its way. The kernel sends a lost packet again after 200 ms or more (`tcpi_rto`; a tail loss
probe comes after 200 ms and twice the round trip). If the peer's hardware address is unknown by then, here or in a
router, that second packet is held for up to 3 s while the address is looked up. It outlives the reset and is delivered
when the line is back. So a command that is not acknowledged is taken back before the kernel sends it again. Once bytes
are acknowledged, the peer has them, and its answer may take longer.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import socket
import struct
import termios
import weakref
from asyncio.trsock import TransportSocket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

_NETWORKS = Path("/sys/class/net")
_RTM_GETROUTE, _NLM_F_REQUEST, _RTM_NEWROUTE = 26, 1, 24
_RTA_DST, _RTA_OIF = 1, 4
_HEADER, _ROUTE, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=BBBBBBBBI"), struct.Struct("=HH")
_ANSWER_SIZE = 4096

_LOOK_SECONDS = 0.02
_PROBE_SECONDS = 0.2
"""The delay that a tail loss probe adds to two round trips, for a peer that acknowledges late."""
_SHARE = 0.7
"""The share of the retransmission time after which bytes are taken back; the rest is margin for a late event loop."""
_INFO_SIZE = 104
_RTO, _RTT, _TOTAL_RETRANS = 8, 8 + 15 * 4, 8 + 23 * 4  # offsets in struct tcp_info
_HELD_SECONDS = 3


class Carrier:
    """The carrier signal of one network interface. The carrier of an unknown interface counts as present.

    The kernel's file of it stays open as long as this object lives: to open it right before each command takes longer
    than to read it.

    Args:
        interface: its name, "" when it is not known.
    """

    def __init__(self, interface: str) -> None:
        self.interface = interface
        self._file: int | None = None
        if interface:
            with contextlib.suppress(OSError):  # gone
                self._file = os.open(_NETWORKS / interface / "carrier", os.O_RDONLY)
                weakref.finalize(self, os.close, self._file)

    @classmethod
    def under(cls, line: TransportSocket) -> Carrier:
        """Find the interface by which the kernel reaches the peer of this connection."""
        try:
            return cls(socket.if_indextoname(_interface_to(line.family, line.getpeername()[0])))
        except (OSError, ValueError, struct.error):
            return cls("")  # no route any more, or no permission to ask

    def is_lost(self) -> bool:
        """Return whether the interface has no carrier, so that nothing can leave by it now."""
        if not self.interface:
            return False
        try:
            return self._file is None or os.pread(self._file, 1, 0) == b"0"
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


@dataclass(frozen=True, slots=True)
class TcpState:
    """The kernel's view of one connection.

    Attributes:
        unacknowledged: bytes written that the peer's kernel has not acknowledged.
        retransmissions: packets sent again since the connection was opened.
        sent_again_after: seconds after which a packet without an acknowledgement is sent again.
    """

    unacknowledged: int
    retransmissions: int
    sent_again_after: float

    @classmethod
    def of(cls, line: TransportSocket) -> TcpState:
        """Ask the kernel for the state of a connection. Raises OSError for a closed socket."""
        info = line.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_SIZE)
        (rto,), (rtt,), (total,) = (struct.unpack_from("=I", info, at) for at in (_RTO, _RTT, _TOTAL_RETRANS))
        (unacknowledged,) = struct.unpack("i", fcntl.ioctl(line.fileno(), termios.TIOCOUTQ, bytes(4)))
        return cls(unacknowledged, total, min(rto / 1e6, _PROBE_SECONDS + 2 * rtt / 1e6))


class Delivery:
    """The watch over the bytes written on one TCP connection. On other lines it does nothing.

    Args:
        transport: the connection's transport, which must be open.
    """

    def __init__(self, transport: asyncio.BaseTransport) -> None:
        line = transport.get_extra_info("socket")
        is_ip = line is not None and line.family in {socket.AF_INET, socket.AF_INET6}
        self._line = line if is_ip else None
        self._carrier = Carrier.under(line) if is_ip else Carrier("")

    @property
    def why_not_write(self) -> str:
        """The reason why nothing may be written now; "" for none."""
        if not self._carrier.is_lost():
            return ""
        return f"{self._carrier.interface} has no carrier: its network cable is unplugged"

    @property
    def unacknowledged(self) -> int:
        """Number of bytes that the peer's kernel has not acknowledged."""
        state = self._state()
        return state.unacknowledged if state is not None else 0

    def guard(self, *, until: Callable[[], bool], take_back: Callable[[str], None]) -> None:
        """Call `take_back` once, with the reason, if bytes stay unacknowledged.

        Returns at once; the watch goes on until `until()` is True. At the call, no byte may be unacknowledged.
        """
        state = self._state()
        if state is not None:
            now = asyncio.get_running_loop().time()
            self._look(until, take_back, retransmissions=state.retransmissions, settled_at=now)

    def _look(
        self,
        until: Callable[[], bool],
        take_back: Callable[[str], None],
        *,
        retransmissions: int,
        settled_at: float,
    ) -> None:
        """Check whether everything is acknowledged, and schedule the next check.

        Args:
            until: returns True when the watch is over.
            take_back: called with the reason when bytes stay unacknowledged.
            retransmissions: the connection's count when the watch began.
            settled_at: the loop's time of the last check that found nothing unacknowledged.
        """
        state = None if until() else self._state()
        if state is None:
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        if not state.unacknowledged:
            settled_at = now
        due_at = settled_at + _SHARE * state.sent_again_after
        unplugged = self.why_not_write
        if unplugged or now >= due_at:
            reason = unplugged or "the device's network does not acknowledge the command"
            if unplugged or state.retransmissions > retransmissions:
                reason += f"; a copy of the command may still arrive within {_HELD_SECONDS} s"
            take_back(reason)
            return
        again = partial(self._look, until, take_back, retransmissions=retransmissions, settled_at=settled_at)
        loop.call_at(min(now + _LOOK_SECONDS, due_at), again)

    def _state(self) -> TcpState | None:
        if self._line is None or self._line.fileno() < 0:
            return None
        try:
            return TcpState.of(self._line)
        except OSError:
            return None  # the connection is lost: its reader reports that
