"""The wiring of the daemon: the parts that lanes need are built here, and run in one tree of owned tasks.

Everything else is in `gateway.app.services`, which is imported once the lanes are under control.
"""

from __future__ import annotations

import asyncio
import secrets as randomness
import signal
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import structlog

from gateway.app.contexts import LanesContext, RunContext
from gateway.app.device_registration import DeviceRegistration
from gateway.app.devices import build_field
from gateway.app.lane_control import LaneControl
from gateway.app.machine_watch import MachineWatch
from gateway.app.run_records import RunRecords, recalled
from gateway.app.running_field import RunningField
from gateway.app.watchdog import Watchdog
from gateway.lanes import Lanes
from gateway.lanes.access_rules import places_of
from gateway.lanes.incidents import Incidents
from gateway.runtime.clock import SystemClock, boot_id, offset_of
from gateway.runtime.data_folder import DataFolder
from gateway.runtime.loop_watch import LoopWatch
from gateway.runtime.machine_state import DATA_FOLDER, MEDIA_FOLDER
from gateway.runtime.process_settings import collect_regularly, made_beside
from gateway.runtime.release import RELEASED_AT
from gateway.runtime.supervision import Progress, Supervisor
from gateway.runtime.trusted_time import TrustedTimeFile, read_trusted_time
from gateway.site import Site
from gateway.store import DEFAULT_BYTES, GIGABYTE, RecordTimes, Store

if TYPE_CHECKING:
    from gateway.app.services import Services

log = structlog.get_logger(__name__)

_THREADS = 64


class Gateway:
    """The gateway of one site. `live` runs it from start to stop.

    Attributes:
        store, lanes, field, progress: its parts.
        services: everything else; None until the lanes are under control.
        stopping: set to stop the gateway.
    """

    def __init__(self, run: RunContext) -> None:
        self._run = run
        self._reload_asked = asyncio.Event()
        self.stopping = asyncio.Event()
        self.services: Services | None = None
        folder, site, clock = run.folder, run.loaded.site, _clock_of(run.folder)
        self._trusted_time = TrustedTimeFile(folder=folder.path, clock=clock, boot_id=boot_id())
        self.progress = progress = Progress(clock=clock)
        self.store = store = _store_of(site, folder=folder, clock=clock)
        field = build_field(site, site_path=run.files.path, clock=clock, secrets=run.secrets)
        self.field = RunningField(field=field, progress=progress)
        self.lanes = lanes = Lanes(
            site=site,
            field=field,
            store=store,
            clock=clock,
            progress=progress,
            boot=randomness.token_hex(6),
            alarmed=lambda lane_id: self._base.incidents.alarm(lane_id),  # noqa: PLW0108 (made behind the lanes)
            mask=run.redaction.text,
        )
        self._base = LanesContext(
            run=run,
            store=store,
            lanes=lanes,
            field=self.field,
            registration=DeviceRegistration(devices=store.devices, cameras=store.cameras, clock=clock, site=site),
            records=RunRecords(recorder=lanes.recorder, clock=clock),
            incidents=Incidents(folder=folder.path / "incidents", clock=clock, incident=lanes.incident),
            control=LaneControl(lanes=lanes, changes=store.changes, clock=clock),
            machine=MachineWatch(folders={DATA_FOLDER: folder.path, MEDIA_FOLDER: folder.media}),
            loop=LoopWatch(),
            progress=progress,
            clock=clock,
            started_at=clock.monotonic(),
            stop=self.stopping.set,
        )

    async def live(self) -> None:
        """Start, serve until asked to stop, and end in order: services, then buses, then the store."""
        loop, base = asyncio.get_running_loop(), self._base
        # Many: a read from a disk that hangs occupies its thread, and sign-in and look-ups of hosts need a free one.
        loop.set_default_executor(ThreadPoolExecutor(_THREADS, thread_name_prefix="work"))
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stopping.set)
        # Not by the loop, which restores the default action of SIGHUP when it closes: that ends the process.
        signal.signal(signal.SIGHUP, lambda *_: loop.call_soon_threadsafe(self._reload_asked.set))
        await self.store.open()
        try:
            async with Supervisor(clock=base.clock) as lasting:
                lasting.keep("store", self.store.run)
                lasting.keep("recorder", self.lanes.recorder.run)
                await self._remember_start()
                await base.registration.begin()
                lasting.keep("declare", base.registration.run)
                async with Supervisor(clock=base.clock) as lines:
                    self.field.start_lines(lines)
                    async with Supervisor(clock=base.clock) as services:
                        self._start_lanes(services)
                        await self._start_services(services)
                        await self.stopping.wait()
                        self._run.notify.stopping()
                        log.info("gateway_stopping")
                        await self.lanes.until_no_gate_closes()
                await base.records.stopped()
        finally:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            if self.services is not None:
                self.services.close()
            await self.store.close()

    def _start_lanes(self, services: Supervisor) -> None:
        base = self._base
        watchdog = Watchdog(
            progress=self.progress, store=self.store, buses=lambda: self.field.field.buses, clock=base.clock
        )
        watchdog.expect()
        services.keep("beat", watchdog.run)
        services.keep("loop watch", base.loop.run)
        services.keep("machine watch", base.machine.run)
        services.keep("garbage", collect_regularly)
        self.lanes.start(services)
        self.field.start(services, reports=self.lanes.report)
        services.keep("trusted time", self._trusted_time.run)
        services.keep("incidents", base.incidents.run)
        services.once("control", base.control.tell())

    async def _start_services(self, services: Supervisor) -> None:
        """Start everything else, unless the gateway is stopped before the lanes are under control."""
        await self._base.control.first()
        if self.stopping.is_set():
            return
        self.services = made = await asyncio.to_thread(made_beside, self._made_services)
        await made.recall()
        made.start(services, reload_asked=self._reload_asked)

    def _made_services(self) -> Services:
        from gateway.app.services import Services  # noqa: PLC0415  # lanes start without it

        return Services(self._base)

    async def _remember_start(self) -> None:
        """Record the start, and restore what lanes knew at the end of the last run."""
        run, store = self._run, self.store
        name = run.loaded.site.site.name
        was_unclean, returned = store.was_unclean, run.start.notice
        self._base.records.started(name, was_unclean=was_unclean, returned=returned, salvaged=store.salvaged)
        await recalled(self.lanes.areas.recall, self.lanes.settle_unfinished, self.lanes.resume)
        log.info("gateway_started", site=name, data=str(run.folder.path))


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
        times=RecordTimes(offset=partial(offset_of, clock, boot_id()), now=lambda: clock.wall().micros),
        places=places_of(site),
        boot=boot_id(),
        backlog_bytes=round(site.central.backlog_gigabytes * GIGABYTE) if site.central else DEFAULT_BYTES,
    )
