"""The state of the site's parts, read for the list of problems."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog

from gateway.app.contexts import ServicesContext
from gateway.app.reader_use import silent_now
from gateway.app.restartable import Restartable
from gateway.backup.last_backup import last_backup
from gateway.domain.day_counts import SilentReader
from gateway.domain.errors import ConfigError, StoreError
from gateway.domain.travels import TRAVEL_EVENTS, SlowGate, most_travels, slow_gates
from gateway.problems.found import CrowdedListener, LastBackup, SiteState, WeakAccounts, weak_accounts
from gateway.problems.lines import SiteLine
from gateway.problems.machine import MachineState
from gateway.site import Site
from gateway.site.certificates import ends_at, serving_context
from gateway.store import Books
from gateway.texts import text

if TYPE_CHECKING:
    from gateway.fleet.wiring import FleetParts
    from gateway.mqtt.mirror import Mirror

log = structlog.get_logger(__name__)

_QUERY_SECONDS = 2.0
_TRAVELS_SECONDS = 60.0
_LIST_OLD_PULLS = 10
_LIST_OLD_SECONDS = 900.0


class SiteStateReader:
    """The reader of the parts' present state. Values that need a query or a file are read by `refresh`, every 2 s."""

    def __init__(
        self, context: ServicesContext, *, fleet: Restartable[FleetParts | None], mirror: Restartable[Mirror | None]
    ) -> None:
        self._context = context
        self._fleet = fleet
        self._mirror = mirror
        self._backup: LastBackup | None = None
        self._weak_accounts = WeakAccounts()
        self._books = Books(accepted=0, delivered=0, dropped=0, waiting=0, parked=0)
        self._disabled_webhooks: tuple[tuple[str, str], ...] = ()
        self._failing_webhooks: tuple[tuple[str, str], ...] = ()
        self._certificate_ends: int | None = None
        self._certificate_fault = ""
        self._slow_gates: tuple[SlowGate, ...] = ()
        self._silent_readers: tuple[SilentReader, ...] = ()
        self._travels_read_at = float("-inf")
        self._refreshed_at = float("-inf")
        self.change()

    def change(self) -> None:
        """Read the lines of a changed site from now on."""
        self._site = site = self._context.site()
        lines = self._context.base.field.field.lines
        self._lines = {name: (line, _units_of(site, name)) for name, line in lines.items()}

    def now(self) -> SiteState:
        """Return the present state, with the values of the last `refresh`. Never waits."""
        context, base = self._context, self._context.base
        wall, central, link = base.clock.wall(), self._site.central, context.central.parts.link
        pulls = 0.0 if central is None else central.longest_pull_seconds
        old = max(_LIST_OLD_SECONDS, _LIST_OLD_PULLS * pulls)
        return SiteState(
            lanes=base.lanes.lanes(),
            devices=base.lanes.devices(),
            cameras=context.recording.cameras(),
            restarting_workers=context.recording.restarting_workers(),
            storage=context.recording.storage(),
            central=None if link is None else link.snapshot(),
            fleet=None if self._fleet.parts is None else self._fleet.parts.status(),
            broker=None if self._mirror.parts is None else self._mirror.parts.status(),
            store_failing=base.store.failing,
            store_damaged=base.store.damaged,
            cards_lost=base.store.cards.lost,
            interface_fault=context.interface.lasting_fault,
            site_notices=context.site_file.notices(),
            crowded=self._crowded(),
            machine=self._machine_state(),
            backup=self._backup,
            backup_overdue_hours=self._site.backup.overdue_hours,
            weak_accounts=self._weak_accounts,
            clock_trusted=wall.trusted,
            now=wall.micros,
            list_old_seconds=old,
            refused_records=self._books.parked,
            waiting_records=self._books.waiting,
            disabled_webhooks=self._disabled_webhooks,
            failing_webhooks=self._failing_webhooks,
            certificate_ends=self._certificate_ends,
            certificate_fault=self._certificate_fault,
            slow_gates=self._slow_gates,
            silent_readers=self._silent_readers,
            lines=tuple(SiteLine(line.quality(), units) for line, units in self._lines.values()),
        )

    def _machine_state(self) -> MachineState:
        base = self._context.base
        return MachineState(
            disks=base.machine.disks,
            memory_high=base.machine.memory_high,
            slow_commits=base.store.slow_seconds,
            loop_held=base.loop.held_again(base.clock.monotonic()),
            clock_step=base.clock.stepped(),
        )

    def _crowded(self) -> tuple[CrowdedListener, ...]:
        """Return the listeners of the site that had no room for somebody in the last minute."""
        context, listeners = self._context, self._context.base.field.field.listeners
        crowds = {
            text("listener.page"): context.interface.crowd(),
            **{text("listener.plates", listener=name): one.crowd for name, one in listeners.items()},
            text("listener.viewers"): context.recording.rtsp_crowd(),
        }
        return tuple(CrowdedListener(name, crowd) for name, crowd in crowds.items() if crowd is not None)

    async def refresh(self) -> None:
        """Read the values that need a query or a file, unless they are less than 2 s old.

        If the store cannot be read, the earlier values stay.
        """
        base = self._context.base
        store, now = base.store, base.clock.monotonic()
        if now < self._refreshed_at + _QUERY_SECONDS:
            return
        self._refreshed_at = now
        self._backup = await asyncio.to_thread(last_backup, base.run.folder.path)
        try:
            self._books = await store.outbox.books()
            if self._fleet.parts is not None:
                await self._fleet.parts.events.count()
            if self._mirror.parts is not None:
                await self._mirror.parts.count()
            hooks = await store.webhooks.all()
            self._weak_accounts = await self._weak_now()
            if now >= self._travels_read_at + _TRAVELS_SECONDS:
                self._travels_read_at = now
                self._slow_gates = await self._slow_now()
                self._silent_readers = await silent_now(self._site, store=store, clock=base.clock)
        except StoreError as error:
            log.debug("problems_not_refreshed", error=str(error))  # the failing store is listed as a problem of its own
            return
        named = [(f"webhook {hook.id} at {urlsplit(hook.url).hostname}", hook) for hook in hooks]
        # only the host, because the whole address may hold a secret
        self._disabled_webhooks = tuple((name, hook.disabled) for name, hook in named if hook.disabled)
        self._failing_webhooks = tuple((name, hook.failing) for name, hook in named if hook.failing)
        if (tls := self._site.api.tls) is not None:
            try:
                self._certificate_ends = await asyncio.to_thread(ends_at, tls)
                await asyncio.to_thread(serving_context, tls)
                self._certificate_fault = ""
            except ConfigError as error:
                self._certificate_fault = str(error)

    async def _weak_now(self) -> WeakAccounts:
        if not self._site.api.is_reached_from_elsewhere:
            return WeakAccounts()
        return weak_accounts(await self._context.base.store.accounts.all(), guessable=self._context.guessable)

    async def _slow_now(self) -> tuple[SlowGate, ...]:
        events = self._context.base.store.events
        lately = await events.lately(types=TRAVEL_EVENTS, limit=most_travels(len(self._site.lanes)))
        return await asyncio.to_thread(lambda: tuple(slow_gates(lately)))


def _units_of(site: Site, link: str) -> Mapping[int, tuple[int, ...]]:
    """Return the ids of the devices on a line, by their unit's address."""
    units: dict[int, tuple[int, ...]] = {}
    for device in site.devices:
        if device.link == link and (number := device.number()) is not None:
            units[number.value] = (*units.get(number.value, ()), device.id)
    return units
