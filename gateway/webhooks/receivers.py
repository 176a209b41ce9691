"""Rules for receivers: public ones with HTTPS, private ones if the site file lists them. Pure.

A webhook's URL comes from outside, so it must not become a way to reach this machine, its neighbours or a cloud's
metadata addresses (SSRF). Names are checked by the addresses to which they resolve, at every attempt.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from socket import inet_aton
from typing import Final
from urllib.parse import urlsplit

from gateway.domain.errors import ReceiverRefused

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


def check_address(address: str, *, allowed: Collection[Network], encrypted: bool) -> None:
    """Raise ReceiverRefused, with one sentence, for an address to which nothing may be sent."""
    try:
        real = _real(address.partition("%")[0])
    except ValueError as error:
        raise ReceiverRefused("the receiver's address cannot be understood") from error
    if any(real in network for network in allowed if network.version == real.version):
        return
    if not real.is_global or real.is_multicast or any(real in one for one in _NEVER if one.version == real.version):
        raise ReceiverRefused(f"{real} is not on the public internet, and not among the site file's private_receivers")
    if not encrypted:
        raise ReceiverRefused(f"{real} is on the public internet: only https:// is sent there")


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
        raise ReceiverRefused("the receiver's address cannot be understood") from error


def _real(address: str) -> IPv4Address | IPv6Address:
    """Parse an address; return the IPv4 address inside an IPv6 one (mapped, 6to4, Teredo, NAT64). Raises ValueError."""
    found = ip_address(address)
    if isinstance(found, IPv4Address):
        return found
    inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
    if inner is None and found in _NAT64:
        inner = IPv4Address(int(found) & 0xFFFF_FFFF)
    return inner or found
