"""The client's address and scheme behind a reverse proxy. Forwarding headers count only from trusted proxies."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

from aiohttp import web

from drivers.listening.addresses import parsed_address
from gateway.site.addresses import Network

TRUSTED_PROXIES = web.AppKey("trusted_proxies", tuple[Network, ...])
"""`[api] trusted_proxies` of the site file."""
_UNKNOWN = "unknown"


def client_address(request: web.BaseRequest, trusted: tuple[Network, ...]) -> str:
    """Return the client's address: the nearest one that is not a trusted proxy's.

    `X-Forwarded-For` is read from its end, the part that trusted proxies added. A client can write any address before
    that, so earlier entries are ignored.
    """
    address = parsed_address(request.remote or "")
    if address is None:
        return request.remote or _UNKNOWN
    forwarded = ",".join(request.headers.getall("X-Forwarded-For", ())).split(",")
    while forwarded and is_trusted(address, trusted):
        nearer = parsed_address(forwarded.pop())
        if nearer is None:
            break
        address = nearer
    return str(address)


def client_scheme(request: web.BaseRequest, trusted: tuple[Network, ...]) -> str:
    """Return the scheme of the client's request; a trusted proxy with TLS names it in `X-Forwarded-Proto`."""
    address = parsed_address(request.remote or "")
    if address is not None and is_trusted(address, trusted):
        told = ",".join(request.headers.getall("X-Forwarded-Proto", ())).rpartition(",")[2].strip().lower()
        if told in ("http", "https"):
            return told
    return request.scheme


def address_of(request: web.Request) -> str:
    """Return the client's address, with the application's trusted proxies."""
    return client_address(request, request.app.get(TRUSTED_PROXIES, ()))


def is_trusted(address: IPv4Address | IPv6Address, trusted: tuple[Network, ...]) -> bool:
    """Return whether the address is a trusted proxy's."""
    return any(address in network for network in trusted)
