"""The task of the fleet's parts, which starts anew when the site file's [fleet] changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from gateway.app.central import CentralTasks
from gateway.app.run_records import recalled
from gateway.app.running_field import ended
from gateway.central.pull.card_notices import CardNotices
from gateway.domain.errors import ConfigError
from gateway.domain.fleet_seen import FleetSeen
from gateway.domain.server_lines import FleetStatus
from gateway.lanes import Lanes
from gateway.problems.problem import Verdict
from gateway.recording import Recording
from gateway.runtime.clock import Clock
from gateway.runtime.supervision import Supervisor
from gateway.site import Secrets, Site
from gateway.site.edits import Edit, edited, inverse
from gateway.site.running_site import Reloaded, RunningSite
from gateway.store import Store
from gateway.support.bundle import SupportBundle

if TYPE_CHECKING:
    from gateway.fleet.wiring import FleetParts
    from gateway.proof_package.of_events import ProofPackages


class FleetTask:
    """The fleet's parts and their task; none without `[fleet]`."""

    def __init__(
        self,
        *,
        site: Callable[[], Site],
        secrets: Secrets,
        store: Store,
        verdict: Callable[[], Verdict],
        lanes: Lanes,
        site_file: RunningSite,
        bundle: Callable[[], SupportBundle],
        recording: Recording,
        proofs: Callable[[], ProofPackages],
        central: CentralTasks,
        clock: Clock,
    ) -> None:
        """Build the parts for the site that `site` returns. Raises ConfigError for a missing secret."""
        self._lanes = lanes
        self._site_file = site_file
        self._bundle = bundle
        self._recording = recording
        self._proofs = proofs
        self._central = central
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

    def seen(self, mark: str) -> FleetSeen | None:
        """Return the gateways of the fleet that have changed since a mark; None without `[fleet]`. Never waits."""
        return None if self._parts is None else self._parts.gateways.since(mark)

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
        await recalled(self.recall)
        if self._services is not None:
            self.start(self._services)

    def _made(self) -> FleetParts | None:
        site = self._site()
        if site.fleet is None:
            return None
        from gateway.fleet.offered_files import FileMaker  # noqa: PLC0415  # as below
        from gateway.fleet.wiring import CommandDesk, FleetParts  # noqa: PLC0415  # most gateways start without the library

        desk = CommandDesk(
            lanes=self._lanes,
            permissions=self._permissions,
            reload=lambda by: self._site_file.reload(by=by),
            edit=self._edit,
            tried=self._site_file.outcome,
            files=FileMaker(bundle=lambda: self._bundle().make(), recording=self._recording, proofs=self._proofs),
            start=self._once,
            notices=self._notices,
        )

        return FleetParts.of(
            site.fleet,
            site_name=site.site.name,
            version=version("edge-gateway"),
            secrets=self._secrets,
            store=self._store,
            verdict=self._verdict,
            desk=desk,
            clock=self._clock,
        )

    async def _edit(self, by: str, edits: Sequence[Edit]) -> tuple[Reloaded, tuple[Edit, ...]]:
        """Change the site file on trial; return the edits that take it back. Raises ConfigError."""
        try:
            text, _, _ = await self._site_file.look()
        except OSError as error:
            raise ConfigError(f"the site file cannot be read: {error.strerror}") from error
        changed = edited(text, edits)
        back = inverse(text, edits)
        return await self._site_file.reload(by=by, text=changed), back

    async def _permissions(self, account: str) -> frozenset[str] | None:
        """Return the permissions of an account of the site; None if it may not sign in. Raises StoreError."""
        stored = next((one for one in await self._store.accounts.all() if one.username == account), None)
        return None if stored is None or stored.disabled else stored.permissions

    def _notices(self) -> CardNotices | None:
        return None if (sync := self._central.parts.sync) is None else sync.notices

    def _once(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        if self._services is None:
            raise RuntimeError("commands are taken only while the services run")
        return self._services.once(name, work)
