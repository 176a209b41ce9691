"""The wiring of the daemon: every part is built here, handed over by keyword, and run in one tree of owned tasks."""

from __future__ import annotations

import asyncio
import secrets as randomness
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import structlog

from gateway.app.central import CentralParts, CentralTasks, central_parts
from gateway.app.day_counting import DayCounting
from gateway.app.device_registration import DeviceRegistration
from gateway.app.devices import build_field
from gateway.app.expiry import event_keeping, expiry_limits
from gateway.app.fleet import FleetTask
from gateway.app.machine_watch import MachineWatch
from gateway.app.mqtt import MirrorTask
from gateway.app.parts import clock_of, polled_lines, proof_packages_of, recording_of, store_of, webhooks_of
from gateway.app.run_records import RunRecords, recall_acknowledged, recalled
from gateway.app.running_field import RunningField
from gateway.app.served_interface import ServedInterface
from gateway.app.site_changes import SiteChanges, hindrances, reload_when_asked
from gateway.app.site_state import SiteStateReader
from gateway.app.systemd import Notify, Readiness
from gateway.app.traces import traces_of
from gateway.app.watchdog import Watchdog, feed_watchdog
from gateway.lanes import Lanes
from gateway.lanes.access_rules import places_of
from gateway.lanes.incidents import Incidents
from gateway.lines.site_lines import SiteLines
from gateway.problems.watch import BeginsFile, ProblemWatch
from gateway.runtime.clock import boot_id
from gateway.runtime.data_folder import DataFolder
from gateway.runtime.loop_watch import LoopWatch
from gateway.runtime.redaction import Redaction
from gateway.runtime.supervision import Progress, Supervisor
from gateway.runtime.trusted_time import TrustedTimeFile
from gateway.site import Difference, LoadedSite, Secrets, Site
from gateway.site.line_locks import LineLocks
from gateway.site.running_site import RunningSite
from gateway.site.trial_files import AtStart, TrialFiles
from gateway.store import Entry
from gateway.support.bundle import SupportBundle
from gateway.support.masking import Masking

if TYPE_CHECKING:
    from gateway.web.app import Interface
    from gateway.web.auth.admission import Route
    from gateway.web.auth.site_file_accounts import Accounts
    from gateway.web.status.snapshot import DemoCard

log = structlog.get_logger(__name__)

_NOTHING_TAKEN_BACK = AtStart()
_THREADS = 64


class Gateway:
    """The gateway of one site. `live` runs it from start to stop.

    Attributes:
        site: the site in force.
        site_file: the reader of the site file, which also tries changes of it.
        store, lanes, field, interface, progress: its parts.
        stopping: set to stop the gateway.
    """

    def __init__(
        self,
        *,
        loaded: LoadedSite,
        files: TrialFiles,
        folder: DataFolder,
        secrets: Secrets,
        notify: Notify,
        locks: LineLocks | None = None,
        start: AtStart = _NOTHING_TAKEN_BACK,
        redaction: Redaction | None = None,
        log_tail: Callable[[], tuple[str, ...]] = tuple,
        extra_routes: tuple[Route, ...] = (),
        demo_cards: tuple[DemoCard, ...] = (),
    ) -> None:
        self.site = site = loaded.site
        self._start_of_site = start
        self._extra_routes = extra_routes
        self._demo_cards = demo_cards
        self._folder = folder
        self._notify = notify
        self._secrets = secrets
        self._clock = clock_of(folder)
        self._started_at = self._clock.monotonic()
        self._trusted_time = TrustedTimeFile(folder=folder.path, clock=self._clock, boot_id=boot_id())
        self.progress = Progress(clock=self._clock)
        self._loop_watch = LoopWatch()
        self._machine = MachineWatch(folders={"data folder": folder.path, "media folder": folder.media})
        self.stopping = asyncio.Event()
        self._reload_asked = asyncio.Event()
        self.store = store_of(site, folder=folder, clock=self._clock)
        self.interface = ServedInterface(
            site=site,
            secrets=secrets,
            accounts=self.store.accounts,
            changes=self.store.changes,
            run_folder=folder.run,
            make=self._interface_for,
            lanes_first=lambda: self._readiness.lanes_first(),  # noqa: PLW0108 (made behind the interface)
        )
        self._registration = DeviceRegistration(
            devices=self.store.devices, cameras=self.store.cameras, clock=self._clock, site=site
        )
        self._traces = traces_of(site)
        self._add_lanes(site_path=files.path)
        self._recording = recording_of(
            site, store=self.store, folder=folder, clock=self._clock, progress=self.progress, secrets=secrets
        )
        proofs = partial(proof_packages_of, self.store, recording=self._recording, folder=folder, clock=self._clock)
        self._proofs = cache(partial(proofs, site_name=lambda: self.site.site.name))
        self._central = CentralTasks(make=self._central_parts)
        self.site_file = self._running_site(loaded, files=files, locks=locks)
        self._masking = Masking(redaction or Redaction())
        self._log_tail = log_tail
        self._add_watches()
        self._keeping = event_keeping(site, store=self.store, clock=self._clock, forget=self._recording.forget)
        self._webhooks = webhooks_of(site, store=self.store, clock=self._clock)

    def _add_lanes(self, *, site_path: Path) -> None:
        """Build the field, its lanes, and the tools for its polled lines."""
        site = self.site
        field = build_field(site, site_path=site_path, clock=self._clock, secrets=self._secrets)
        self.field = RunningField(field=field, progress=self.progress)
        self.lanes = Lanes(
            site=site,
            gates=field.gates,
            showing=field.showing,
            stoppable=field.stoppable,
            unplaced=field.unplaced,
            drivers=field.drivers,
            limits=field.limits,
            store=self.store,
            clock=self._clock,
            progress=self.progress,
            boot=randomness.token_hex(6),
            alarmed=lambda lane_id: self._incidents.alarm(lane_id),  # noqa: PLW0108 (made behind the lanes)
            traced=self._traces.put if self._traces else None,
        )
        self._records = RunRecords(recorder=self.lanes.recorder, clock=self._clock)
        folder = self._folder.path / "incidents"
        self._incidents = Incidents(folder=folder, clock=self._clock, incident=self.lanes.incident)
        self._polled = polled_lines(site, field.buses, site_path=site_path, devices=self.lanes.devices)
        self._lines = SiteLines.of(self._polled, clock=self._clock)

    def _add_watches(self) -> None:
        """Build the parts that watch all others: the list of problems, readiness for systemd, and daily counts."""
        problems = lambda: self._problems.now()  # noqa: E731, PLW0108 (it is made behind those who ask it)
        desk = partial(FleetTask, lanes=self.lanes, site_file=self.site_file, bundle=self._support_bundle)
        made = partial(desk, central=self._central, secrets=self._secrets, store=self.store, recording=self._recording)
        self._fleet = made(site=lambda: self.site, verdict=problems, proofs=self._proofs, clock=self._clock)
        mirror = partial(MirrorTask, secrets=self._secrets, store=self.store, lanes=self.lanes, clock=self._clock)
        self._mirror = mirror(site=lambda: self.site, verdict=problems)
        self._site_state = self._state_reader()
        self._problems: ProblemWatch = ProblemWatch(
            state=self._site_state.now,
            refresh=self._site_state.refresh,
            changes=self.store.changes,
            clock=self._clock,
            tell=lambda event: self.lanes.recorder.put(Entry(events=(event,))),
            begins=BeginsFile(folder=self._folder.path, clock=self._clock),
        )
        self._readiness = Readiness(
            site=self.site,
            lanes=self.lanes,
            recording=self._recording,
            interface=self.interface,
            verdict=self._problems.now,
            changes=self.store.changes,
            notify=self._notify,
            clock=self._clock,
        )
        self._day_counting = DayCounting(
            day_counts=self.store.day_counts,
            lines=lambda: (line.quality for line in self._site_state.now().lines),
            clock=self._clock,
            zone=lambda: ZoneInfo(self.site.site.timezone),
        )

    def _state_reader(self) -> SiteStateReader:
        return SiteStateReader(
            site=self.site,
            site_file=self.site_file,
            lines=self.field.field.lines,
            lanes=self.lanes,
            recording=self._recording,
            central=self._central.parts.link,
            fleet=self._fleet,
            mirror=self._mirror,
            store=self.store,
            clock=self._clock,
            interface_fault=lambda: self.interface.fault,
            machine=self._machine,
            loop=self._loop_watch,
            data=self._folder.path,
            site_file_accounts=lambda: self.interface.site_accounts,
        )

    async def live(self) -> None:
        """Start, serve until asked to stop, and end in order: services, then buses, then the store."""
        loop = asyncio.get_running_loop()
        # Many: a read from a disk that hangs occupies its thread, and sign-in and look-ups of hosts need a free one.
        loop.set_default_executor(ThreadPoolExecutor(_THREADS, thread_name_prefix="work"))
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stopping.set)
        # Not by the loop, which restores the default action of SIGHUP when it closes: that ends the process.
        signal.signal(signal.SIGHUP, lambda *_: loop.call_soon_threadsafe(self._reload_asked.set))
        await self.store.open()
        try:
            async with Supervisor(clock=self._clock) as lasting:
                lasting.keep("store", self.store.run)
                lasting.keep("recorder", self.lanes.recorder.run)
                await self._remember_start()
                await self._registration.begin()
                lasting.keep("declare", self._registration.run)
                async with Supervisor(clock=self._clock) as lines:
                    self.field.start_lines(lines)
                    async with Supervisor(clock=self._clock) as services:
                        self._start(services)
                        await self.stopping.wait()
                        self._notify.stopping()
                        log.info("gateway_stopping")
                        await self.lanes.until_no_gate_closes()
                await self._records.stopped()
        finally:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            self._webhooks.client.close()
            await self.store.close()

    def _start(self, services: Supervisor) -> None:
        self._watch(services)
        self.lanes.start(services)
        self.field.start(services, reports=self.lanes.report)
        services.keep("recording", self._recording.run)
        for outwards in (self._central, self._fleet, self._mirror):
            outwards.start(services)
        services.keep("trusted time", self._trusted_time.run)
        services.keep("webhooks", self._webhooks.sender.run)
        services.keep("event keeping", self._keeping.run)
        services.keep("day counting", self._day_counting.run)
        services.keep("problems", self._problems.run)
        services.keep("incidents", self._incidents.run)
        if self._traces is not None:
            services.keep("traces", self._traces.run)
        services.keep("line scans", self._lines.scans.run)
        services.keep("site file", partial(reload_when_asked, self.site_file, self._reload_asked))
        services.keep("site file on trial", self.site_file.run)
        self.interface.start(services)
        services.once("readiness", self._readiness.tell())

    def _watch(self, services: Supervisor) -> None:
        watchdog = Watchdog(
            progress=self.progress, store=self.store, buses=lambda: self.field.field.buses, clock=self._clock
        )
        watchdog.expect()
        services.keep("beat", watchdog.run)
        services.keep("loop watch", self._loop_watch.run)
        services.keep("machine watch", self._machine.run)
        feed = partial(feed_watchdog, notify=self._notify, progress=self.progress, status=self._readiness.status)
        services.keep("watchdog", feed)

    def _interface_for(self, accounts: Accounts) -> Interface:
        from gateway.web.app import Interface  # noqa: PLC0415  # lanes start without it

        return Interface(
            site=self.site,
            store=self.store,
            lanes=self.lanes,
            areas=self.lanes.areas,
            recording=self._recording,
            central=self._central.parts.link,
            writes=self._central.parts.writes,
            clock=self._clock,
            started_at=self._started_at,
            accounts=accounts,
            data=self._folder.path,
            verdict=self._problems.now,
            site_state=self._site_state.now,
            acknowledge=self._problems.acknowledge,
            incidents=self._incidents,
            lines=self._lines,
            loop=self._loop_watch,
            traces=self._traces.figures if self._traces else None,
            support=self._support_bundle(),
            proofs=self._proofs(),
            webhooks=self._webhooks.registry,
            outbox=self._central.parts.parked,
            relay=self._central.parts.relay,
            central_accounts=self._central.parts.people,
            extra_routes=self._extra_routes,
            demo_cards=self._demo_cards,
            site_file=self.site_file,
            fleet_seen=self._fleet.seen,
        )

    def _support_bundle(self) -> SupportBundle:
        return SupportBundle(
            site_path=self.site_file.path,
            data=self._folder.path,
            verdict=self._problems.now,
            state=self._site_state.now,
            lines=self._lines,
            events=self.store.events,
            incidents=self._incidents,
            log=self._log_tail,
            masking=self._masking,
            clock=self._clock,
        )

    async def _remember_start(self) -> None:
        """Record the start, and restore the state that the last run left."""
        store, notice = self.store, self._start_of_site.notice
        self._records.started(
            self.site.site.name, was_unclean=store.was_unclean, returned=notice, salvaged=store.salvaged
        )
        await recalled(
            self.lanes.areas.recall,
            self.lanes.settle_unfinished,
            self.lanes.resume,
            self._central.parts.writes.recall,
            self._fleet.recall,
            self._mirror.recall,
            partial(recall_acknowledged, self._problems, self.store.events),
        )
        log.info("gateway_started", site=self.site.site.name, data=str(self._folder.path))

    def _running_site(self, loaded: LoadedSite, *, files: TrialFiles, locks: LineLocks | None) -> RunningSite:
        changes = SiteChanges(
            site=loaded.site,
            site_path=files.path,
            secrets=self._secrets,
            clock=self._clock,
            field=self.field,
            lanes=self.lanes,
            locks=locks,
            others=self._take_others,
            stop=self.stopping.set,
        )
        return RunningSite(
            files=files,
            loaded=loaded,
            secrets=self._secrets,
            take=changes.take,
            read=self.store.changes.bump,
            monotonic=self._clock.monotonic,
            hindrances=lambda: hindrances(self._problems.now(), self.interface),
            tell=self._records.site_changed,
            notice="" if self._start_of_site.put_back else self._start_of_site.notice,
        )

    async def _take_others(self, site: Site, found: Difference) -> None:
        """Apply the changes of a changed site file that concern neither lines nor devices nor lanes."""
        self.site = self.interface.site = self._readiness.site = site
        self.store.rename(site_name=site.site.name, places=places_of(site))
        self._recording.change_cameras(site.cameras)
        self._recording.change_limits(site.storage)
        self._keeping.change(expiry_limits(site), consumer_days=site.keep.consumer_days)
        self._registration.declare(site)
        self._polled.clear()
        buses, path = self.field.field.buses, self.site_file.path
        self._polled.update(polled_lines(site, buses, site_path=path, devices=self.lanes.devices))
        if found.central:
            await self._central.start_anew()
        elif self._central.parts.sync is not None:
            await self._central.parts.sync.trust_anew()
        for is_changed, task in ((found.fleet, self._fleet), (found.mqtt, self._mirror)):
            if is_changed:
                await task.start_anew()
        self._site_state.change(site, lines=self.field.field.lines, central=self._central.parts.link)
        if found.interface:
            self.interface.start_anew()

    def _central_parts(self) -> CentralParts:
        return central_parts(
            self.site,
            secrets=self._secrets,
            store=self.store,
            clock=self._clock,
            evidence_files=self._recording.evidence_files,
            lanes=self.lanes,
        )
