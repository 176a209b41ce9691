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
        self._links = tuple(links)
        self._sockets: dict[str, socket.socket] = {}

    def __enter__(self) -> Self:
        self.claim(self._links)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.keep_only(())

    def claim(self, links: Iterable[Link]) -> None:
        """Lock these lines besides those that are locked. Raises ConfigError, and none of them is locked then."""
        before = set(self._sockets)
        try:
            for link in links:
                if link.kind != _LISTENS and _line_of(link) not in self._sockets:
                    self._take(link)
        except BaseException:  # nobody else would release the lines locked so far
            self._release(self._sockets.keys() - before)
            raise

    def keep_only(self, links: Iterable[Link]) -> None:
        """Release every other line."""
        self._release(self._sockets.keys() - {_line_of(link) for link in links})

    def _take(self, link: Link) -> None:
        name = _line_of(link)
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0edge-gateway/line/{hashlib.sha256(name.encode()).hexdigest()}")
        except OSError as error:
            claim.close()
            if error.errno != errno.EADDRINUSE:
                raise ConfigError(f"link {link.id} cannot be claimed on this machine: {error.strerror}") from error
            raise ConfigError(f"link {link.id} ({name}) is driven by another edge-gateway on this machine") from error
        self._sockets[name] = claim

    def _release(self, names: Iterable[str]) -> None:
        for name in tuple(names):
            self._sockets.pop(name).close()


def _line_of(link: Link) -> str:
    return str(real_line(link.line()))
