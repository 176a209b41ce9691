"""Discovery of cameras, converters and devices that nobody has configured, by WS-Discovery (ONVIF) and by mDNS.

WS-Discovery sends a probe to the multicast group on each interface, and collects answers. Answers are
untrusted. They must be small, have no DOCTYPE, and name the probe that they answer.
"""

from __future__ import annotations

import asyncio
import socket
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from urllib.parse import unquote, urlsplit

import ifaddr
from zeroconf import IPVersion, ServiceStateChange
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

from drivers.contract import ProtocolViolation
from drivers.xml_texts import read_xml

GROUP, PORT = "239.255.255.250", 3702
_MOST = 500
_SENT_TIMES = 2
_APART_SECONDS = 0.3
_LONGEST = 80
_PROBE = """<?xml version="1.0" encoding="UTF-8"?>
<e:Envelope xmlns:e="http://www.w3.org/2003/05/soap-envelope"
 xmlns:w="http://schemas.xmlsoap.org/ws/2004/08/addressing"
 xmlns:d="http://schemas.xmlsoap.org/ws/2005/04/discovery"
 xmlns:dn="http://www.onvif.org/ver10/network/wsdl">
<e:Header><w:MessageID>{message}</w:MessageID>
<w:To>urn:schemas-xmlsoap-org:ws:2005:04:discovery</w:To>
<w:Action>http://schemas.xmlsoap.org/ws/2005/04/discovery/Probe</w:Action></e:Header>
<e:Body><d:Probe><d:Types>dn:NetworkVideoTransmitter</d:Types></d:Probe></e:Body></e:Envelope>"""

TYPES = (
    "_axis-video._tcp.local.",
    "_rtsp._tcp.local.",
    "_psia._tcp.local.",
    "_onvif._tcp.local.",
    "_modbus._tcp.local.",
    "_http._tcp.local.",
)
_MOST_NAMES = 500
_ASK_MILLISECONDS = 1500


@dataclass(frozen=True, slots=True)
class OnvifCamera:
    """A camera as it announces itself.

    Attributes:
        address: the host name or IP address of its ONVIF service.
        service: the URL of its ONVIF service.
        name: its name, "" when it gives none.
        hardware: its model, "" when it gives none.
    """

    address: str
    service: str
    name: str
    hardware: str


def probe(message: str) -> bytes:
    """Return a probe for cameras with this message id."""
    return _PROBE.format(message=message).encode()


def camera_of(answer: bytes, *, message: str) -> OnvifCamera | None:
    """Return the camera that answers the probe with the id `message`; None for any other bytes."""
    try:
        texts = read_xml(answer).first
    except ProtocolViolation:
        return None
    if texts.get("RelatesTo") != message:
        return None
    for service in texts.get("XAddrs", "").split():
        try:
            host = urlsplit(service).hostname
        except ValueError:
            continue
        if host and service.startswith(("http://", "https://")):
            scopes = texts.get("Scopes", "").split()
            return OnvifCamera(host, service, _scope(scopes, "name"), _scope(scopes, "hardware"))
    return None


async def onvif_cameras(
    interfaces: Iterable[str], *, seconds: float, group: str = GROUP, port: int = PORT
) -> tuple[OnvifCamera, ...]:
    """Ask on the interfaces with these addresses, and return the cameras that answer within `seconds`."""
    message = f"urn:uuid:{uuid.uuid4()}"
    found: dict[str, OnvifCamera] = {}
    loop = asyncio.get_running_loop()
    listener = partial(_Listener, message, found)
    transports = []
    try:
        for address in interfaces:
            with suppress(OSError):  # an interface that is just going away, or takes no multicast
                transport, _ = await loop.create_datagram_endpoint(listener, sock=_socket(address))
                transports.append(transport)
        for turn in range(_SENT_TIMES if transports else 0):
            for transport in transports:
                transport.sendto(probe(message), (group, port))
            await asyncio.sleep(_APART_SECONDS if turn < _SENT_TIMES - 1 else seconds)
    finally:
        for transport in transports:
            transport.close()
    return tuple(found[service] for service in sorted(found))


class _Listener(asyncio.DatagramProtocol):
    """The collector of the answers at one interface."""

    def __init__(self, message: str, found: dict[str, OnvifCamera]) -> None:
        self._message = message
        self._found = found

    def datagram_received(self, data: bytes, addr: tuple[str | int, int]) -> None:  # noqa: ARG002 (asyncio's signature)
        camera = camera_of(data, message=self._message)
        if camera is not None and len(self._found) < _MOST:
            self._found[camera.service] = camera

    def error_received(self, exc: Exception) -> None:
        """Ignore an ICMP error: some host does not listen on the port."""


def _socket(address: str) -> socket.socket:
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sender.settimeout(0)
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
        sender.bind((address, 0))
    except OSError:
        sender.close()
        raise
    return sender


def _scope(scopes: list[str], key: str) -> str:
    """Return the decoded value of a scope, as in `onvif://www.onvif.org/name/Yard%20camera`; "" for none."""
    for scope in scopes:
        head, found, value = scope.partition(f"/{key}/")
        if found and head.endswith("onvif.org"):
            text = "".join(character for character in unquote(value, errors="replace") if character.isprintable())
            return text[:_LONGEST].strip()
    return ""


def ipv4_addresses() -> tuple[str, ...]:
    """Return the IPv4 addresses of this machine, without loopback ones."""
    found = [str(address.ip) for adapter in ifaddr.get_adapters() for address in adapter.ips if address.is_IPv4]
    return tuple(dict.fromkeys(address for address in found if not address.startswith("127.")))


@dataclass(frozen=True, slots=True, order=True)
class Announced:
    """An announced service: its kind (as in `rtsp`), name, IPv4 address and port."""

    kind: str
    name: str
    address: str
    port: int


async def announced(interfaces: Iterable[str], *, seconds: float) -> tuple[Announced, ...]:
    """Return the services that announce themselves within `seconds` on the interfaces with these addresses."""
    addresses = list(interfaces)
    if not addresses:
        return ()
    seen: dict[tuple[str, str], None] = {}
    async with AsyncZeroconf(interfaces=addresses, ip_version=IPVersion.V4Only) as network:
        browser = AsyncServiceBrowser(network.zeroconf, list(TYPES), handlers=[partial(_heard, seen)])
        try:
            await asyncio.sleep(seconds)
        finally:
            await browser.async_cancel()
        answers = await asyncio.gather(*(_resolved(network, kind, name) for kind, name in seen))
    return tuple(sorted({found for answer in answers for found in answer}))


def _heard(
    seen: dict[tuple[str, str], None],
    zeroconf: object,  # noqa: ARG001 (zeroconf calls by these names)
    service_type: str,
    name: str,
    state_change: ServiceStateChange,
) -> None:
    if state_change is not ServiceStateChange.Removed and len(seen) < _MOST_NAMES:
        seen[service_type, name] = None


async def _resolved(network: AsyncZeroconf, service_type: str, name: str) -> list[Announced]:
    info = AsyncServiceInfo(service_type, name)
    if not await info.async_request(network.zeroconf, _ASK_MILLISECONDS):
        return []
    shown = "".join(one for one in name.removesuffix(f".{service_type}") if one.isprintable())
    kind = service_type.partition(".")[0].removeprefix("_")
    return [Announced(kind, shown, address, info.port or 0) for address in info.parsed_addresses(IPVersion.V4Only)]
