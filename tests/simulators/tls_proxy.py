"""A reverse proxy before the gateway: it ends TLS, forwards address and scheme, and rewrites `Host` where told to."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import ClientSession, DummyCookieJar, web

from simulation.far_ends.http_device import on_loopback

_OF_THE_LINE = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "content-encoding"})


@asynccontextmanager
async def tls_proxy(target: str, *, tls: ssl.SSLContext, host: str | None = None) -> AsyncIterator[str]:
    """Its address. Clients name the address they come from in `X-Test-From`, which stands for the connection's own."""
    async with ClientSession(cookie_jar=DummyCookieJar(), auto_decompress=False) as client:

        async def carried(request: web.Request) -> web.StreamResponse:
            headers = {name: value for name, value in request.headers.items() if name.lower() not in _OF_THE_LINE}
            came_from = headers.pop("X-Test-From", request.remote or "")
            before = headers.get("X-Forwarded-For")
            headers["X-Forwarded-For"] = f"{before}, {came_from}" if before else came_from
            headers["X-Forwarded-Proto"] = request.scheme
            if host is not None:
                headers["Host"] = host
            body = await request.read()
            async with client.request(
                request.method, target + request.path_qs, headers=headers, data=body, allow_redirects=False
            ) as answer:
                kept = [(name, value) for name, value in answer.headers.items() if name.lower() not in _OF_THE_LINE]
                response = web.Response(status=answer.status, body=await answer.read())
                for name, value in kept:
                    if name.lower() != "content-type":
                        response.headers.add(name, value)
                    else:
                        response.headers[name] = value
                return response

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", carried)
        async with on_loopback(app, tls=tls) as port:
            yield f"https://127.0.0.1:{port}"
