"""Detection of a line that is already in use on this machine: two masters would garble each other's answers."""

from __future__ import annotations

import socket
from pathlib import Path
from urllib.parse import urlsplit

_ESTABLISHED = "01"
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


def is_connected(url: str) -> bool:
    """Return whether this machine has a TCP connection to the line's far end. False for serial ports.

    A serial port needs no such check: the program that uses it holds a lock.
    """
    parts = urlsplit(url)
    if parts.scheme != "tcp" or not parts.hostname or not parts.port:
        return False
    try:
        hosts = {str(found[4][0]) for found in socket.getaddrinfo(parts.hostname, parts.port, type=socket.SOCK_STREAM)}
    except OSError:  # opening it will fail too, with its own message
        return False
    wanted = {(_in_table(host), f"{parts.port:04X}") for host in hosts}
    return any(row in wanted for table in _TABLES for row in _remote_ends(table))


def _remote_ends(table: Path) -> list[tuple[str, str]]:
    try:
        lines = table.read_text("ascii").splitlines()[1:]
    except OSError:  # a system without this table
        return []
    rows = (line.split() for line in lines)
    return [(row[2].split(":")[0], row[2].split(":")[1]) for row in rows if row[3] == _ESTABLISHED]


def _in_table(host: str) -> str:
    """Return an address in the form of /proc/net/tcp: hexadecimal 32-bit words in the machine's byte order."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    packed = socket.inet_pton(family, host)
    return "".join(packed[place : place + 4][::-1].hex().upper() for place in range(0, len(packed), 4))
