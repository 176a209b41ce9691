"""HTTP towards devices: digest authentication, translated errors, and requests that are never repeated.

aiohttp repeats a PUT by itself when its connection breaks before the answer. A gate that had already obeyed would get
the command twice, so a broken connection becomes a driver's error before aiohttp sees it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import aiohttp

from drivers.contract import DeviceFault, LineDown, LinkError
from drivers.delivery import Delivery
from drivers.link import bound_output
from drivers.system_messages import system_words

CONNECT_SECONDS = 3.0
_LARGEST_ANSWER = 64 * 1024
_UNAUTHORIZED = 401


class DeviceAccountRefused(DeviceFault):
    """The device refuses the user name or password. Devices lock an account after repeated failures: do not retry."""


BeforeBytes = Callable[[], None]
"""Called right before the first byte of each attempt at a request. An exception from it stops the attempt."""


@dataclass(frozen=True, slots=True)
class DeviceAccount:
    """The gateway's account at a device."""

    username: str
    password: str

    def __repr__(self) -> str:
        """Show the account without its password."""
        return f"Account({self.username!r})"

    def digest(self) -> aiohttp.DigestAuthMiddleware:
        """Return digest authentication that keeps a device's challenge, so that most requests need one attempt only."""
        return aiohttp.DigestAuthMiddleware(login=self.username, password=self.password)


class _Request(aiohttp.ClientRequest):
    """A request that calls `before_bytes` on the open connection right before it writes, with no await in between."""

    before_bytes: BeforeBytes | None = None

    async def send(self, conn: aiohttp.connector.Connection) -> aiohttp.ClientResponse:
        if self.before_bytes is not None:
            self.before_bytes()
            self._guard(conn)
        return await super().send(conn)

    def _guard(self, conn: aiohttp.connector.Connection) -> None:
        """Reset the connection if the device does not acknowledge the request; see `drivers.delivery`."""
        transport = conn.transport
        if transport is None:
            return
        delivery = Delivery(transport)
        if reason := delivery.why_not_write:
            transport.abort()
            raise LineDown(reason)
        delivery.guard(until=lambda: conn.protocol is None, take_back=partial(_reset, conn))


def _reset(conn: aiohttp.connector.Connection, reason: str) -> None:
    """Reset a connection; its request fails with this reason."""
    if conn.protocol is not None:
        conn.protocol.set_exception(aiohttp.ClientOSError(reason))
    if conn.transport is not None:
        conn.transport.abort()


class OneAttempt:
    """The innermost middleware: it turns each broken attempt into LineDown (nothing sent) or LinkError."""

    def __init__(self, *, name: str, before_bytes: BeforeBytes | None = None) -> None:
        self._name = name
        self._before_bytes = before_bytes

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Make one attempt. Read a 401 to its end, so that the next attempt can reuse the connection."""
        if self._before_bytes is not None:
            if not isinstance(request, _Request):
                raise TypeError("such a request needs a session of open_session")
            request.before_bytes = self._before_bytes
        try:
            response = await handler(request)
            if response.status == _UNAUTHORIZED:
                await read_answer(response)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise LineDown(f"{self._name} cannot be reached: {reason_of(error)}") from error
        except (aiohttp.ClientError, OSError) as error:
            raise LinkError(f"{self._name} broke off: {reason_of(error)}") from error
        return response


@asynccontextmanager
async def open_session(*, reuse_lines: bool) -> AsyncIterator[aiohttp.ClientSession]:
    """Open a session towards one device: no cookies, proxies or unpacking, redirects only if asked for.

    `reuse_lines` is False where a request must not go out on a connection that the device is just closing. The
    connection of an abandoned request is reset, so that no byte of it arrives later.
    """
    connector = aiohttp.TCPConnector(limit=4, force_close=not reuse_lines, socket_factory=_bounded_socket)
    async with aiohttp.ClientSession(
        connector=connector,
        request_class=_Request,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Accept-Encoding": "identity"},
        auto_decompress=False,
        timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS, sock_connect=CONNECT_SECONDS),
    ) as session:
        yield session


def _bounded_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = address
    line = socket.socket(family=family, type=kind, proto=protocol)
    bound_output(line)
    return line


async def read_answer(response: aiohttp.ClientResponse) -> bytes:
    """Read the body of an answer. Raises LinkError when it is larger than 64 KiB."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > _LARGEST_ANSWER:
            response.close()
            raise LinkError(f"an answer of more than {_LARGEST_ANSWER} bytes")
    return bytes(body)


def refuse_status(status: int, name: str) -> None:
    """Raise unless the status is 200.

    401 and 403 raise AccountRefused, other 4xx DeviceFault, and everything else LinkError.
    """
    match status:
        case 200:
            return
        case 401 | 403:
            raise DeviceAccountRefused(f"{name} refuses the user name or password (HTTP {status})")
        case _ if 400 <= status < 500:
            raise DeviceFault(f"{name} refuses the request (HTTP {status})")
        case _:
            raise LinkError(f"{name} answers with HTTP {status}")


def reason_of(error: BaseException) -> str:
    """Return the reason of an error in a few words, without headers and body."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return "its certificate is not trusted"
        case aiohttp.ClientConnectorError():
            return system_words(error.os_error)
        case aiohttp.ServerDisconnectedError():
            return "it hung up"
        case asyncio.TimeoutError():
            return "it took too long"
        case OSError():
            return system_words(error)
        case _:
            return "it does not speak HTTP as it should"
