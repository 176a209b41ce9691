"""The gateway's address for clients: from the site file, or else from the request."""

from __future__ import annotations

from urllib.parse import urlsplit

from aiohttp import web

from gateway.web.http.forwarded import TRUSTED_PROXIES, client_scheme

PUBLIC_URL = web.AppKey("public_url", str)
"""`[api] public_url` of the site file, "" when it is not set."""


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
