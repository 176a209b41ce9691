"""The addresses of this machine's interfaces."""

from __future__ import annotations

import ifaddr

LOOPBACK = "127.0.0.1"


def ipv4_addresses() -> tuple[str, ...]:
    """Return the IPv4 addresses of this machine, without loopback ones."""
    found = [str(address.ip) for adapter in ifaddr.get_adapters() for address in adapter.ips if address.is_IPv4]
    return tuple(dict.fromkeys(address for address in found if not address.startswith("127.")))
