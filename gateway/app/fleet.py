"""The task of the fleet's parts, which starts anew when the site file's [fleet] changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.metadata import version
from typing import TYPE_CHECKING

import structlog

from gateway.app.running_field import ended
from gateway.domain.errors import StoreError
from gateway.domain.fleet_status import FleetStatus
from gateway.problems.problem import Verdict
from gateway.runtime.clock import Clock
from gateway.runtime.supervision import Supervisor
from gateway.site import Secrets, Site
from gateway.store import Store

if TYPE_CHECKING:
    from gateway.fleet.wiring import FleetParts

log = structlog.get_logger(__name__)


class FleetTask:
    """The fleet's parts and their task; none without `[fleet]`."""

    def __init__(
        self,
        *,
        site: Callable[[], Site],
        secrets: Secrets,
        store: Store,
        verdict: Callable[[], Verdict],
        clock: Clock,
    ) -> None:
        """Build the parts for the site that `site` returns. Raises ConfigError for a missing secret."""
        self._site = site
        self._verdict = verdict
        self._secrets = secrets
        self._store = store
        self._clock = clock
        self._parts = self._made()
        self._services: Supervisor | None = None
        self._task: asyncio.Task[None] | None = None

    def status(self) -> FleetStatus | None:
        """Return the state of the line; None without `[fleet]`. Never waits."""
        return None if self._parts is None else self._parts.status()

    async def count(self) -> None:
        """Count the records that wait for the fleet. Raises StoreError."""
        if self._parts is not None:
            await self._parts.events.count()

    async def recall(self) -> None:
        """Begin the read marks, so that nothing expires unsent. Raises StoreError."""
        if self._parts is not None:
            await self._parts.events.hold()

    def start(self, services: Supervisor) -> None:
        """Start the task under the supervisor of the services."""
        self._services = services
        if self._parts is not None:
            self._task = services.keep("fleet", self._parts.connection.run)

    async def start_anew(self) -> None:
        """End the task, build the parts again, and start them. Nothing is lost: what waits is in the store."""
        await ended([self._task] if self._task is not None else [])
        self._task, self._parts = None, self._made()
        try:
            await self.recall()
        except StoreError as error:
            log.error("start_not_remembered", error=str(error))  # noqa: TRY400 (the sentence says it all)
        if self._services is not None:
            self.start(self._services)

    def _made(self) -> FleetParts | None:
        site = self._site()
        if site.fleet is None:
            return None
        from gateway.fleet.wiring import FleetParts  # noqa: PLC0415  # most gateways start without the library

        return FleetParts.of(
            site.fleet,
            site_name=site.site.name,
            version=version("edge-gateway"),
            secrets=self._secrets,
            store=self._store,
            verdict=self._verdict,
            clock=self._clock,
        )
