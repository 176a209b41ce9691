"""One attempt over HTTP: resolve the name once, check each address, and connect to one of them.

No redirection is followed, no proxy asked, no cookie kept, and nothing of the answer is read beyond its head.
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
        """Take `allowed`, private networks with receivers, and `ca_file`, more authorities than the machine's own.

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
        """Make one try. Never raises for what the receiver or the network does."""
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
        """End the resolver."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _trust(ca_file: str | None) -> ssl.SSLContext:
    if ca_file is None:
        return _trust_of_the_machine()
    trust = ssl.create_default_context()
    trust.load_verify_locations(cafile=ca_file)
    return trust


@cache
def _trust_of_the_machine() -> ssl.SSLContext:
    """Read once: it costs a tenth of a second. The machine's new authorities count from the next start."""
    return ssl.create_default_context()


class _Resolver(AbstractResolver):
    """Resolver with its own threads, so that unanswered names block nothing else; it also checks the addresses."""

    def __init__(self, threads: ThreadPoolExecutor, *, allowed: Collection[Network], encrypted: bool) -> None:
        self._threads = threads
        self._allowed = allowed
        self._encrypted = encrypted

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return every address of the name. Raises ReceiverRefused when any of them may not be sent to."""
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
        """Nothing is held."""


def _pinned(
    allowed: Collection[Network],
    encrypted: bool,  # noqa: FBT001 (bound by `partial`)
    found: tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[object, ...]],
) -> socket.socket:
    """Open the socket for an address right before the connection, and check that address."""
    family, kind, proto, _, address = found
    check_address(str(address[0]), allowed=allowed, encrypted=encrypted)
    return socket.socket(family, kind, proto)


def _certificate_words(error: ClientConnectorCertificateError) -> str:
    cause = error.certificate_error
    return str(getattr(cause, "verify_message", "") or cause.__class__.__name__)


def _words(error: Exception) -> str:
    """Describe a network error without the URL, which may hold a secret."""
    return f"the receiver cannot be reached: {system_words(error)}"
