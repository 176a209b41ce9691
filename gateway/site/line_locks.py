"""Locks of lines, so that only one gateway per machine uses a line: two would command the same gates.

A lock is a socket in the kernel's abstract namespace, named by the line's address. It leaves no file, needs no
permission, and is released when the process ends, however it ends. It works within one machine or container, not
between machines.
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
    """Locks of the lines of a site, held within a `with` block. Raises ConfigError if another gateway has one."""

    def __init__(self, *, links: Iterable[Link]) -> None:
        self._links = tuple(links)
        self._sockets: dict[str, socket.socket] = {}

    def __enter__(self) -> Self:
        self.claim(self._links)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.keep_only(())

    def claim(self, links: Iterable[Link]) -> None:
        """Lock further lines. If it raises ConfigError, none of them is locked."""
        before = set(self._sockets)
        try:
            for link in links:
                if link.kind != _LISTENS and _line_of(link) not in self._sockets:
                    self._take(link)
        except BaseException:  # the caller does not know which lines are locked so far
            self._release(self._sockets.keys() - before)
            raise

    def keep_only(self, links: Iterable[Link]) -> None:
        """Release all lines but those of these links."""
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
