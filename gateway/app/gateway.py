"""The wiring of the daemon: the parts that lanes need are built here, and run in one tree of owned tasks.

Everything else is in `gateway.app.services`, which is imported once the lanes are under control.
"""

from __future__ import annotations

import asyncio
import secrets as randomness
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import structlog

from gateway.app.device_registration import DeviceRegistration
from gateway.app.devices import build_field
from gateway.app.lane_control import LaneControl
from gateway.app.machine_watch import MachineWatch
from gateway.app.run_records import RunRecords, recalled
from gateway.app.running_field import RunningField
from gateway.app.systemd import Notify
from gateway.app.watchdog import Watchdog
from gateway.lanes import Lanes
from gateway.lanes.access_rules import places_of
from gateway.lanes.incidents import Incidents
from gateway.runtime.clock import SystemClock, boot_id, offset_of
from gateway.runtime.data_folder import DataFolder
from gateway.runtime.loop_watch import LoopWatch
from gateway.runtime.machine_state import DATA_FOLDER, MEDIA_FOLDER
from gateway.runtime.process_settings import collect_regularly, made_beside
from gateway.runtime.redaction import Redaction
from gateway.runtime.release import RELEASED_AT
from gateway.runtime.supervision import Progress, Supervisor
from gateway.runtime.trusted_time import TrustedTimeFile, read_trusted_time
from gateway.site import LoadedSite, Secrets, Site
from gateway.site.line_locks import LineLocks
from gateway.site.trial_files import AtStart, TrialFiles
from gateway.store import DEFAULT_BYTES, GIGABYTE, Store

if TYPE_CHECKING:
    from gateway.app.services import Services
    from gateway.web.families import Route
    from gateway.web.status.snapshot import DemoCard

log = structlog.get_logger(__name__)

_NOTHING_TAKEN_BACK = AtStart()
_THREADS = 64


class Gateway:
    """The gateway of one site. `live` runs it from start to stop.

    Attributes:
        store, lanes, field, progress: its parts.
        services: everything else; None until the lanes are under control.
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
        self._loaded = loaded
        self._files = files
        self._folder = folder
        self._secrets = secrets
        self._notify = notify
        self._locks = locks
        self._start_of_site = start
        self._redaction = redaction or Redaction()
        self._log_tail = log_tail
        self._extra_routes = extra_routes
        self._demo_cards = demo_cards
        self._clock = _clock_of(folder)
        self._started_at = self._clock.monotonic()
        self._trusted_time = TrustedTimeFile(folder=folder.path, clock=self._clock, boot_id=boot_id())
        self.progress = Progress(clock=self._clock)
        self._loop_watch = LoopWatch()
        self._machine = MachineWatch(folders={DATA_FOLDER: folder.path, MEDIA_FOLDER: folder.media})
        self.stopping = asyncio.Event()
        self._reload_asked = asyncio.Event()
        self.services: Services | None = None
        site = loaded.site
        self.store = _store_of(site, folder=folder, clock=self._clock)
        self._registration = DeviceRegistration(
            devices=self.store.devices, cameras=self.store.cameras, clock=self._clock, site=site
        )
        self._add_lanes(site)

    def _add_lanes(self, site: Site) -> None:
        """Build the field and its lanes."""
        field = build_field(site, site_path=self._files.path, clock=self._clock, secrets=self._secrets)
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
            mask=self._redaction.text,
        )
        self._control = LaneControl(lanes=self.lanes, changes=self.store.changes, clock=self._clock)
        self._records = RunRecords(recorder=self.lanes.recorder, clock=self._clock)
        folder = self._folder.path / "incidents"
        self._incidents = Incidents(folder=folder, clock=self._clock, incident=self.lanes.incident)

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
                        self._start_lanes(services)
                        await self._start_services(services)
                        await self.stopping.wait()
                        self._notify.stopping()
                        log.info("gateway_stopping")
                        await self.lanes.until_no_gate_closes()
                await self._records.stopped()
        finally:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            if self.services is not None:
                self.services.close()
            await self.store.close()

    def _start_lanes(self, services: Supervisor) -> None:
        watchdog = Watchdog(
            progress=self.progress, store=self.store, buses=lambda: self.field.field.buses, clock=self._clock
        )
        watchdog.expect()
        services.keep("beat", watchdog.run)
        services.keep("loop watch", self._loop_watch.run)
        services.keep("machine watch", self._machine.run)
        services.keep("garbage", collect_regularly)
        self.lanes.start(services)
        self.field.start(services, reports=self.lanes.report)
        services.keep("trusted time", self._trusted_time.run)
        services.keep("incidents", self._incidents.run)
        services.once("control", self._control.tell())

    async def _start_services(self, services: Supervisor) -> None:
        """Start everything else, unless the gateway is stopped before the lanes are under control."""
        await self._control.first()
        if self.stopping.is_set():
            return
        self.services = made = await asyncio.to_thread(made_beside, self._made_services)
        await made.recall()
        made.start(services, reload_asked=self._reload_asked)

    def _made_services(self) -> Services:
        from gateway.app.services import Services  # noqa: PLC0415  # lanes start without it

        return Services(
            loaded=self._loaded,
            files=self._files,
            folder=self._folder,
            secrets=self._secrets,
            notify=self._notify,
            locks=self._locks,
            start=self._start_of_site,
            redaction=self._redaction,
            log_tail=self._log_tail,
            extra_routes=self._extra_routes,
            demo_cards=self._demo_cards,
            store=self.store,
            lanes=self.lanes,
            field=self.field,
            registration=self._registration,
            records=self._records,
            incidents=self._incidents,
            control=self._control,
            machine=self._machine,
            loop_watch=self._loop_watch,
            progress=self.progress,
            clock=self._clock,
            started_at=self._started_at,
            stop=self.stopping.set,
        )

    async def _remember_start(self) -> None:
        """Record the start, and restore what lanes knew at the end of the last run."""
        store, notice, name = self.store, self._start_of_site.notice, self._loaded.site.site.name
        self._records.started(name, was_unclean=store.was_unclean, returned=notice, salvaged=store.salvaged)
        await recalled(self.lanes.areas.recall, self.lanes.settle_unfinished, self.lanes.resume)
        log.info("gateway_started", site=name, data=str(self._folder.path))


def _clock_of(folder: DataFolder) -> SystemClock:
    """Build the clock, which takes up the last trusted time from the data folder."""
    clock = SystemClock(released=RELEASED_AT)
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
        boot=boot_id(),
        backlog_bytes=round(site.central.backlog_gigabytes * GIGABYTE) if site.central else DEFAULT_BYTES,
    )
