"""Ports that nobody listens on."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator

_FIRST, _LAST = 20_000, 32_767
"""Below the ports that Linux gives to a socket that asks for any (`ip_local_port_range` begins at 32768).

A port from that range could go to another socket between the test's probe and the gateway that is to listen on it.
"""

_SHARES = 16


def _ports() -> Iterator[int]:
    """Each port of this test worker's share, from a random one on, again and again."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    size = (_LAST + 1 - _FIRST) // _SHARES
    first = _FIRST + int(worker.removeprefix("gw")) % _SHARES * size
    start = random.randrange(size)
    while True:
        for step in range(size):
            yield first + (start + step) % size


_candidates = _ports()


def free_port() -> int:
    """A TCP port of 127.0.0.1 that no other caller of the run gets for a while."""
    for port in _candidates:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("unreachable: the candidates have no end")
