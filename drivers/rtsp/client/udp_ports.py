"""A pair of UDP ports that a camera sends to: packets to the even one, reports to the odd one. Never waits.

Older RTSP servers go on sending a session that was cut off, on the connection that follows it; recorders send several
cameras to one port.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeVar

from drivers.rtsp.errors import CameraUnreachable

_RECEIVE_BUFFER = 2_097_152
_LARGEST = 65_535
_MOST_AT_ONCE = 512
_TRIES = 50
_PACKET_SSRC_AT, _REPORT_SSRC_AT = 8, 4
"""The offset of the sender's SSRC in an RTP packet and in an RTCP report (RFC 3550, 5.1 and 6.4.1)."""

_Packet = TypeVar("_Packet", bytes, bytes | memoryview)

_SSRC_AT, _SSRC_UNTIL = 8, 12
_GONE_SECONDS = 2.0
_MOST_LEFT = 16


@dataclass(frozen=True, slots=True)
class Sender:
    """The ports and the SSRC that the camera named in its answer to SETUP (RFC 2326, 12.39).

    Attributes:
        port: the port from which it sends packets; 0 when it named none.
        reports_port: the port from which it sends reports and on which it takes them; 0 when it named none.
        ssrc: the four bytes of its SSRC; empty when it named none.
    """

    port: int = 0
    reports_port: int = 0
    ssrc: bytes = b""


class RtpPorts:
    """A pair of local ports that accepts datagrams of one sender only.

    A sender is known by its host, and by its ports and its SSRC as far as the camera names them. The host alone would
    not tell the channels of one recorder apart.
    """

    def __init__(self, *, local_host: str, remote_host: str) -> None:
        self._local_host = local_host
        self._remote_host = remote_host
        self._sender = Sender()
        self._packets: socket.socket | None = None
        self._reports: socket.socket | None = None
        self.first = 0
        self.passed_over = 0
        """The number of datagrams dropped because the camera named another port or another SSRC."""

    def open(self) -> None:
        """Bind a free pair of ports.

        Raises:
            CameraUnreachable: no free pair was found.
        """
        family = socket.AF_INET6 if ":" in self._local_host else socket.AF_INET
        for _ in range(_TRIES):
            first = random.randrange(20_000, 60_000, 2)  # noqa: S311  # a port, no secret
            pair = [socket.socket(family, socket.SOCK_DGRAM) for _ in range(2)]
            try:
                for each, port in zip(pair, (first, first + 1), strict=True):
                    each.setblocking(False)  # noqa: FBT003  # the socket's own signature
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
                    each.bind((self._local_host, port))
            except OSError:
                for each in pair:
                    each.close()
                continue
            self._packets, self._reports = pair
            self.first = first
            return
        raise CameraUnreachable("no free pair of UDP ports")

    def filenos(self) -> tuple[int, int]:
        """Return the descriptors of the packets' and the reports' sockets, for polling."""
        if self._packets is None or self._reports is None:
            raise CameraUnreachable("the source is not open")
        return self._packets.fileno(), self._reports.fileno()

    def expect(self, sender: Sender) -> None:
        """Accept datagrams of this sender only, and send reports to it."""
        self._sender = sender

    def receive(self) -> tuple[list[bytes], list[bytes]]:
        """Return the packets and the reports that have come."""
        sender = self._sender
        return (
            self._drain(self._packets, port=sender.port, ssrc_at=_PACKET_SSRC_AT),
            self._drain(self._reports, port=sender.reports_port, ssrc_at=_REPORT_SSRC_AT),
        )

    def report(self, packet: bytes) -> None:
        """Send a receiver report. It is dropped when the network does not take it now."""
        if self._reports is not None and self._sender.reports_port:
            try:
                self._reports.sendto(packet, (self._remote_host, self._sender.reports_port))
            except OSError:
                return

    def close(self) -> None:
        """Close the ports."""
        for each in (self._packets, self._reports):
            if each is not None:
                each.close()

    def _drain(self, local: socket.socket | None, *, port: int, ssrc_at: int) -> list[bytes]:
        came: list[bytes] = []
        ssrc = self._sender.ssrc
        while local is not None and len(came) < _MOST_AT_ONCE:
            try:
                data, sender = local.recvfrom(_LARGEST)
            except BlockingIOError:
                break
            except OSError:  # an ICMP error about an earlier report; later datagrams may be valid
                continue
            if sender[0] != self._remote_host:
                continue
            if (port and sender[1] != port) or (ssrc and data[ssrc_at : ssrc_at + 4] != ssrc):
                self.passed_over += 1
                continue
            came.append(data)
        return came


class OneSender:
    """The sender (SSRC) of one medium. A new one is followed at once; the one before it then only if the new one ends.

    Args:
        payload_types: the payload types of the medium. Packets of others are none of its sender's, and are passed on.
    """

    def __init__(self, payload_types: Collection[int]) -> None:
        self._payload_types = frozenset(payload_types)
        self._left: set[bytes] = set()
        self._heard_at = 0.0
        self.ssrc = b""
        """The sender's SSRC; empty before its first packet."""

    def packets(self, came: list[_Packet], now: float) -> list[_Packet]:
        """Return the packets without those of other senders. `now` is when they came, in monotonic seconds."""
        ssrc = self.ssrc
        if (
            not self._left and came[0][_SSRC_AT:_SSRC_UNTIL] == ssrc and came[-1][_SSRC_AT:_SSRC_UNTIL] == ssrc
        ):  # as good as always: the packets between two of one sender are its own
            self._heard_at = now
            return came
        return [packet for packet in came if self._is_own(packet, now)]

    def _is_own(self, packet: bytes | memoryview, now: float) -> bool:
        if len(packet) < _SSRC_UNTIL or packet[1] & 0x7F not in self._payload_types:
            return True
        ssrc = bytes(packet[_SSRC_AT:_SSRC_UNTIL])
        if ssrc != self.ssrc:
            if ssrc in self._left and now - self._heard_at < _GONE_SECONDS:
                return False
            self._left.discard(ssrc)
            if self.ssrc:
                self._left.add(self.ssrc)
            if len(self._left) > _MOST_LEFT:  # it has a new one for each packet
                self._left.clear()
            self.ssrc = ssrc
        self._heard_at = now
        return True
