"""Parts that are built again, and their tasks started anew, when their section of the site file changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Generic, Protocol, TypeVar

from gateway.app.run_records import recalled
from gateway.app.running_field import ended
from gateway.runtime.supervision import Supervisor


class RestartableParts(Protocol):
    """Parts that run as tasks. Nothing is lost when they are built again: what waits is in the store."""

    async def recall(self) -> object:
        """Restore what the last run left. Raises StoreError."""

    def runs(self) -> Mapping[str, Callable[[], Coroutine[Any, Any, None]]]:
        """Return the loops by the names of their tasks."""


_Parts = TypeVar("_Parts", bound=RestartableParts | None)


class Restartable(Generic[_Parts]):
    """The parts of one section of the site file, and their tasks.

    Attributes:
        parts: the parts of the site that is in force; None for a site without the section.
    """

    def __init__(self, *, make: Callable[[], _Parts]) -> None:
        """`make` builds the parts for the site that is in force when it is called. Raises what it raises."""
        self._make = make
        self.parts = make()
        self._services: Supervisor | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def recall(self) -> None:
        """Let the parts restore what the last run left. Raises StoreError."""
        if self.parts is not None:
            await self.parts.recall()

    def start(self, services: Supervisor) -> None:
        """Start the tasks under the supervisor of the services."""
        self._services = services
        if self.parts is not None:
            self._tasks = [services.keep(name, run) for name, run in self.parts.runs().items()]

    async def start_anew(self) -> None:
        """End the tasks, build the parts again, and start them."""
        await ended(self._tasks)
        self._tasks = []
        self.parts = self._make()
        await recalled(self.recall)
        if self._services is not None:
            self.start(self._services)
