"""The interface on its port: its certificate, and the reason when it is not served."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from drivers.listening.places import Crowd
from gateway.app.running_field import ended
from gateway.runtime.clock import Clock
from gateway.runtime.process_settings import import_beside, loop_first
from gateway.runtime.supervision import Supervisor
from gateway.site import Site
from gateway.store.engine.changes import Changes

if TYPE_CHECKING:
    from gateway.web.app import Interface

log = structlog.get_logger(__name__)

_NOT_YET = "the interface is not served yet"
_START_SECONDS = 20.0
"""A start takes a few seconds until it serves, on a slow machine more."""


@dataclass(kw_only=True, slots=True)
class ServedInterface:
    """The interface, served while `run` runs. `site` may be replaced between two runs.

    Attributes:
        site: the site, with the interface's address and certificate.
        changes: woken when the interface begins to be served, or cannot be served.
        run_folder: the folder of the local socket.
        make: builds the interface.
        clock: the clock by which a start takes longer than usual.
        fault: why the interface is not served, "" while it is.
        is_awaited: whether its start has not come to an end yet; its fault is then that it is not served yet.
        is_changing: whether it is about to be served anew; its fault is then the previous one.
        port: the interface's port; 0 until it is served.
        crowd: reads the callers for whom there was no room in the last minute.
    """

    site: Site
    changes: Changes
    run_folder: Path
    make: Callable[[], Interface]
    clock: Clock
    fault: str = _NOT_YET
    is_awaited: bool = field(default=True, init=False)
    is_changing: bool = field(default=False, init=False)
    port: int = field(default=0, init=False)
    crowd: Callable[[], Crowd | None] = field(default=lambda: None, init=False)
    _begun_at: float = field(init=False)
    _services: Supervisor | None = field(default=None, init=False)
    _task: asyncio.Task[None] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Note when the start began."""
        self._begun_at = self.clock.monotonic()

    @property
    def lasting_fault(self) -> str:
        """The reason why the interface is not served; "" for a start that has not come so far yet."""
        is_starting = self.is_awaited and self.clock.monotonic() - self._begun_at < _START_SECONDS
        return "" if is_starting else self.fault

    def start(self, services: Supervisor) -> None:
        """Serve under the supervisor of the services."""
        self._services = services
        self._task = services.keep("web", self.run)

    def start_anew(self) -> None:
        """Build and serve the interface again, after running requests have ended. One of them may have asked for it."""
        if self._services is not None:
            self.is_changing = True
            self._services.once("interface anew", self._end_and_start(self._services))

    async def _end_and_start(self, services: Supervisor) -> None:
        await ended([self._task] if self._task is not None else [])
        self.start(services)

    async def run(self) -> None:
        """Serve until cancelled. A port that the system chose (port 0 in the site file) is used again by later runs."""
        await asyncio.to_thread(import_beside, "gateway.web.app")
        from gateway.web.http.server import PLACES, serve  # noqa: PLC0415  # imported by the line above

        api = self.site.api
        app = await asyncio.to_thread(loop_first, lambda: self.make().build())  # it compresses the page's files
        self.crowd = lambda: app[PLACES].places.crowd
        await serve(
            app,
            host=api.listens_on,
            port=api.port or self.port,
            started=self._serving,
            failed=self._not_serving,
            run_folder=self.run_folder,
            tls=api.tls,
        )

    def _serving(self, port: int) -> None:
        self.fault, self.port, self.is_awaited, self.is_changing = "", port, False, False
        self.changes.bump()
        log.info("interface_served", host=self.site.api.listens_on, port=port)

    def _not_serving(self, why: str) -> None:
        """Note why the port cannot be served. The gateway goes on, because gates work without a page."""
        if self.fault != why:
            log.error("interface_not_served", error=why)
        self.fault, self.is_awaited, self.is_changing = why, False, False
        self.changes.bump()
