"""The tasks that work with central: started with the services, and restarted when the site file's [central] changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from gateway.app.central import CentralParts
from gateway.app.running_field import ended
from gateway.domain.errors import StoreError
from gateway.runtime.supervision import Supervisor

log = structlog.get_logger(__name__)


class CentralTasks:
    """The parts that work with central, and their tasks.

    Attributes:
        parts: the parts of the site that is in force.
    """

    def __init__(self, *, make: Callable[[], CentralParts]) -> None:
        """`make` builds the parts for the site that is in force when it is called."""
        self._make = make
        self.parts = make()
        self._services: Supervisor | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, services: Supervisor) -> None:
        """Start the tasks under the supervisor of the services."""
        self._services = services
        for name, part in (("sync", self.parts.sync), ("relay", self.parts.relay)):
            if part is not None:
                self._tasks.append(services.keep(name, part.run))

    async def start_anew(self) -> None:
        """End the tasks, build the parts again, and start them. Nothing is lost: the outbox is on disk."""
        await ended(self._tasks)
        self._tasks.clear()
        self.parts = self._make()
        try:
            await self.parts.writes.recall()
        except StoreError as error:
            log.error("start_not_remembered", error=str(error))  # noqa: TRY400 (the sentence says it all)
        if self._services is not None:
            self.start(self._services)
