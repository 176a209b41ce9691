"""The certificate for new connections. Replaced files take effect without a restart."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import structlog

from gateway.domain.errors import ConfigError
from gateway.site.api_section import TlsSection
from gateway.site.certificates import serving_context

log = structlog.get_logger(__name__)

LOOK_SECONDS = 5.0

_Stamp = tuple[tuple[int, int, int], ...]


class ServedCertificate:
    """The TLS context of new connections, loaded again when its files change."""

    def __init__(self, tls: TlsSection, context: ssl.SSLContext, stamp: _Stamp) -> None:
        self._tls = tls
        self._stamp = stamp
        self.context = context

    @classmethod
    async def read(cls, tls: TlsSection) -> ServedCertificate:
        """Read certificate and key. Raises ConfigError with one sentence."""
        stamp = await asyncio.to_thread(_stamp_of, tls)
        return cls(tls, await asyncio.to_thread(serving_context, tls), stamp)

    async def run(self) -> None:
        """Look for replaced files until cancelled. While certificate and key do not match, the earlier ones stay."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            stamp = await asyncio.to_thread(_stamp_of, self._tls)
            if stamp == self._stamp:
                continue
            try:
                self.context = await asyncio.to_thread(serving_context, self._tls)
            except ConfigError as error:
                log.warning("certificate_not_replaced", error=str(error))
            else:
                log.info("certificate_replaced", certificate=self._tls.certificate)
            self._stamp = stamp


def _stamp_of(tls: TlsSection) -> _Stamp:
    """Return inode, modification time and size of each file, without missing files, to notice replacements."""
    found = []
    for name in (tls.certificate, tls.key):
        try:
            state = Path(name).stat()
        except OSError:
            continue
        found.append((state.st_ino, state.st_mtime_ns, state.st_size))
    return tuple(found)
