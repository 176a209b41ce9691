"""Discovery of cameras, converters and devices with a web page that announce themselves by mDNS."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import ifaddr
from zeroconf import IPVersion, ServiceStateChange
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

TYPES = (
    "_axis-video._tcp.local.",
    "_rtsp._tcp.local.",
    "_psia._tcp.local.",
    "_onvif._tcp.local.",
    "_modbus._tcp.local.",
    "_http._tcp.local.",
)
_MOST = 500
_ASK_MILLISECONDS = 1500


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
    if state_change is not ServiceStateChange.Removed and len(seen) < _MOST:
        seen[service_type, name] = None


async def _resolved(network: AsyncZeroconf, service_type: str, name: str) -> list[Announced]:
    info = AsyncServiceInfo(service_type, name)
    if not await info.async_request(network.zeroconf, _ASK_MILLISECONDS):
        return []
    shown = "".join(one for one in name.removesuffix(f".{service_type}") if one.isprintable())
    kind = service_type.partition(".")[0].removeprefix("_")
    return [Announced(kind, shown, address, info.port or 0) for address in info.parsed_addresses(IPVersion.V4Only)]
