"""Parts of simulated devices that speak HTTP: a server on loopback, and digest authentication (RFC 7616, MD5)."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from drivers.http_session import DeviceAccount

_FIELD = re.compile(r'\b(\w+)=(?:"([^"]*)"|([^\s,]+))')


@asynccontextmanager
async def on_loopback(app: web.Application, *, port: int = 0, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve on a port of this machine, and yield it; 0 takes a free one."""
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


class DigestGuard:
    """The guard that admits callers with the account, as cameras do (qop=auth).

    Args:
        account: the only account.
    """

    def __init__(self, *, account: DeviceAccount) -> None:
        self._account = account
        self._nonce = secrets.token_hex(16)
        self.turned_down = 0

    def expire(self) -> None:
        """Change the challenge, so that clients with the old one must authenticate again."""
        self._nonce = secrets.token_hex(16)

    def challenge(self, request: web.Request) -> web.Response | None:
        """Return None for an admitted client, otherwise the answer that asks for credentials."""
        if self._is_answered(request):
            return None
        self.turned_down += 1
        asked = f'Digest realm="camera", nonce="{self._nonce}", algorithm=MD5, qop="auth"'
        return web.Response(status=401, text="unauthorized", headers={"WWW-Authenticate": asked})

    def _is_answered(self, request: web.Request) -> bool:
        scheme, _, rest = request.headers.get("Authorization", "").partition(" ")
        said = {name: quoted or plain for name, quoted, plain in _FIELD.findall(rest)}
        if scheme.lower() != "digest" or said.get("nonce") != self._nonce or said.get("uri") != request.raw_path:
            return False
        known = _md5(f"{self._account.username}:camera:{self._account.password}")
        asked = _md5(f"{request.method}:{request.raw_path}")
        counted = f"{said.get('nc')}:{said.get('cnonce')}:{said.get('qop')}"
        return hmac.compare_digest(_md5(f"{known}:{self._nonce}:{counted}:{asked}"), said.get("response", ""))


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()  # what the protocol of such cameras asks for
