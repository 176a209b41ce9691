"""Many WebRTC viewers of one camera of a worker that decode nothing: they count datagrams, and report as players do.

`python counting_viewers.py SOCKET CAMERA COUNT`: prints a line of JSON when each viewer has its first picture, and one
for each line that it reads; it ends with its input. Handshakes and checks are aiortc's.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import statistics
import sys
import time
from typing import Any

import aiohttp
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.rtp import RtcpReceiverInfo, RtcpRrPacket
from waiting import until

_MEDIA = range(128, 192)
_RTCP = range(192, 209)
_BUFFER = 4_194_304
_LARGEST = 65_536
_REPORT_SECONDS = 1.0
_COUNTS = ("packets", "bytes", "lost", "pictures")


class Viewer:
    """One viewer."""

    def __init__(self) -> None:
        self.connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self._receiver = self.connection.addTransceiver("video", "recvonly").receiver
        self.packets = self.bytes = self.lost = self.pictures = 0
        self.answered = self.first_picture = 0.0
        self._ssrc = self._highest = -1
        self._datagram = bytearray(_LARGEST)

    async def open(self, session: aiohttp.ClientSession, camera_id: int) -> None:
        """Agree on a session with the worker; connecting goes on by itself."""
        await self.connection.setLocalDescription(await self.connection.createOffer())
        for protocol in self._ice._protocols:
            self._count_datagrams_of(protocol)
        asked = {"camera_id": camera_id, "offer": self.connection.localDescription.sdp}
        async with session.post("/views", json=asked) as answer:
            told = await answer.json()
            assert answer.status == 201, told
        self.answered = time.monotonic()
        await self.connection.setRemoteDescription(RTCSessionDescription(told["answer"], "answer"))

    async def report(self) -> None:
        """Send a receiver report."""
        if self._ssrc >= 0 and self.connection.connectionState == "connected":
            about = RtcpReceiverInfo(self._ssrc, 0, 0, self._highest, 0, 0, 0)
            await self._receiver.transport._send_rtp(bytes(RtcpRrPacket(ssrc=1, reports=[about])))

    @property
    def _ice(self) -> Any:
        return self._receiver.transport.transport._connection

    def _count_datagrams_of(self, protocol: Any) -> None:
        """Read the socket here, many datagrams at a time; STUN and DTLS go on to the library."""
        loop = asyncio.get_running_loop()
        own = protocol.transport.get_extra_info("socket").dup()
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        loop._remove_reader(protocol.transport.get_extra_info("socket").fileno())
        loop.add_reader(own.fileno(), self._read, own, protocol)

    def _read(self, own: socket.socket, protocol: Any) -> None:
        datagram = self._datagram
        try:
            while True:
                size, address = own.recvfrom_into(datagram)
                if datagram[0] in _MEDIA and datagram[1] not in _RTCP:
                    self._count(size)
                else:
                    protocol.datagram_received(bytes(datagram[:size]), address)
        except BlockingIOError:
            return

    def _count(self, size: int) -> None:
        head = self._datagram
        number = head[2] << 8 | head[3]
        if self._highest >= 0:
            self.lost += (number - self._highest - 1) & 0xFFFF
        else:
            self._ssrc = int.from_bytes(head[8:12], "big")
        self._highest = number
        self.packets += 1
        self.bytes += size
        if head[1] & 0x80:
            self.pictures += 1
            self.first_picture = self.first_picture or time.monotonic()


async def main(path: str, camera_id: int, count: int) -> None:
    viewers = [Viewer() for _ in range(count)]
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    connector = aiohttp.UnixConnector(path)
    async with aiohttp.ClientSession(base_url="http://worker", connector=connector) as session:
        for viewer in viewers:
            await viewer.open(session, camera_id)
            await asyncio.sleep(0.13)  # so that they come at different moments of a group of pictures
        await until(lambda: all(viewer.first_picture for viewer in viewers))
        waits = [viewer.first_picture - viewer.answered for viewer in viewers]
        print(json.dumps({"median": statistics.median(waits), "longest": max(waits)}), flush=True)
        async with asyncio.TaskGroup() as tasks:
            reporting = tasks.create_task(_report(viewers))
            while await lines.readline():
                print(json.dumps({name: sum(getattr(each, name) for each in viewers) for name in _COUNTS}), flush=True)
            reporting.cancel()
        await asyncio.gather(*(viewer.connection.close() for viewer in viewers))


async def _report(viewers: list[Viewer]) -> None:
    for viewer in itertools.cycle(viewers):
        await viewer.report()
        await asyncio.sleep(_REPORT_SECONDS / len(viewers))  # the pace of players' reports


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
