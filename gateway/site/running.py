"""Site file of a running gateway: reloading, and the parts that need a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from gateway.domain.errors import ConfigError
from gateway.site.difference import Difference, difference
from gateway.site.faults import SiteFaults
from gateway.site.load import doubtful, load
from gateway.site.models import Site
from gateway.site.secrets import Secrets

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Reloaded:
    """Result of a reload: `faults` (then nothing changed), `changes` (what changed), and `restart` (parts that need a
    restart).
    """

    faults: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()


class RunningSite:
    """Reloader of the site file: cameras change while lanes work. A file with faults changes nothing."""

    def __init__(
        self,
        *,
        path: Path,
        site: Site,
        secrets: Secrets,
        take: Callable[[Site], Awaitable[None]],
        read: Callable[[], None],
    ) -> None:
        """Start with the running site.

        `take` gets the running site with the cameras of each file that was read. `read` is called after each reading,
        faults or not.
        """
        self._path = path
        self._site = site
        self._secrets = secrets
        self._take = take
        self._read_again = read
        self._last = Reloaded()
        self._lock = asyncio.Lock()

    def notices(self) -> tuple[str, ...]:
        """Return a sentence for each part of the file that is not in force; empty when all of it is."""
        last = self._last
        if last.faults:
            return (f"the site file has faults and is not in use: {'; '.join(last.faults)}",)
        return tuple(f"changed in the site file, takes effect after a restart: {name}" for name in last.restart)

    async def reload(self) -> Reloaded:
        """Read the file, check it, and take its cameras."""
        async with self._lock:
            self._last = await self._reload()
            self._read_again()
        return self._last

    async def _reload(self) -> Reloaded:
        try:
            site, found, doubts = await asyncio.to_thread(self._read)
        except ConfigError as error:
            faults = tuple(error.lines()) if isinstance(error, SiteFaults) else (str(error),)
            log.error("site_file_not_taken", faults=faults)  # noqa: TRY400 (the sentences say it all)
            return Reloaded(faults=faults)
        for doubt in doubts:
            log.warning("site_file_doubtful", doubt=doubt)
        self._site = self._site.model_copy(update={"cameras": site.cameras})
        await self._take(self._site)
        log.info("site_file_taken", changed=found.sentences())
        if found.restart:
            log.warning("site_file_needs_restart", changed=found.restart)
        return Reloaded(changes=found.sentences(), restart=found.restart)

    def _read(self) -> tuple[Site, Difference, tuple[str, ...]]:
        """Load the file and compare it. Blocks. Raises ConfigError."""
        site = load(self._path, secrets=self._secrets)
        return site, difference(self._site, site), tuple(doubtful(site, self._path))
