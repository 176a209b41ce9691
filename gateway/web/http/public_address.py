"""The gateway's address for clients: as the site file says, or else as the request itself says."""

from __future__ import annotations

from urllib.parse import urlsplit

from aiohttp import web

from gateway.web.http.forwarded import TRUSTED_PROXIES, client_scheme

PUBLIC_URL = web.AppKey("public_url", str)
"""`[api] public_url`, "" when it is not set."""


def public_origin(request: web.Request) -> str:
    """Scheme, host and port for links that are given out, without a slash at the end.

    What the request says is what the client, or a proxy before the gateway, wrote into `Host`: with a public address
    set it is not asked.
    """
    return request.app.get(PUBLIC_URL, "") or f"{_scheme(request)}://{_host(request).lower()}"


def is_own_origin(request: web.Request, origin: str) -> bool:
    """Return whether this origin is the gateway's own: where the request went, or the public address."""
    _, _, host = origin.partition("://")
    return bool(host) and (host == _host(request) or origin == request.app.get(PUBLIC_URL, ""))


def is_secure(request: web.Request) -> bool:
    """Return whether the client speaks TLS, as far as can be known: a proxy may do so for the gateway."""
    public = urlsplit(request.app.get(PUBLIC_URL, ""))
    return _scheme(request) == "https" or (public.scheme == "https" and public.netloc == _host(request))


def _host(request: web.Request) -> str:
    """Return the `Host` header, which was judged; a target with a host of its own was not."""
    return request.headers.get("Host", "")


def _scheme(request: web.Request) -> str:
    return client_scheme(request, request.app.get(TRUSTED_PROXIES, ()))
