"""Lock of a line, so that only one gateway per machine uses it: two would command the same gates.

A line is named by what it occupies, and held by a socket in the kernel's abstract namespace: it is no file, needs no
right, and is let go of when the process ends, however it ends. It is seen within the machine, or the container; two
gateways on two machines do not see each other.
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

_LISTENS = "http-listen"  # the port itself tells there


class LineLocks:
    """Holds the lines of a site while it is entered. Raises ConfigError when another gateway has one of them."""

    def __init__(self, *, links: Iterable[Link]) -> None:
        self._links = tuple(link for link in links if link.kind != _LISTENS)
        self._held: list[socket.socket] = []

    def __enter__(self) -> Self:
        try:
            for link in self._links:
                self._take(link)
        except BaseException:  # a line is taken, or it was interrupted: nobody would give back those taken before
            self._release()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._release()

    def _take(self, link: Link) -> None:
        name = str(real_line(link.line()))
        held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            held.bind(f"\0edge-gateway/line/{hashlib.sha256(name.encode()).hexdigest()}")
        except OSError as error:
            held.close()
            if error.errno != errno.EADDRINUSE:
                raise ConfigError(f"link {link.id} cannot be claimed on this machine: {error.strerror}") from error
            raise ConfigError(f"link {link.id} ({name}) is driven by another edge-gateway on this machine") from error
        self._held.append(held)

    def _release(self) -> None:
        for held in self._held:
            held.close()
        self._held.clear()
