"""The two UDP ports that a camera sends to: packets on the even one, its reports on the odd one. Blocking."""

from __future__ import annotations

import random
import socket
from dataclasses import dataclass

from drivers.rtsp.errors import CameraUnreachable

_RECEIVE_BUFFER = 2_097_152
_LARGEST = 65_535
_MOST_AT_ONCE = 512
_TRIES = 50
_PACKET_SSRC_AT, _REPORT_SSRC_AT = 8, 4
"""The offset of the sender's SSRC in an RTP packet and in an RTCP report (RFC 3550, 5.1 and 6.4.1)."""


@dataclass(frozen=True, slots=True)
class Sender:
    """The port and SSRC that the camera named in its answer to SETUP (RFC 2326, 12.39).

    Attributes:
        port: it sends packets from it; 0: not named.
        reports_port: it sends and takes reports there; 0: not named.
        ssrc: four bytes; empty: not named.
    """

    port: int = 0
    reports_port: int = 0
    ssrc: bytes = b""


class RtpPorts:
    """A pair of ports that takes datagrams of one sender; all others are passed over.

    The host alone does not tell the channels of one recorder apart, so the ports and the SSRC count too as far as the
    camera names them.
    """

    def __init__(self, *, local_host: str, remote_host: str) -> None:
        self._local_host = local_host
        self._remote_host = remote_host
        self._sender = Sender()
        self._packets: socket.socket | None = None
        self._reports: socket.socket | None = None
        self.first = 0
        self.passed_over = 0
        """Datagrams of the camera's host that came from another port or with another SSRC than it named."""

    def open(self) -> None:
        """Find a free pair.

        Raises:
            CameraUnreachable: there is none.
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
        """Take datagrams of this sender only, and send reports to it."""
        self._sender = sender

    def receive(self) -> tuple[list[bytes], list[bytes]]:
        """Return the packets and the reports that have come. Never waits."""
        sender = self._sender
        return (
            self._drain(self._packets, port=sender.port, ssrc_at=_PACKET_SSRC_AT),
            self._drain(self._reports, port=sender.reports_port, ssrc_at=_REPORT_SSRC_AT),
        )

    def report(self, packet: bytes) -> None:
        """Send a receiver's report; a network that does not take it now gets the next one."""
        if self._reports is not None and self._sender.reports_port:
            try:
                self._reports.sendto(packet, (self._remote_host, self._sender.reports_port))
            except OSError:
                return

    def close(self) -> None:
        """Give the ports back."""
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
            except OSError:  # an ICMP error of what was sent; what comes next may be well
                continue
            if sender[0] != self._remote_host:
                continue
            if (port and sender[1] != port) or (ssrc and data[ssrc_at : ssrc_at + 4] != ssrc):
                self.passed_over += 1
                continue
            came.append(data)
        return came
