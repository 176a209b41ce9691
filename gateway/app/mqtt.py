"""The task of the mirror at an MQTT broker, which starts anew when the site file's [mqtt] changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.metadata import version
from typing import TYPE_CHECKING

from gateway.app.run_records import recalled
from gateway.app.running_field import ended
from gateway.domain.server_lines import BrokerStatus
from gateway.lanes import Lanes
from gateway.problems.problem import Verdict
from gateway.runtime.clock import Clock
from gateway.runtime.supervision import Supervisor
from gateway.site import Secrets, Site
from gateway.store import Store

if TYPE_CHECKING:
    from gateway.mqtt.mirror import Mirror


class MirrorTask:
    """The mirror and its task; none without `[mqtt]`."""

    def __init__(
        self,
        *,
        site: Callable[[], Site],
        secrets: Secrets,
        store: Store,
        verdict: Callable[[], Verdict],
        lanes: Lanes,
        clock: Clock,
    ) -> None:
        """Build the mirror for the site that `site` returns. Raises ConfigError for a missing secret."""
        self._site = site
        self._secrets = secrets
        self._store = store
        self._verdict = verdict
        self._lanes = lanes
        self._clock = clock
        self._mirror = self._made()
        self._services: Supervisor | None = None
        self._task: asyncio.Task[None] | None = None

    def status(self) -> BrokerStatus | None:
        """Return the state of the line; None without `[mqtt]`. Never waits."""
        return None if self._mirror is None else self._mirror.status()

    async def count(self) -> None:
        """Count the events that wait for the broker. Raises StoreError."""
        if self._mirror is not None:
            await self._mirror.count()

    async def recall(self) -> None:
        """Begin the read mark, so that the mirror has everything from now on. Raises StoreError."""
        if self._mirror is not None:
            await self._mirror.hold()

    def start(self, services: Supervisor) -> None:
        """Start the task under the supervisor of the services."""
        self._services = services
        if self._mirror is not None:
            self._task = services.keep("mqtt", self._mirror.run)

    async def start_anew(self) -> None:
        """End the task, build the mirror again, and start it. Nothing is lost: what waits is in the store."""
        await ended([self._task] if self._task is not None else [])
        self._task, self._mirror = None, self._made()
        await recalled(self.recall)
        if self._services is not None:
            self.start(self._services)

    def _made(self) -> Mirror | None:
        site = self._site()
        if site.mqtt is None:
            return None
        from gateway.mqtt.line import Broker  # noqa: PLC0415  # most gateways start without it
        from gateway.mqtt.mirror import Mirror, Topics  # noqa: PLC0415  # likewise

        section, endpoint = site.mqtt, site.mqtt.endpoint()
        topics = Topics(f"{section.topic}/{section.site}/{section.gateway}")
        return Mirror(
            broker=Broker(
                host=endpoint.host,
                port=endpoint.port,
                is_encrypted=section.is_encrypted,
                client_id=topics.root,
                username=section.username,
                password=self._secrets.get(section.password) if section.password else None,
                certificate=section.certificate,
                key=section.key,
                ca_file=section.ca_file,
            ),
            topics=topics,
            site_name=lambda: self._site().site.name,
            version=version("edge-gateway"),
            lanes=self._lanes.lanes,
            verdict=self._verdict,
            events=self._store.events,
            read_cursors=self._store.read_cursors,
            box_number=self._store.box_number,
            changes=self._store.changes,
            clock=self._clock,
        )
