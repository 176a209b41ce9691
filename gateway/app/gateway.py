"""The wiring of the daemon: every part is built here, handed over by keyword, and run in one tree of owned tasks."""

from __future__ import annotations

import asyncio
import os
import secrets as randomness
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import structlog

from gateway.app.central import CentralParts, central_parts
from gateway.app.day_counting import DayCounting
from gateway.app.device_registration import DeviceRegistration
from gateway.app.devices import build_field
from gateway.app.expiry import event_keeping, expiry_limits
from gateway.app.machine_watch import MachineWatch
from gateway.app.polled_lines import polled_lines
from gateway.app.running_field import RunningField, ended
from gateway.app.site_changes import SiteChanges
from gateway.app.site_state import SiteStateReader
from gateway.app.systemd import Notify
from gateway.app.watchdog import Watchdog, feed_watchdog
from gateway.domain.errors import StoreError
from gateway.domain.events import Event, EventKind
from gateway.lanes import Lanes
from gateway.lanes.access_rules import places_of
from gateway.lanes.incidents import Incidents
from gateway.lines.site_lines import SiteLines
from gateway.problems.machine import MachineState
from gateway.problems.watch import ProblemWatch
from gateway.recording import Recording
from gateway.runtime.clock import SystemClock, boot_id, offset_of
from gateway.runtime.data_folder import MEDIA_MARKER, DataFolder, media_fault
from gateway.runtime.logs import Logs
from gateway.runtime.loop_watch import LoopWatch
from gateway.runtime.process_memory import give_memory_back, set_aside
from gateway.runtime.redaction import Redaction
from gateway.runtime.supervision import Progress, Supervisor
from gateway.runtime.trusted_time import TrustedTimeFile, read_trusted_time
from gateway.site import Difference, LoadedSite, Secrets, Site, doubtful, load_whole, secrets_folder
from gateway.site.line_locks import LineLocks
from gateway.site.running import RunningSite, Step
from gateway.site.trial_files import AtStart, TrialFiles
from gateway.store import DEFAULT_BYTES, GIGABYTE, Entry, EventFilter, Store
from gateway.support.bundle import SupportBundle
from gateway.support.masking import Masking
from gateway.web.app import Interface
from gateway.web.auth.admission import Route
from gateway.web.auth.site_file_accounts import hash_accounts
from gateway.web.http.server import serve
from gateway.web.status.snapshot import DemoCard
from gateway.webhooks.client import ReceiverClient
from gateway.webhooks.registry import WebhookRegistry
from gateway.webhooks.sender import WebhookSender

log = structlog.get_logger(__name__)

_NOTHING_TAKEN_BACK = AtStart()
_SITE_STEPS = {
    Step.TAKEN: EventKind.SITE_CHANGED,
    Step.CONFIRMED: EventKind.SITE_CHANGE_CONFIRMED,
    Step.RETURNED: EventKind.SITE_CHANGE_RETURNED,
    Step.REFUSED: EventKind.SITE_CHANGE_REFUSED,
}
_LONGEST_TOLD = 1000
_CONTROL_SECONDS = 15.0
_LAST_WORDS_SECONDS = 5.0
_MOST_RECALLED = 200
_THREADS = 64
_MOST_TOLD = 3


def run(
    *, site_path: Path, data: Path, extra_routes: tuple[Route, ...] = (), demo_cards: tuple[DemoCard, ...] = ()
) -> int:
    """Run the gateway of a site until SIGTERM or SIGINT and return the exit status.

    Raises GatewayError when it cannot start.

    Args:
        site_path: the site file.
        data: the data folder.
        extra_routes: operations beside those of the catalogue.
        demo_cards: cards that the page offers to present; one of `extra_routes` presents them.
    """
    os.umask(os.umask(0o077) | 0o027)  # databases, footage and keys: nothing for other users, whoever starts this
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until it means to read the site file again: it never ends this
    give_memory_back()
    notify = Notify.take_from()
    redaction = Redaction()
    secrets = Secrets(folder=secrets_folder(site_path), report=redaction.hide)
    files = TrialFiles(path=site_path, folder=data / "site-file")
    loaded = load_whole(site_path, secrets=secrets, text=files.unconfirmed())
    locked = LineLocks(links=loaded.site.links)
    with DataFolder.open(data) as folder, locked as locks, Logs(redaction=redaction) as logs:
        if folder.takes_nothing:
            log.error("gateway_starts_without_recording", why=folder.takes_nothing)
        for doubt in doubtful(loaded.site, site_path):
            log.warning("site_file_doubtful", doubt=doubt)
        start = files.at_start()
        if start.notice:
            log.warning("site_file_returned", why=start.notice)
        gateway = Gateway(
            loaded=loaded,
            files=files,
            folder=folder,
            secrets=secrets,
            notify=notify,
            locks=locks,
            start=start,
            redaction=redaction,
            log_tail=logs.tail,
            extra_routes=extra_routes,
            demo_cards=demo_cards,
        )
        set_aside()
        asyncio.run(gateway.live())
    return 0


class Gateway:
    """The gateway of one site. `live` is its whole life, from start to stop."""

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
        self._site = site = loaded.site
        self._start_of_site = start
        self._extra_routes = extra_routes
        self._demo_cards = demo_cards
        self._folder = folder
        self._notify = notify
        self._secrets = secrets
        self._clock = _clock_of(folder)
        self._trusted_time = TrustedTimeFile(folder=folder.path, clock=self._clock, boot_id=boot_id())
        self._progress = Progress(clock=self._clock)
        self._loop_watch = LoopWatch()
        self._machine = MachineWatch(folders={"data folder": folder.path, "media folder": folder.media})
        self._stop = asyncio.Event()
        self._reload_asked = asyncio.Event()
        self._interface_fault = "the interface is not served yet"
        self._port = 0
        self._services: Supervisor | None = None
        self._central_tasks: list[asyncio.Task[None]] = []
        self._web: asyncio.Task[None] | None = None
        self._store = _store_of(site, folder=folder, clock=self._clock)
        self._registration = DeviceRegistration(
            devices=self._store.devices, cameras=self._store.cameras, clock=self._clock, site=site
        )
        field = build_field(site, site_path=files.path, clock=self._clock, secrets=secrets)
        self._field = RunningField(field=field, progress=self._progress)
        self._lanes = Lanes(
            site=site,
            gates=field.gates,
            showing=field.showing,
            stoppable=field.stoppable,
            drivers=field.drivers,
            store=self._store,
            clock=self._clock,
            progress=self._progress,
            boot=randomness.token_hex(6),
            alarmed=self._lane_alarmed,
        )
        self._incidents = Incidents(folder=folder.path / "incidents", clock=self._clock, incident=self._lanes.incident)
        self._polled = polled_lines(site, field.buses, site_path=files.path, devices=self._lanes.devices)
        self._lines = SiteLines.of(self._polled, clock=self._clock)
        self._recording = _recording_of(
            site, store=self._store, folder=folder, clock=self._clock, progress=self._progress, secrets=secrets
        )
        self._central = self._central_parts()
        self._site_file = self._running_site(loaded, files=files, locks=locks)
        self._site_state = self._state_reader()
        self._masking = Masking(redaction or Redaction())
        self._log_tail = log_tail
        self._problems = ProblemWatch(
            state=self._site_state.now,
            refresh=self._site_state.refresh,
            changes=self._store.changes,
            clock=self._clock,
            tell=lambda event: self._lanes.recorder.put(Entry(events=(event,))),
        )
        self._keeping = event_keeping(site, store=self._store, clock=self._clock, forget=self._recording.forget)
        self._day_counting = DayCounting(
            day_counts=self._store.day_counts,
            lines=lambda: (line.quality for line in self._site_state.now().lines),
            clock=self._clock,
            zone=lambda: ZoneInfo(self._site.site.timezone),
        )
        hooks = site.webhooks
        self._receiver_client = ReceiverClient(
            allowed=hooks.networks(), ca_file=hooks.ca_file, timeout_seconds=hooks.timeout_seconds
        )
        self._webhooks = WebhookSender(webhooks=self._store.webhooks, client=self._receiver_client, clock=self._clock)
        self._webhook_registry = WebhookRegistry(
            webhooks=self._store.webhooks, client=self._receiver_client, clock=self._clock
        )

    def _lane_alarmed(self, lane_id: str) -> None:
        self._incidents.alarm(lane_id)

    def _state_reader(self) -> SiteStateReader:
        return SiteStateReader(
            site=self._site,
            site_file=self._site_file,
            buses=self._field.field.buses,
            lanes=self._lanes,
            recording=self._recording,
            central=self._central.link,
            store=self._store,
            clock=self._clock,
            interface_fault=lambda: self._interface_fault,
            machine=self._machine_state,
        )

    def _machine_state(self) -> MachineState:
        return MachineState(
            disks=self._machine.disks,
            memory_high=self._machine.memory_high,
            slow_commits=self._store.slow_seconds,
            loop_held=self._loop_watch.held_again(self._clock.monotonic()),
            clock_step=self._clock.stepped(),
        )

    async def live(self) -> None:
        """Start, serve until asked to stop, and end in order: services, then buses, then the store."""
        loop = asyncio.get_running_loop()
        # A read from a disk that hangs holds its thread until that is known: signing in, and looking up the names
        # of devices, must still find one.
        loop.set_default_executor(ThreadPoolExecutor(_THREADS, thread_name_prefix="work"))
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        # not by the loop, which restores the default, to end the process, when it is closed
        signal.signal(signal.SIGHUP, lambda *_: loop.call_soon_threadsafe(self._reload_asked.set))
        await self._store.open()
        try:
            async with Supervisor(clock=self._clock) as lasting:
                lasting.keep("store", self._store.run)
                lasting.keep("recorder", self._lanes.recorder.run)
                await self._remember_start()
                await self._registration.begin()
                lasting.keep("declare", self._registration.run)
                async with Supervisor(clock=self._clock) as lines:
                    self._field.start_lines(lines)
                    async with Supervisor(clock=self._clock) as services:
                        self._start(services)
                        await self._stop.wait()
                        self._notify.stopping()
                        log.info("gateway_stopping")
                await self._last_words()
        finally:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            self._receiver_client.close()
            await self._store.close()

    def _start(self, services: Supervisor) -> None:
        self._watch(services)
        self._lanes.start(services)
        self._field.start(services, reports=self._lanes.report)
        services.keep("recording", self._recording.run)
        self._services = services
        self._start_central(services)
        services.keep("trusted time", self._trusted_time.run)
        services.keep("webhooks", self._webhooks.run)
        services.keep("event keeping", self._keeping.run)
        services.keep("day counting", self._day_counting.run)
        services.keep("problems", self._problems.run)
        services.keep("incidents", self._incidents.run)
        services.keep("line scans", self._lines.scans.run)
        services.keep("site file", self._reload_when_asked)
        services.keep("site file on trial", self._site_file.run)
        self._web = services.keep("web", self._serve)
        services.once("readiness", self._tell_when_ready())

    def _watch(self, services: Supervisor) -> None:
        watchdog = Watchdog(
            progress=self._progress, store=self._store, buses=lambda: self._field.field.buses, clock=self._clock
        )
        watchdog.expect()
        services.keep("beat", watchdog.run)
        services.keep("loop watch", self._loop_watch.run)
        services.keep("machine watch", self._machine.run)
        services.keep(
            "watchdog", lambda: feed_watchdog(notify=self._notify, progress=self._progress, status=self._status)
        )

    async def _serve(self) -> None:
        site = self._site
        accounts = await hash_accounts(site.api.accounts, self._secrets.get, await self._known_hashes())
        app = Interface(
            site=site,
            store=self._store,
            lanes=self._lanes,
            areas=self._lanes.areas,
            recording=self._recording,
            central=self._central.link,
            writes=self._central.writes,
            clock=self._clock,
            accounts=accounts,
            data=self._folder.path,
            verdict=self._problems.now,
            site_state=self._site_state.now,
            acknowledge=self._problems.acknowledge,
            incidents=self._incidents,
            lines=self._lines,
            loop=self._loop_watch,
            support=self._support_bundle(),
            webhooks=self._webhook_registry,
            outbox=self._central.parked,
            relay=self._central.relay,
            central_accounts=self._central.people,
            extra_routes=self._extra_routes,
            demo_cards=self._demo_cards,
            site_file=self._site_file,
        ).build()
        await serve(
            app,
            host=site.api.listens_on,
            port=site.api.port or self._port,
            started=self._serving,
            failed=self._not_serving,
            run_folder=self._folder.run,
            tls=site.api.tls,
        )

    def _support_bundle(self) -> SupportBundle:
        return SupportBundle(
            site_path=self._site_file.path,
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

    async def _known_hashes(self) -> dict[str, str]:
        """Return the known hashes of the site file's passwords; none when they cannot be read."""
        try:
            return await self._store.accounts.site_file_hashes()
        except StoreError as error:
            log.warning("known_hashes_not_read", error=str(error))
            return {}

    def _serving(self, port: int) -> None:
        self._interface_fault, self._port = "", port
        self._store.changes.bump()
        log.info("interface_served", host=self._site.api.listens_on, port=port)

    def _not_serving(self, why: str) -> None:
        """Note that another program has the port. Gates work without a page, so they are not stopped for it."""
        if self._interface_fault != why:
            log.error("interface_not_served", error=why)
        self._interface_fault = why
        self._store.changes.bump()

    async def _tell_when_ready(self) -> None:
        """Tell systemd once every device has answered or was found to be away: then the lanes are under control.

        The log says `gateway_ready` only when the interface is served too. Lanes do not wait for it.
        """
        version, until = self._store.changes.version, self._clock.monotonic() + _CONTROL_SECONDS
        starting = self._interface_fault
        while self._clock.monotonic() < until and (self._lanes.under_control() or self._interface_fault == starting):
            version = await self._store.changes.beyond(version, within=1.0)
        self._notify.ready(self._status())
        if self._interface_fault:
            log.warning("lanes_ready_without_interface", why=self._interface_fault)
        while self._interface_fault:
            version = await self._store.changes.beyond(version, within=60.0)
        log.info("gateway_ready")

    def _status(self) -> str:
        offline = sum(device.online is False for device in self._lanes.devices())
        recording = sum(camera.condition == "recording" for camera in self._recording.cameras())
        text = (
            f"{self._site.site.name}: {len(self._site.lanes)} lanes, {offline} devices offline, "
            f"{recording} of {len(self._site.cameras)} cameras recording"
        )
        verdict = self._problems.now()
        return "; ".join((text, verdict.headline, *verdict.not_ready[:_MOST_TOLD]))

    async def _remember_start(self) -> None:
        """Record the start, and restore what the last run left: also while the disk takes nothing."""
        site = self._site
        events = [self._event(EventKind.GATEWAY_STARTED, f"the gateway of {site.site.name} has started")]
        if self._store.was_unclean:
            events.insert(0, self._event(EventKind.POWER_LOST, "the last run ended without warning"))
        if self._start_of_site.notice:
            events.append(self._event(EventKind.SITE_CHANGE_RETURNED, self._start_of_site.notice))
        events += [self._event(EventKind.STORE_DAMAGED, text) for text in self._store.salvaged]
        self._lanes.recorder.put(Entry(events=tuple(events)))
        for recall in (
            self._lanes.areas.recall,
            self._lanes.settle_unfinished,
            self._lanes.resume,
            self._central.writes.recall,
            self._recall_acknowledged,
        ):
            try:
                await recall()
            except StoreError as error:  # a part that cannot be read must not keep the others from being restored
                log.error("start_not_remembered", error=str(error))  # noqa: TRY400 (the sentence says it all)
        log.info("gateway_started", site=site.site.name, data=str(self._folder.path))

    async def _recall_acknowledged(self) -> None:
        said = await self._store.events.page(EventFilter(types=(EventKind.PROBLEM_ACKNOWLEDGED,)), limit=_MOST_RECALLED)
        self._problems.recall(said.events)

    async def _reload_when_asked(self) -> None:
        while True:
            await self._reload_asked.wait()
            self._reload_asked.clear()
            await self._site_file.reload()

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
            stop=self._stop.set,
        )
        return RunningSite(
            files=files,
            loaded=loaded,
            secrets=self._secrets,
            take=changes.take,
            read=self._store.changes.bump,
            monotonic=self._clock.monotonic,
            stopped=lambda: {one.key: one.sentence for one in self._problems.now().problems if one.lanes},
            tell=self._tell_of_site,
            notice="" if self._start_of_site.put_back else self._start_of_site.notice,
        )

    def _tell_of_site(self, step: Step, text: str, by: str) -> None:
        event = self._event(_SITE_STEPS[step], text[:_LONGEST_TOLD])
        self._lanes.recorder.put(Entry(events=(replace(event, data={"by": by}),)))

    async def _take_others(self, site: Site, found: Difference) -> None:
        """Take over the parts of a changed site that are no lines, devices or lanes."""
        self._site = site
        self._store.rename(site_name=site.site.name, places=places_of(site))
        self._recording.change_cameras(site.cameras)
        self._recording.change_limits(site.storage)
        self._keeping.change(expiry_limits(site), consumer_days=site.keep.consumer_days)
        self._registration.declare(site)
        self._polled.clear()
        buses, path = self._field.field.buses, self._site_file.path
        self._polled.update(polled_lines(site, buses, site_path=path, devices=self._lanes.devices))
        if found.central:
            await self._change_central()
        elif self._central.sync is not None:
            await self._central.sync.trust_anew()
        self._site_state.change(site, buses=self._field.field.buses, central=self._central.link)
        if found.interface and self._services is not None:
            self._services.once("interface anew", self._serve_anew(self._services))

    def _central_parts(self) -> CentralParts:
        return central_parts(
            self._site,
            secrets=self._secrets,
            store=self._store,
            clock=self._clock,
            evidence_files=self._recording.evidence_files,
            lanes=self._lanes,
        )

    def _start_central(self, services: Supervisor) -> None:
        if self._central.sync is not None:
            self._central_tasks.append(services.keep("sync", self._central.sync.run))
        if self._central.relay is not None:
            self._central_tasks.append(services.keep("relay", self._central.relay.run))

    async def _change_central(self) -> None:
        """Start the line to central anew. What waits for central waits on the disk."""
        await ended(self._central_tasks)
        self._central_tasks.clear()
        self._central = self._central_parts()
        try:
            await self._central.writes.recall()
        except StoreError as error:
            log.error("start_not_remembered", error=str(error))  # noqa: TRY400 (the sentence says it all)
        if self._services is not None:
            self._start_central(self._services)

    async def _serve_anew(self, services: Supervisor) -> None:
        """Build the interface anew; requests under way end first."""
        if self._web is not None:
            await ended([self._web])
        self._web = services.keep("web", self._serve)

    async def _last_words(self) -> None:
        """Write the last records of lanes to disk, then that the gateway stopped."""
        self._lanes.recorder.put(Entry(events=(self._event(EventKind.GATEWAY_STOPPED, "the gateway was stopped"),)))
        if not await self._lanes.recorder.drained(within=_LAST_WORDS_SECONDS):
            log.error("records_lost_at_stop", waiting=self._lanes.recorder.waiting)

    def _event(self, kind: EventKind, text: str) -> Event:
        stamp = self._clock.wall()
        return Event(kind=kind, date_at=stamp.micros, clock_trusted=stamp.trusted, description=text)


def _clock_of(folder: DataFolder) -> SystemClock:
    """Make the clock, which knows the last trusted time."""
    clock = SystemClock()
    if (last := read_trusted_time(folder.path)) is not None:
        clock.recall(last, boot_id=boot_id())
    return clock


def _store_of(site: Site, *, folder: DataFolder, clock: SystemClock) -> Store:
    return Store(
        folder=folder.path,
        site_name=site.site.name,
        sends=site.central is not None,
        offset=partial(offset_of, clock, boot_id()),
        places=places_of(site),
        now=lambda: clock.wall().micros,
        backlog_bytes=round(site.central.backlog_gigabytes * GIGABYTE) if site.central else DEFAULT_BYTES,
    )


def _recording_of(
    site: Site, *, store: Store, folder: DataFolder, clock: SystemClock, progress: Progress, secrets: Secrets
) -> Recording:
    return Recording(
        site=site,
        store=store,
        media=folder.media,
        run_folder=folder.run,
        clock=clock,
        progress=progress,
        secrets=secrets,
        media_fault=partial(media_fault, folder.path),
        marker=MEDIA_MARKER,
    )
