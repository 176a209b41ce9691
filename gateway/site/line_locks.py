"""Lock of a line, so that only one gateway per machine uses it: two would command the same gates.

A lock is a socket in the kernel's abstract namespace, named by what the line occupies. It leaves no file, needs no
permission, and ends with the process, however that ends. It works within one machine or container: two gateways on two
machines do not see each other.
"""

from __future__ import annotations

import errno
import hashlib
import socket
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from gateway.domain.errors import ConfigError
from gateway.site.addresses import real_line
from gateway.site.models import Link

_LISTENS = "http-listen"  # a second gateway cannot listen on its port anyway


class LineLocks:
    """Locks on the lines of a site, held within a `with` block. Raises ConfigError when another gateway has one."""

    def __init__(self, *, links: Iterable[Link]) -> None:
        self._links = tuple(link for link in links if link.kind != _LISTENS)
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> Self:
        try:
            for link in self._links:
                self._take(link)
        except BaseException:  # nobody else would release the lines locked so far
            self._release()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._release()

    def _take(self, link: Link) -> None:
        name = str(real_line(link.line()))
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0edge-gateway/line/{hashlib.sha256(name.encode()).hexdigest()}")
        except OSError as error:
            claim.close()
            if error.errno != errno.EADDRINUSE:
                raise ConfigError(f"link {link.id} cannot be claimed on this machine: {error.strerror}") from error
            raise ConfigError(f"link {link.id} ({name}) is driven by another edge-gateway on this machine") from error
        self._sockets.append(claim)

    def _release(self) -> None:
        for claim in self._sockets:
            claim.close()
        self._sockets.clear()
