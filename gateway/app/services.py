"""The services beside the lanes: recording, central, the list of problems, the interface, and what they need.

They are imported and built once the lanes are under control, because that takes most of a start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from gateway.app.central import CentralParts, CentralTasks, central_parts
from gateway.app.day_counting import DayCounting
from gateway.app.device_registration import DeviceRegistration
from gateway.app.expiry import event_keeping, expiry_limits
from gateway.app.file_accounts import FileAccounts
from gateway.app.fleet import FleetTask
from gateway.app.lane_control import LaneControl
from gateway.app.machine_watch import MachineWatch
from gateway.app.mqtt import MirrorTask
from gateway.app.parts import polled_lines, proof_packages_of, recording_of, webhooks_of
from gateway.app.reader_use import ReaderTrials
from gateway.app.run_records import RunRecords, recall_acknowledged, recalled
from gateway.app.running_field import RunningField
from gateway.app.served_interface import ServedInterface
from gateway.app.site_changes import SiteChanges, hindrances, reload_when_asked
from gateway.app.site_state import SiteStateReader
from gateway.app.systemd import Notify, Readiness
from gateway.app.watchdog import feed_watchdog
from gateway.lanes import Lanes
from gateway.lanes.access_rules import places_of
from gateway.lanes.incidents import Incidents
from gateway.lines.site_lines import SiteLines
from gateway.problems.found import CrowdedListener
from gateway.problems.watch import BeginsFile, ProblemWatch
from gateway.runtime.clock import SystemClock
from gateway.runtime.data_folder import DataFolder
from gateway.runtime.loop_watch import LoopWatch
from gateway.runtime.redaction import Redaction
from gateway.runtime.supervision import Progress, Supervisor
from gateway.site import Difference, LoadedSite, Secrets, Site
from gateway.site.line_locks import LineLocks
from gateway.site.running_site import RunningSite
from gateway.site.trial_files import AtStart, TrialFiles
from gateway.store import Entry, Store
from gateway.support.bundle import SupportBundle
from gateway.support.masking import Masking
from gateway.texts import text

if TYPE_CHECKING:
    from gateway.web.app import Interface
    from gateway.web.families import Route
    from gateway.web.status.snapshot import DemoCard


class Services:
    """The services of one site. Constructors of them may read files: build this beside the loop.

    Attributes:
        site: the site in force.
        site_file: the reader of the site file, which also tries changes of it.
        interface: the interface on its port.
    """

    def __init__(
        self,
        *,
        loaded: LoadedSite,
        files: TrialFiles,
        folder: DataFolder,
        secrets: Secrets,
        notify: Notify,
        locks: LineLocks | None,
        start: AtStart,
        redaction: Redaction,
        log_tail: Callable[[], tuple[str, ...]],
        extra_routes: tuple[Route, ...],
        demo_cards: tuple[DemoCard, ...],
        store: Store,
        lanes: Lanes,
        field: RunningField,
        registration: DeviceRegistration,
        records: RunRecords,
        incidents: Incidents,
        control: LaneControl,
        machine: MachineWatch,
        loop_watch: LoopWatch,
        progress: Progress,
        clock: SystemClock,
        started_at: float,
        stop: Callable[[], None],
    ) -> None:
        """`stop` stops the gateway. Raises ConfigError for a secret that is missing since the site file was loaded."""
        self.site = site = loaded.site
        self._start_of_site = start
        self._extra_routes = extra_routes
        self._demo_cards = demo_cards
        self._folder = folder
        self._notify = notify
        self._secrets = secrets
        self._store = store
        self._lanes = lanes
        self._field = field
        self._registration = registration
        self._records = records
        self._incidents = incidents
        self._control = control
        self._machine = machine
        self._loop_watch = loop_watch
        self._progress = progress
        self._clock = clock
        self._started_at = started_at
        self._stop = stop
        self._masking = Masking(redaction)
        self._log_tail = log_tail
        self._polled = polled_lines(site, field.field.buses, site_path=files.path, devices=lanes.devices)
        self._lines = SiteLines.of(self._polled, clock=clock)
        self._guessable: dict[str, str] = {}
        self.interface = ServedInterface(
            site=site,
            changes=store.changes,
            run_folder=folder.run,
            make=self._interface_for,
            clock=clock,
        )
        self._file_accounts = FileAccounts(
            accounts=store.accounts,
            secrets=secrets,
            clock=clock,
            guessable=self._guessable,
            tell=records.accounts_changed,
            changed=self.interface.start_anew,
        )
        self._recording = recording_of(
            site, store=store, folder=folder, clock=clock, progress=progress, secrets=secrets
        )
        proofs = partial(proof_packages_of, store, recording=self._recording, folder=folder, clock=clock)
        self._proofs = cache(partial(proofs, site_name=lambda: self.site.site.name))
        self._central = CentralTasks(make=self._central_parts)
        self.site_file = self._running_site(loaded, files=files, locks=locks)
        self._add_watches()
        self._keeping = event_keeping(site, store=store, clock=clock, forget=self._recording.forget)
        self._webhooks = webhooks_of(site, store=store, clock=clock)

    async def recall(self) -> None:
        """Restore what the last run left. Call it before `start`."""
        await self._file_accounts.begin(self.site_file.running.accounts)
        await recalled(
            self._central.parts.writes.recall,
            self._fleet.recall,
            self._mirror.recall,
            partial(recall_acknowledged, self._problems, self._store.events),
        )

    def start(self, services: Supervisor, *, reload_asked: asyncio.Event) -> None:
        """Start them under the supervisor of the services; `reload_asked` is set when the site file is to be read."""
        feed = partial(feed_watchdog, notify=self._notify, progress=self._progress, status=self._readiness.status)
        services.keep("watchdog", feed)
        services.keep("recording", self._recording.run)
        for outwards in (self._central, self._fleet, self._mirror):
            outwards.start(services)
        services.keep("webhooks", self._webhooks.sender.run)
        services.keep("event keeping", self._keeping.run)
        services.keep("day counting", self._day_counting.run)
        services.keep("problems", self._problems.run)
        services.keep("line scans", self._lines.scans.run)
        services.keep("site file", partial(reload_when_asked, self.site_file, reload_asked))
        services.keep("site file on trial", self.site_file.run)
        services.keep("accounts of the site file", self._file_accounts.run)
        self.interface.start(services)
        services.once("readiness", self._readiness.tell())

    def close(self) -> None:
        """End the threads that resolve names of receivers. Call it after the services have ended."""
        self._webhooks.client.close()

    def _add_watches(self) -> None:
        """Build the parts that watch all others: the list of problems, readiness for systemd, and daily counts."""
        problems = lambda: self._problems.now()  # noqa: E731, PLW0108 (it is made behind those who ask it)
        desk = partial(FleetTask, lanes=self._lanes, site_file=self.site_file, bundle=self._support_bundle)
        made = partial(desk, central=self._central, secrets=self._secrets, store=self._store, recording=self._recording)
        self._fleet = made(site=lambda: self.site, verdict=problems, proofs=self._proofs, clock=self._clock)
        mirror = partial(MirrorTask, secrets=self._secrets, store=self._store, lanes=self._lanes, clock=self._clock)
        self._mirror = mirror(site=lambda: self.site, verdict=problems)
        self._site_state = self._state_reader()
        self._problems: ProblemWatch = ProblemWatch(
            state=self._site_state.now,
            refresh=self._site_state.refresh,
            changes=self._store.changes,
            clock=self._clock,
            tell=lambda event: self._lanes.recorder.put(Entry(events=(event,))),
            begins=BeginsFile(folder=self._folder.path, clock=self._clock),
        )
        self._readiness = Readiness(
            site=self.site,
            lanes=self._lanes,
            control=self._control,
            recording=self._recording,
            interface=self.interface,
            verdict=self._problems.now,
            changes=self._store.changes,
            notify=self._notify,
            clock=self._clock,
        )
        self._day_counting = DayCounting(
            day_counts=self._store.day_counts,
            lines=lambda: (line.quality for line in self._site_state.now().lines),
            clock=self._clock,
            zone=lambda: ZoneInfo(self.site.site.timezone),
        )

    def _state_reader(self) -> SiteStateReader:
        return SiteStateReader(
            site=self.site,
            site_file=self.site_file,
            lines=self._field.field.lines,
            lanes=self._lanes,
            recording=self._recording,
            central=self._central.parts.link,
            fleet=self._fleet,
            mirror=self._mirror,
            store=self._store,
            clock=self._clock,
            interface_fault=lambda: self.interface.lasting_fault,
            machine=self._machine,
            loop=self._loop_watch,
            data=self._folder.path,
            guessable=self._guessable,
            crowded=self._crowded,
        )

    def _crowded(self) -> tuple[CrowdedListener, ...]:
        """Return the listeners of the site that had no room for somebody in the last minute."""
        crowds = {
            text("listener.page"): self.interface.crowd(),
            **{text("listener.plates", listener=name): one.crowd for name, one in self._field.field.listeners.items()},
            text("listener.viewers"): self._recording.rtsp_crowd(),
        }
        return tuple(CrowdedListener(name, crowd) for name, crowd in crowds.items() if crowd is not None)

    def _interface_for(self) -> Interface:
        from gateway.web.app import Interface  # noqa: PLC0415  # lanes start without it

        return Interface(
            site=self.site,
            store=self._store,
            lanes=self._lanes,
            areas=self._lanes.areas,
            recording=self._recording,
            central=self._central.parts.link,
            writes=self._central.parts.writes,
            clock=self._clock,
            started_at=self._started_at,
            guessable=self._guessable,
            data=self._folder.path,
            verdict=self._problems.now,
            site_state=self._site_state.now,
            acknowledge=self._problems.acknowledge,
            incidents=self._incidents,
            lines=self._lines,
            loop=self._loop_watch,
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
            events=self._store.events,
            incidents=self._incidents,
            log=self._log_tail,
            masking=self._masking,
            clock=self._clock,
        )

    def _running_site(self, loaded: LoadedSite, *, files: TrialFiles, locks: LineLocks | None) -> RunningSite:
        changes = SiteChanges(
            site=loaded.site,
            site_path=files.path,
            secrets=self._secrets,
            clock=self._clock,
            field=self._field,
            lanes=self._lanes,
            locks=locks,
            others=self._take_others,
            stop=self._stop,
        )
        readers = ReaderTrials(lanes=self._lanes, field=self._field, store=self._store, clock=self._clock)
        return RunningSite(
            files=files,
            loaded=loaded,
            secrets=self._secrets,
            take=changes.take,
            read=self._store.changes.bump,
            monotonic=self._clock.monotonic,
            hindrances=lambda: hindrances(self._problems.now(), self.interface),
            watch_readers=lambda devices: readers.watch(self.site, devices),
            tell=self._records.site_changed,
            lasts=lambda loaded: self._file_accounts.offer(loaded.accounts),
            notice="" if self._start_of_site.put_back else self._start_of_site.notice,
        )

    async def _take_others(self, site: Site, found: Difference) -> None:
        """Apply the changes of a changed site file that concern neither lines nor devices nor lanes."""
        self.site = self.interface.site = self._readiness.site = site
        self._store.rename(site_name=site.site.name, places=places_of(site))
        self._recording.change_cameras(site.cameras)
        self._recording.change_limits(site.storage)
        self._keeping.change(expiry_limits(site), consumer_days=site.keep.consumer_days)
        self._registration.declare(site)
        self._polled.clear()
        buses, path = self._field.field.buses, self.site_file.path
        self._polled.update(polled_lines(site, buses, site_path=path, devices=self._lanes.devices))
        if found.central:
            await self._central.start_anew()
        elif self._central.parts.sync is not None:
            await self._central.parts.sync.trust_anew()
        for is_changed, task in ((found.fleet, self._fleet), (found.mqtt, self._mirror)):
            if is_changed:
                await task.start_anew()
        self._site_state.change(site, lines=self._field.field.lines, central=self._central.parts.link)
        if found.interface:
            self.interface.start_anew()

    def _central_parts(self) -> CentralParts:
        return central_parts(
            self.site,
            secrets=self._secrets,
            store=self._store,
            clock=self._clock,
            evidence_files=self._recording.evidence_files,
            lanes=self._lanes,
        )
