"""One attempt over HTTP: resolve the name once, check each address, and connect to one of them.

Redirects are not followed, proxies not used, cookies not kept, and only the head of the answer is read.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from urllib.parse import urlsplit

from aiohttp import (
    ClientConnectorCertificateError,
    ClientError,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    InvalidURL,
    TCPConnector,
)
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from drivers.system_messages import system_words
from gateway.domain.errors import ReceiverRefused
from gateway.webhooks.receivers import Network, check_address, check_url
from gateway.webhooks.retry_policy import Answer

TIMEOUT_SECONDS = 20.0
_RESOLVING_THREADS = 4


class ReceiverClient:
    """HTTP client for receivers. Call `close` at the end."""

    def __init__(
        self, *, allowed: Collection[Network], ca_file: str | None = None, timeout_seconds: float = TIMEOUT_SECONDS
    ) -> None:
        """Take the private networks with receivers, and a file of certificate authorities beside the machine's.

        Raises OSError when the file cannot be read.
        """
        self._allowed = tuple(allowed)
        self._timeout = ClientTimeout(total=timeout_seconds)
        self._trust = _trust(ca_file)
        self._threads = ThreadPoolExecutor(_RESOLVING_THREADS, thread_name_prefix="resolve-receiver")

    def check(self, url: str) -> None:
        """Check a URL before its name is resolved. Raises ReceiverRefused."""
        check_url(url, allowed=self._allowed)

    async def send(self, url: str, *, headers: Mapping[str, str], body: bytes) -> Answer:
        """Send a message once. Faults of the receiver or the network are in the answer, and never raised."""
        try:
            check_url(url, allowed=self._allowed)
            encrypted = urlsplit(url).scheme == "https"
            connector = TCPConnector(
                resolver=_Resolver(self._threads, allowed=self._allowed, encrypted=encrypted),
                socket_factory=partial(_pinned, self._allowed, encrypted),
                use_dns_cache=False,
                force_close=True,
                ssl=self._trust,
            )
            async with (
                ClientSession(
                    connector=connector,
                    cookie_jar=DummyCookieJar(),
                    timeout=self._timeout,
                    trust_env=False,
                    auto_decompress=False,
                ) as session,
                session.post(URL(url, encoded=True), data=body, headers=headers, allow_redirects=False) as answer,
            ):
                return Answer(status=answer.status, retry_after=answer.headers.get("Retry-After", ""))
        except ReceiverRefused as error:
            return Answer(fault=str(error))
        except TimeoutError:
            return Answer(fault=f"no answer within {self._timeout.total:g} s")
        except ClientConnectorCertificateError as error:
            return Answer(fault=f"the receiver's certificate is not trusted: {_certificate_words(error)}")
        except InvalidURL:
            return Answer(fault="the URL is not one that can be asked")
        except (ClientError, OSError, ValueError) as error:
            return Answer(fault=_words(error))

    def close(self) -> None:
        """Stop the resolver's threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _trust(ca_file: str | None) -> ssl.SSLContext:
    if ca_file is None:
        return _trust_of_the_machine()
    trust = ssl.create_default_context()
    trust.load_verify_locations(cafile=ca_file)
    return trust


@cache
def _trust_of_the_machine() -> ssl.SSLContext:
    """Return the machine's certificate authorities, read once since that takes 0.1 s; new ones need a restart."""
    return ssl.create_default_context()


class _Resolver(AbstractResolver):
    """A resolver with its own threads, so that slow look-ups block nothing else; it also checks the addresses."""

    def __init__(self, threads: ThreadPoolExecutor, *, allowed: Collection[Network], encrypted: bool) -> None:
        self._threads = threads
        self._allowed = allowed
        self._encrypted = encrypted

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return all addresses of the name. Raises ReceiverRefused if any of them is not allowed."""
        asking = partial(socket.getaddrinfo, host, port, family, socket.SOCK_STREAM)
        found = await asyncio.get_running_loop().run_in_executor(self._threads, asking)
        for *_, address in found:
            check_address(str(address[0]), allowed=self._allowed, encrypted=self._encrypted)
        return [
            ResolveResult(
                hostname=host, host=str(address[0]), port=port, family=kind, proto=proto, flags=socket.AI_NUMERICHOST
            )
            for kind, _, proto, _, address in found
        ]

    async def close(self) -> None:
        """Do nothing: the resolver holds nothing of its own."""


def _pinned(
    allowed: Collection[Network],
    encrypted: bool,  # noqa: FBT001 (bound by `partial`)
    found: tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[object, ...]],
) -> socket.socket:
    """Check an address right before the connection, and return a socket for it. Raises ReceiverRefused."""
    family, kind, proto, _, address = found
    check_address(str(address[0]), allowed=allowed, encrypted=encrypted)
    return socket.socket(family, kind, proto)


def _certificate_words(error: ClientConnectorCertificateError) -> str:
    cause = error.certificate_error
    return str(getattr(cause, "verify_message", "") or cause.__class__.__name__)


def _words(error: Exception) -> str:
    """Describe a network error without the URL, which may hold a secret."""
    return f"the receiver cannot be reached: {system_words(error)}"
