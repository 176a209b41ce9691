"""The client's address behind a reverse proxy, and the gateway's own for clients, with its host names.

Forwarding headers count only from trusted proxies. A request with a foreign name in `Host` is refused. This stops DNS
rebinding: a foreign page can have its own name resolved to the gateway's address, and then read answers as from its own
origin; but its requests carry that name in `Host`. An address in `Host` proves that no name was used.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import urlsplit

from aiohttp import web

from drivers.listening.addresses import parsed_address
from gateway.site.addresses import Network
from gateway.site.api_section import ApiSection
from gateway.texts import text
from gateway.web.http.errors import RequestRefused

TRUSTED_PROXIES = web.AppKey("trusted_proxies", tuple[Network, ...])
"""`[api] trusted_proxies` of the site file."""
_UNKNOWN = "unknown"
PUBLIC_URL = web.AppKey("public_url", str)
"""`[api] public_url` of the site file, "" when it is not set."""
HOST_NAMES = web.AppKey("host_names", frozenset[str])
"""The names in lower case, without ports."""
_HOST = re.compile(r"(?P<name>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:(?P<port>[0-9]{0,5}))?")
_NUMBER = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4 = re.compile(rf"{_NUMBER}(\.{_NUMBER}){{3}}")  # the usual case; parsing takes longer
_LARGEST_PORT = 65535


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


def public_origin(request: web.Request) -> str:
    """Return scheme, host and port for links in answers, without a slash at the end.

    A public address of the site file takes precedence over the request's `Host`, which the client or a proxy writes.
    """
    return request.app.get(PUBLIC_URL, "") or f"{_scheme(request)}://{_host(request).lower()}"


def is_own_origin(request: web.Request, origin: str) -> bool:
    """Return whether the origin is the gateway's own: the host of the request, or the public address."""
    _, _, host = origin.partition("://")
    return bool(host) and (host == _host(request) or origin == request.app.get(PUBLIC_URL, ""))


def is_secure(request: web.Request) -> bool:
    """Return whether the client speaks TLS, to the gateway or, as far as can be known, to a proxy in front of it."""
    public = urlsplit(request.app.get(PUBLIC_URL, ""))
    return _scheme(request) == "https" or (public.scheme == "https" and public.netloc == _host(request))


def _host(request: web.Request) -> str:
    """Return the `Host` header, which `refuse_foreign_host` checked; a host in the request target was not checked."""
    return request.headers.get("Host", "")


def _scheme(request: web.Request) -> str:
    return client_scheme(request, request.app.get(TRUSTED_PROXIES, ()))


def served_names(api: ApiSection, *, machine: str) -> frozenset[str]:
    """Return the names from the site file, the machine's own with and without `.local` (mDNS), and `localhost`."""
    public = urlsplit(api.public_url or "").hostname or ""
    names = ("localhost", machine, f"{machine}.local", api.host, public, *api.host_names)
    return frozenset(name.lower().removesuffix(".") for name in names if name)


def refuse_foreign_host(request: web.Request) -> None:
    """Raise RequestRefused (421) unless `Host` is a name of this gateway or an address; a trusted proxy may send any.

    A missing, repeated or malformed `Host` is refused with 400 (RFC 9112, 3.2).
    """
    hosts = request.headers.getall("Host", ())
    if len(hosts) != 1 or not hosts[0]:
        raise RequestRefused(400, "the request needs one Host header")
    found = _HOST.fullmatch(hosts[0])
    if found is None or int(found["port"] or 0) > _LARGEST_PORT:
        raise RequestRefused(400, "the Host header must be a name or an address, with or without a port")
    if _IPV4.fullmatch(found["name"]) or parsed_address(found["name"]) is not None:
        return
    name = found["name"].lower().removesuffix(".")
    if name in request.app[HOST_NAMES]:
        return
    peer = parsed_address(request.remote or "")
    if peer is not None and is_trusted(peer, request.app[TRUSTED_PROXIES]):
        return
    raise RequestRefused(421, text("refused.host_name_unknown"))
