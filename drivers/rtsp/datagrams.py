"""The two UDP ports that a camera sends to: packets on the even one, its reports on the odd one. Blocking."""

from __future__ import annotations

import random
import socket
from types import TracebackType
from typing import Self

from drivers.rtsp.errors import CameraUnreachable

_RECEIVE_BUFFER = 2_097_152
_LARGEST = 65_535
_MOST_AT_ONCE = 512
_TRIES = 50


class RtpPorts:
    """A pair of ports; datagrams of strangers are passed over."""

    def __init__(self, *, local_host: str, remote_host: str) -> None:
        self._local_host = local_host
        self._remote_host = remote_host
        self._packets: socket.socket | None = None
        self._reports: socket.socket | None = None
        self._remote_port = 0
        self.first = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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
        """For polling: packets', reports'."""
        if self._packets is None or self._reports is None:
            raise CameraUnreachable("the source is not open")
        return self._packets.fileno(), self._reports.fileno()

    def aim(self, remote_port: int) -> None:
        """Where the camera's reports port is; 0: it did not say."""
        self._remote_port = remote_port

    def receive(self) -> tuple[list[bytes], list[bytes]]:
        """What has come: packets, reports. Never waits."""
        return self._drain(self._packets), self._drain(self._reports)

    def report(self, packet: bytes) -> None:
        """Send a receiver's report; a network that does not take it now gets the next one."""
        if self._reports is not None and self._remote_port:
            try:
                self._reports.sendto(packet, (self._remote_host, self._remote_port))
            except OSError:
                return

    def close(self) -> None:
        """Give the ports back."""
        for each in (self._packets, self._reports):
            if each is not None:
                each.close()

    def _drain(self, port: socket.socket | None) -> list[bytes]:
        came: list[bytes] = []
        while port is not None and len(came) < _MOST_AT_ONCE:
            try:
                data, sender = port.recvfrom(_LARGEST)
            except BlockingIOError:
                break
            except OSError:  # an ICMP error of what was sent; what comes next may be well
                continue
            if sender[0] == self._remote_host:
                came.append(data)
        return came
