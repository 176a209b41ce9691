"""Certificate authorities for the line to central: the machine's, or those in the site's own file."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import structlog

from gateway.domain.errors import CentralUnavailable

log = structlog.get_logger(__name__)

Mark = tuple[int, int, int]


class Trust:
    """Certificate authorities by which connections to central are checked.

    The file is read at first use, by `renew`, and when a connection was not trusted and the file has changed since. If
    the file cannot be used, the earlier authorities stay in force.
    """

    def __init__(self, ca_file: str | None) -> None:
        self._ca_file = ca_file
        self._tls: ssl.SSLContext | None = None
        self._mark: Mark | None = None
        self._read_lock = asyncio.Lock()

    async def tls(self) -> ssl.SSLContext:
        """Return the TLS context for a new connection. Raises CentralUnavailable when the file was never usable."""
        if self._tls is None:
            async with self._read_lock:
                return self._tls or await self._read()
        return self._tls

    async def renew(self) -> None:
        """Read the file again, for new connections; open ones stay."""
        async with self._read_lock:
            if self._tls is None:
                return
            try:
                await self._read()
            except CentralUnavailable as error:
                log.error("ca_file_not_used", error=str(error))  # noqa: TRY400 (the sentence says it all)

    async def doubted(self) -> None:
        """Read the file again if it has changed: central's certificate was not trusted."""
        if self._ca_file is not None and await asyncio.to_thread(_mark_of, self._ca_file) != self._mark:
            await self.renew()

    async def _read(self) -> ssl.SSLContext:
        mark, tls = await asyncio.to_thread(_read, self._ca_file)
        if self._tls is not None and mark != self._mark:
            log.info("ca_file_read", ca_file=self._ca_file)
        self._mark, self._tls = mark, tls
        return tls


def _read(ca_file: str | None) -> tuple[Mark | None, ssl.SSLContext]:
    # Marked before it is read: a write during the reading changes the mark, and the file is read again.
    mark = None if ca_file is None else _mark_of(ca_file)
    try:
        return mark, ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        words = "it is no certificate in PEM form" if isinstance(error, ssl.SSLError) else error.strerror
        raise CentralUnavailable(f"the CA file {ca_file} cannot be used: {words}", sent=False) from error


def _mark_of(ca_file: str) -> Mark | None:
    """Return a mark that changes whenever the file does; None without a file."""
    try:
        found = Path(ca_file).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
