"""Addresses of callers: parsing, and the key under which limits count them. Pure."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

_OF_ONE_HOST = 64


def parsed_address(text: str) -> IPv4Address | IPv6Address | None:
    """Parse an address without its port, and an IPv4-mapped IPv6 address as IPv4. None for anything else."""
    bare = text.strip()
    if bare.startswith("["):
        bare = bare[1:].partition("]")[0]
    elif bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        address = ip_address(bare)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def counted_as(address: str) -> str:
    """Return the key under which an address is counted for limits: an IPv6 address as its /64 network."""
    parsed = parsed_address(address)
    if isinstance(parsed, IPv6Address) and not parsed.is_loopback:
        return str(IPv6Network((int(parsed), _OF_ONE_HOST), strict=False))
    return address if parsed is None else str(parsed)


def is_this_machine(address: str) -> bool:
    """Return whether a caller's address is one of this machine's loopback."""
    parsed = parsed_address(address)
    return parsed is not None and parsed.is_loopback
