"""The wiring of the daemon: the parts that lanes need are built here, and run in one tree of owned tasks.

`run` is the daemon's process: it opens the data folder, locks the lines, sets up logs, and runs the gateway.
Everything else is in `gateway.app.services`, which is imported once the lanes are under control.
"""

from __future__ import annotations

import asyncio
import os
import secrets as randomness
import signal
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from gateway.app.contexts import LanesContext, RunContext
from gateway.app.device_registration import DeviceRegistration
from gateway.app.devices import build_field
from gateway.app.machine_watch import MachineWatch
from gateway.app.run_records import RunRecords, recalled
from gateway.app.running_field import RunningField
from gateway.app.systemd import LaneControl, Notify
from gateway.app.watchdog import Watchdog
from gateway.lanes import Lanes
from gateway.lanes.access_rules import places_of
from gateway.lanes.incidents import Incidents
from gateway.runtime.clock import SystemClock, boot_id, offset_of
from gateway.runtime.data_folder import DataFolder
from gateway.runtime.logs import Logs
from gateway.runtime.loop_watch import LoopWatch
from gateway.runtime.machine_state import DATA_FOLDER, MEDIA_FOLDER
from gateway.runtime.process_settings import (
    collect_regularly,
    give_memory_back,
    made_beside,
    set_aside,
    write_no_core_dump,
)
from gateway.runtime.redaction import Redaction
from gateway.runtime.supervision import Progress, Supervisor
from gateway.runtime.trusted_time import RELEASED_AT, TrustedTimeFile, read_trusted_time
from gateway.site import Secrets, Site, doubtful, load_whole, secrets_folder
from gateway.site.line_locks import LineLocks
from gateway.site.trial_files import TrialFiles
from gateway.store import DEFAULT_BYTES, GIGABYTE, RecordTimes, Store

if TYPE_CHECKING:
    from gateway.app.services import Services
    from gateway.web.families import Route
    from gateway.web.status.snapshot import DemoCard


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


def run(
    *, site_path: Path, data: Path, extra_routes: tuple[Route, ...] = (), demo_cards: tuple[DemoCard, ...] = ()
) -> int:
    """Run the gateway of a site until SIGTERM or SIGINT and return the exit status.

    Raises GatewayError when it cannot start.

    Args:
        site_path: the site file.
        data: the data folder.
        extra_routes: further operations beside those of the catalogue.
        demo_cards: cards that the page offers to present; one of `extra_routes` presents them.
    """
    os.umask(os.umask(0o077) | 0o027)  # no access for other users to databases, footage and keys
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # must not end the process before `Gateway.live` handles it
    write_no_core_dump()
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
        context = RunContext(
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
        gateway = Gateway(context)
        set_aside()
        asyncio.run(gateway.live())
    return 0
