"""One attempt over HTTP: resolve the name once, check each address, and connect to one of them.

Redirects are not followed, proxies not used, cookies not kept, and only the head of the answer is read.

Receivers are public ones with HTTPS, and private ones that the site file lists. A webhook's URL comes from outside, so
it must not become a way to reach this machine, its neighbours or a cloud's metadata addresses (SSRF). Names are checked
by the addresses to which they resolve, at every attempt.

Messages are signed with the interface's own header and by Standard Webhooks.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import re
import socket
import ssl
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from socket import inet_aton
from typing import Final
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
from gateway.texts import text
from gateway.webhooks.retry_policy import AttemptResult

TIMEOUT_SECONDS = 20.0
_RESOLVING_THREADS = 4

Network = IPv4Network | IPv6Network
_LONGEST_URL = 2000
_NUMBER = r"(?:0x[0-9a-f]*|[0-9]+)"
_NUMBERS = re.compile(rf"{_NUMBER}(?:\.{_NUMBER})*", re.IGNORECASE)
_NAT64: Final = IPv6Network("64:ff9b::/96")
_NEVER: Final = (
    IPv4Network("192.88.99.0/24"),  # 6to4 relays (RFC 7526)
    IPv6Network("64:ff9b:1::/48"),
    IPv6Network("fec0::/10"),  # site-local: deprecated (RFC 3879), but still in use
    IPv6Network("::/96"),  # IPv4-compatible: deprecated (RFC 4291)
)

SIGNATURE = "X-SERVICE-Signature"
_STANDARD = "whsec_"
_SHORTEST_KEY, _LONGEST_KEY = 24, 64


def check_address(address: str, *, allowed: Collection[Network], encrypted: bool) -> None:
    """Raise ReceiverRefused, with one sentence, for an address to which nothing may be sent."""
    try:
        real = _real(address.partition("%")[0])
    except ValueError as error:
        raise ReceiverRefused(text("refused.receiver_unreadable")) from error
    if any(real in network for network in allowed if network.version == real.version):
        return
    if not real.is_global or real.is_multicast or any(real in one for one in _NEVER if one.version == real.version):
        raise ReceiverRefused(text("refused.receiver_private", receiver=str(real)))
    if not encrypted:
        raise ReceiverRefused(text("refused.receiver_unencrypted", receiver=str(real)))


def check_url(url: str, *, allowed: Collection[Network]) -> None:
    """Check a URL before its name is resolved. Raises ReceiverRefused, whose text does not repeat the URL."""
    if len(url) > _LONGEST_URL or not url.isascii() or any(letter <= " " or letter == "\x7f" for letter in url):
        raise ReceiverRefused(f"must be at most {_LONGEST_URL} plain characters without blanks")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ReceiverRefused("must be a URL like https://example.com/hook") from error
    if parts.scheme not in {"https", "http"} or not parts.hostname or port == 0:
        raise ReceiverRefused("must be a URL like https://example.com/hook")
    if "@" in parts.netloc:
        raise ReceiverRefused("must not hold credentials: the secret proves who sends")
    if "#" in url:
        raise ReceiverRefused("must not hold a #: what is behind it is sent to nobody")
    if parts.scheme == "http" and not allowed:
        raise ReceiverRefused("must begin with https://")
    address = _written_as_address(parts.hostname)
    if address is not None:
        check_address(address, allowed=allowed, encrypted=parts.scheme == "https")


def _written_as_address(host: str) -> str | None:
    """Return the address that a host name stands for without DNS; None for an ordinary name.

    Resolvers read `127.1`, `0x7f000001` and `2130706433` as addresses. `localhost` and every name below it is this
    machine (RFC 6761). Raises ReceiverRefused for a number that is no address.
    """
    name = host.rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return "127.0.0.1"
    try:
        return str(ip_address(name))
    except ValueError:
        pass
    try:
        return str(IPv4Address(inet_aton(name))) if _NUMBERS.fullmatch(name) else None
    except OSError as error:
        raise ReceiverRefused(text("refused.receiver_unreadable")) from error


def _real(address: str) -> IPv4Address | IPv6Address:
    """Parse an address; return the IPv4 address inside an IPv6 one (mapped, 6to4, Teredo, NAT64). Raises ValueError."""
    found = ip_address(address)
    if isinstance(found, IPv4Address):
        return found
    inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
    if inner is None and found in _NAT64:
        inner = IPv4Address(int(found) & 0xFFFF_FFFF)
    return inner or found


def headers(*, secret: str, message_id: str, timestamp: int, body: bytes) -> Mapping[str, str]:
    """Build the headers of one attempt.

    `X-SERVICE-Signature` is the hexadecimal HMAC-SHA-256 of the body; its key is the secret as registered.
    `webhook-signature` is the one of Standard Webhooks; its key is the base64 after `whsec_`, else the secret itself.
    `timestamp` is the time of this attempt, in seconds since 1970.
    """
    signed = b".".join((message_id.encode(), str(timestamp).encode(), body))
    standard = hmac.new(_standard_key(secret) or secret.encode(), signed, hashlib.sha256).digest()
    return {
        "Content-Type": "application/json",
        "User-Agent": "edge-gateway",
        SIGNATURE: hmac.new(secret.encode(), body, hashlib.sha256).hexdigest(),
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{base64.b64encode(standard).decode()}",
    }


def standard_key_fault(secret: str) -> str:
    """Return why a secret in the form of Standard Webhooks is invalid; "" when it is valid."""
    if not secret.startswith(_STANDARD) or _SHORTEST_KEY <= len(_standard_key(secret)) <= _LONGEST_KEY:
        return ""
    return f"what follows {_STANDARD} must be base64 of {_SHORTEST_KEY} to {_LONGEST_KEY} bytes"


def _standard_key(secret: str) -> bytes:
    """Return the key in a secret of the form of Standard Webhooks; b"" if there is none."""
    if not secret.startswith(_STANDARD):
        return b""
    try:
        return base64.b64decode(secret.removeprefix(_STANDARD), validate=True)
    except ValueError:
        return b""


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

    async def send(self, url: str, *, headers: Mapping[str, str], body: bytes) -> AttemptResult:
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
                return AttemptResult(status=answer.status, retry_after=answer.headers.get("Retry-After", ""))
        except ReceiverRefused as error:
            return AttemptResult(fault=str(error))
        except TimeoutError:
            return AttemptResult(fault=f"no answer within {self._timeout.total:g} s")
        except ClientConnectorCertificateError as error:
            return AttemptResult(fault=f"the receiver's certificate is not trusted: {_certificate_words(error)}")
        except InvalidURL:
            return AttemptResult(fault="the URL is not one that can be asked")
        except (ClientError, OSError, ValueError) as error:
            return AttemptResult(fault=_words(error))

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
