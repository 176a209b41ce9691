"""A WS-Discovery responder: a camera that answers probes on the multicast group of loopback."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

MATCH = """<?xml version="1.0" encoding="UTF-8"?>
<SOAP-ENV:Envelope xmlns:SOAP-ENV="http://www.w3.org/2003/05/soap-envelope"
 xmlns:wsa="http://schemas.xmlsoap.org/ws/2004/08/addressing"
 xmlns:d="http://schemas.xmlsoap.org/ws/2005/04/discovery">
<SOAP-ENV:Header><wsa:MessageID>urn:uuid:1</wsa:MessageID><wsa:RelatesTo>{message}</wsa:RelatesTo></SOAP-ENV:Header>
<SOAP-ENV:Body><d:ProbeMatches><d:ProbeMatch>
<d:Types>dn:NetworkVideoTransmitter</d:Types>
<d:Scopes>onvif://www.onvif.org/type/video_encoder onvif://www.onvif.org/name/Yard%20camera
 onvif://www.onvif.org/hardware/P3245</d:Scopes>
<d:XAddrs>{service}</d:XAddrs></d:ProbeMatch></d:ProbeMatches></SOAP-ENV:Body></SOAP-ENV:Envelope>"""
SERVICE = "http://192.168.1.20/onvif/device_service"
_GROUP = "239.255.255.250"


@asynccontextmanager
async def responder(port: int = 0) -> AsyncIterator[tuple[str, int, list[bytes]]]:
    """Answer probes; gives the group, the port, and what was asked. Port 0: any free one."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.setblocking(False)
    listening.bind((_GROUP, port))
    member = socket.inet_aton(_GROUP) + socket.inet_aton("127.0.0.1")
    listening.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
    asked: list[bytes] = []
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: _Camera(asked), sock=listening)
    try:
        yield _GROUP, int(listening.getsockname()[1]), asked
    finally:
        transport.close()


class _Camera(asyncio.DatagramProtocol):
    def __init__(self, asked: list[bytes]) -> None:
        self._asked = asked

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str | int, int]) -> None:
        self._asked.append(data)
        found = re.search(rb"MessageID>([^<]+)<", data)
        if found:
            self._transport.sendto(MATCH.format(message=found[1].decode(), service=SERVICE).encode(), addr)
