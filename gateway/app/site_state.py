"""The state of the site's parts, read for the list of problems."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import structlog

from drivers.device import SharedLine
from gateway.app.fleet import FleetTask
from gateway.app.machine_watch import MachineWatch
from gateway.app.mqtt import MirrorTask
from gateway.app.reader_use import silent_now
from gateway.backup.last_backup import last_backup
from gateway.central.central_link import CentralLink
from gateway.domain.errors import ConfigError, StoreError
from gateway.domain.silent_readers import SilentReader
from gateway.domain.travels import TRAVEL_EVENTS, SlowGate, most_travels, slow_gates
from gateway.lanes import Lanes
from gateway.problems.accounts import WeakAccounts, weak_accounts
from gateway.problems.backups import LastBackup
from gateway.problems.found import CrowdedListener, SiteState
from gateway.problems.lines import SiteLine
from gateway.problems.machine import MachineState
from gateway.recording import Recording
from gateway.runtime.clock import SystemClock
from gateway.runtime.loop_watch import LoopWatch
from gateway.site import Site
from gateway.site.certificates import ends_at, serving_context
from gateway.site.running_site import RunningSite
from gateway.store import Books, Store

log = structlog.get_logger(__name__)

_QUERY_SECONDS = 2.0
_TRAVELS_SECONDS = 60.0
_LIST_OLD_PULLS = 10
_LIST_OLD_SECONDS = 900.0


class SiteStateReader:
    """The reader of the parts' present state. Values that need a query or a file are read by `refresh`, every 2 s."""

    def __init__(
        self,
        *,
        site: Site,
        site_file: RunningSite,
        lines: Mapping[str, SharedLine],
        lanes: Lanes,
        recording: Recording,
        central: CentralLink | None,
        fleet: FleetTask,
        mirror: MirrorTask,
        store: Store,
        clock: SystemClock,
        interface_fault: Callable[[], str],
        machine: MachineWatch,
        loop: LoopWatch,
        data: Path,
        guessable: Mapping[str, str],
        crowded: Callable[[], tuple[CrowdedListener, ...]],
    ) -> None:
        """`central`: None for a site without central. `lines` are by the id of their link.

        `guessable`: the hashes of passwords that are known to be easily guessed, by the account's name.
        """
        self._site_file = site_file
        self.change(site, lines=lines, central=central)
        self._lanes = lanes
        self._recording = recording
        self._fleet = fleet
        self._mirror = mirror
        self._store = store
        self._clock = clock
        self._interface_fault = interface_fault
        self._machine = machine
        self._loop = loop
        self._data = data
        self._backup: LastBackup | None = None
        self._guessable = guessable
        self._crowded = crowded
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

    def change(
        self,
        site: Site,
        *,
        lines: Mapping[str, SharedLine],
        central: CentralLink | None,
    ) -> None:
        """Read the parts of a changed site from now on."""
        self._site = site
        self._lines = {name: (line, _units_of(site, name)) for name, line in lines.items()}
        self._central = central

    def now(self) -> SiteState:
        """Return the present state, with the values of the last `refresh`. Never waits."""
        wall, central = self._clock.wall(), self._site.central
        pulls = 0.0 if central is None else central.longest_pull_seconds
        old = max(_LIST_OLD_SECONDS, _LIST_OLD_PULLS * pulls)
        return SiteState(
            lanes=self._lanes.lanes(),
            devices=self._lanes.devices(),
            cameras=self._recording.cameras(),
            restarting_workers=self._recording.restarting_workers(),
            storage=self._recording.storage(),
            central=None if self._central is None else self._central.snapshot(),
            fleet=self._fleet.status(),
            broker=self._mirror.status(),
            store_failing=self._store.failing,
            store_damaged=self._store.damaged,
            cards_lost=self._store.cards.lost,
            interface_fault=self._interface_fault(),
            site_notices=self._site_file.notices(),
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
        return MachineState(
            disks=self._machine.disks,
            memory_high=self._machine.memory_high,
            slow_commits=self._store.slow_seconds,
            loop_held=self._loop.held_again(self._clock.monotonic()),
            clock_step=self._clock.stepped(),
        )

    async def refresh(self) -> None:
        """Read the values that need a query or a file, unless they are less than 2 s old.

        If the store cannot be read, the earlier values stay.
        """
        now = self._clock.monotonic()
        if now < self._refreshed_at + _QUERY_SECONDS:
            return
        self._refreshed_at = now
        self._backup = await asyncio.to_thread(last_backup, self._data)
        try:
            self._books = await self._store.outbox.books()
            await self._fleet.count()
            await self._mirror.count()
            hooks = await self._store.webhooks.all()
            self._weak_accounts = await self._weak_now()
            if now >= self._travels_read_at + _TRAVELS_SECONDS:
                self._travels_read_at = now
                self._slow_gates = await self._slow_now()
                self._silent_readers = await silent_now(self._site, store=self._store, clock=self._clock)
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
        return weak_accounts(await self._store.accounts.all(), guessable=self._guessable)

    async def _slow_now(self) -> tuple[SlowGate, ...]:
        events = await self._store.events.lately(types=TRAVEL_EVENTS, limit=most_travels(len(self._site.lanes)))
        return await asyncio.to_thread(lambda: tuple(slow_gates(events)))


def _units_of(site: Site, link: str) -> Mapping[int, tuple[int, ...]]:
    """Return the ids of the devices on a line, by their unit's address."""
    units: dict[int, tuple[int, ...]] = {}
    for device in site.devices:
        if device.link == link and (number := device.number()) is not None:
            units[number.value] = (*units.get(number.value, ()), device.id)
    return units
