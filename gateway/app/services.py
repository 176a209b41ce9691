"""The services beside the lanes: recording, central, the list of problems, the interface, and what they need.

They are imported and built once the lanes are under control, because that takes most of a start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from datetime import date, timedelta, tzinfo
from functools import cache, partial
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import structlog

from drivers.bus.line_quality import LineQuality
from gateway.app.central import central_parts
from gateway.app.contexts import LanesContext, ServicesContext
from gateway.app.expiry import event_keeping, expiry_limits
from gateway.app.file_accounts import FileAccounts
from gateway.app.parts import fleet_parts, mirror_of, polled_lines, proof_packages_of, recording_of, webhooks_of
from gateway.app.reader_use import ReaderTrials
from gateway.app.restartable import Restartable
from gateway.app.run_records import recall_acknowledged, recalled
from gateway.app.served_interface import ServedInterface
from gateway.app.site_changes import SiteChanges, hindrances, reload_when_asked
from gateway.app.site_state import SiteStateReader
from gateway.app.systemd import SiteReadiness
from gateway.app.watchdog import feed_watchdog
from gateway.domain.day_counts import LineTally, day_of
from gateway.domain.errors import StoreError
from gateway.lanes.access_rules import places_of
from gateway.lines.frames import PolledLine
from gateway.lines.site_lines import SiteLines
from gateway.problems.watch import BeginsFile, ProblemWatch
from gateway.runtime.clock import Clock
from gateway.runtime.supervision import Supervisor
from gateway.site import Difference, Site
from gateway.site.running_site import RunningSite, SiteContext
from gateway.store import Entry
from gateway.store.events.day_counts import DayCounts
from gateway.support.bundle import SupportBundle, SupportContext
from gateway.support.masking import Masking

if TYPE_CHECKING:
    from gateway.web.app import Interface


log = structlog.get_logger(__name__)

_LOOK_SECONDS = 300.0
"""The period of counting. Lines' counts since the last time are lost when the gateway stops."""
_FIRST_LOOK_SECONDS = 10.0
_BREATH_SECONDS = 0.05
_KEPT_DAYS = 400


class DayCounting:
    """The daily counts, which the page shows as trends. Run `run` as a task."""

    def __init__(
        self,
        *,
        day_counts: DayCounts,
        lines: Callable[[], Iterable[LineQuality]],
        clock: Clock,
        zone: Callable[[], tzinfo],
    ) -> None:
        """`zone` returns the site's time zone, in which days begin."""
        self._day_counts = day_counts
        self._lines = lines
        self._clock = clock
        self._zone = zone
        self._tally = LineTally()
        self._forgotten_on = ""

    async def run(self) -> None:
        """Count every five minutes, until cancelled."""
        await asyncio.sleep(_FIRST_LOOK_SECONDS)
        while True:
            try:
                await self.look()
            except StoreError as error:
                log.warning("days_not_counted", error=str(error))
            await asyncio.sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        """Count everything that is not counted yet; delete counts older than 400 days. Raises StoreError."""
        zone, more = self._zone(), True
        while more:
            more = await self._day_counts.count_events(zone)
            await asyncio.sleep(_BREATH_SECONDS)
        today, lines = day_of(self._clock.wall().micros, zone), tuple(self._lines())
        await self._day_counts.add(self._tally.since(lines, day=today))
        self._tally.keep(lines)
        if today != self._forgotten_on:
            await self._day_counts.forget(before=_days_from(today, -_KEPT_DAYS), after=_days_from(today, 1))
            self._forgotten_on = today


def _days_from(day: str, days: int) -> str:
    return (date.fromisoformat(day) + timedelta(days=days)).isoformat()


class Services:
    """The services of one site. Constructors of them may read files: build this beside the loop.

    Attributes:
        site: the site in force.
        site_file: the reader of the site file, which also tries changes of it.
        interface: the interface on its port.
    """

    def __init__(self, base: LanesContext) -> None:
        """Build them. Raises ConfigError for a secret that is missing since the site file was loaded."""
        self._base = base
        self._run = run = base.run
        self.site = site = run.loaded.site
        self._supervisor: Supervisor | None = None
        self._masking = Masking(run.redaction)
        self._polled = self._polled_lines(site)
        self.interface = ServedInterface(
            site=site, changes=base.store.changes, run_folder=run.folder.run, make=self._interface_for, clock=base.clock
        )
        guessable: dict[str, str] = {}
        self._file_accounts = FileAccounts(
            accounts=base.store.accounts,
            secrets=run.secrets,
            clock=base.clock,
            guessable=guessable,
            tell=base.records.accounts_changed,
            changed=self.interface.start_anew,
        )
        self._recording = recording_of(base)
        self._central = Restartable(make=lambda: central_parts(self.site, base, self._recording.evidence_files))
        self.site_file = self._running_site()
        self._context = ServicesContext(
            base=base,
            site=lambda: self.site,
            site_file=self.site_file,
            recording=self._recording,
            interface=self.interface,
            central=self._central,
            lines=SiteLines.of(self._polled, clock=base.clock),
            guessable=guessable,
            verdict=lambda: self._problems.now(),  # noqa: PLW0108 (it is made behind those who ask it)
            state=lambda: self._site_state.now(),  # noqa: PLW0108 (likewise)
            support=self._support_bundle,
            proofs=cache(partial(proof_packages_of, base, self._recording, site_name=lambda: self.site.site.name)),
        )
        self._fleet = Restartable(make=lambda: fleet_parts(self._context, self._once))
        self._mirror = Restartable(make=lambda: mirror_of(self._context))
        self._add_watches()
        self._keeping = event_keeping(site, store=base.store, clock=base.clock, forget=self._recording.forget)
        self._webhooks = webhooks_of(site, store=base.store, clock=base.clock)

    async def recall(self) -> None:
        """Restore what the last run left. Call it before `start`."""
        await recalled(
            partial(self._file_accounts.begin, self.site_file.running.accounts),
            self._central.recall,
            self._fleet.recall,
            self._mirror.recall,
            partial(recall_acknowledged, self._problems, self._base.store.events),
        )

    def start(self, services: Supervisor, *, reload_asked: asyncio.Event) -> None:
        """Start them under the supervisor of the services; `reload_asked` is set when the site file is to be read."""
        self._supervisor = services
        notify, progress = self._run.notify, self._base.progress
        feed = partial(feed_watchdog, notify=notify, progress=progress, status=self._readiness.status)
        services.keep("watchdog", feed)
        services.keep("recording", self._recording.run)
        for outwards in (self._central, self._fleet, self._mirror):
            outwards.start(services)
        services.keep("webhooks", self._webhooks.sender.run)
        services.keep("event keeping", self._keeping.run)
        services.keep("day counting", self._day_counting.run)
        services.keep("problems", self._problems.run)
        services.keep("line scans", self._context.lines.scans.run)
        services.keep("site file", partial(reload_when_asked, self.site_file, reload_asked))
        services.keep("site file on trial", self.site_file.run)
        services.keep("accounts of the site file", self._file_accounts.run)
        self.interface.start(services)
        services.once("readiness", self._readiness.tell())

    def close(self) -> None:
        """End the threads that resolve names of receivers. Call it after the services have ended."""
        self._webhooks.client.close()

    def _once(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        if self._supervisor is None:
            raise RuntimeError("commands are taken only while the services run")
        return self._supervisor.once(name, work)

    def _add_watches(self) -> None:
        """Build the parts that watch all others: the list of problems, readiness for systemd, and daily counts."""
        base = self._base
        self._site_state = SiteStateReader(self._context, fleet=self._fleet, mirror=self._mirror)
        self._problems: ProblemWatch = ProblemWatch(
            state=self._site_state.now,
            refresh=self._site_state.refresh,
            changes=base.store.changes,
            clock=base.clock,
            tell=lambda event: base.lanes.recorder.put(Entry(events=(event,))),
            begins=BeginsFile(folder=self._run.folder.path, clock=base.clock),
        )
        self._readiness = SiteReadiness(
            site=self._context.site,
            control=base.control,
            recording=self._recording,
            interface=self.interface,
            verdict=self._problems.now,
            notify=self._run.notify,
        )
        self._day_counting = DayCounting(
            day_counts=base.store.day_counts,
            lines=lambda: (line.quality for line in self._site_state.now().lines),
            clock=base.clock,
            zone=lambda: ZoneInfo(self.site.site.timezone),
        )

    def _interface_for(self) -> Interface:
        from gateway.web.app import Interface  # noqa: PLC0415  # lanes start without it
        from gateway.web.context import InterfaceContext  # noqa: PLC0415  # likewise

        base, central = self._base, self._central.parts
        context = InterfaceContext(
            site=self.site,
            store=base.store,
            lanes=base.lanes,
            areas=base.lanes.areas,
            recording=self._recording,
            central=central.link,
            writes=central.writes,
            clock=base.clock,
            started_at=base.started_at,
            guessable=self._context.guessable,
            data=self._run.folder.path,
            verdict=self._problems.now,
            site_state=self._site_state.now,
            acknowledge=self._problems.acknowledge,
            incidents=base.incidents,
            lines=self._context.lines,
            loop=base.loop,
            support=self._support_bundle(),
            proofs=self._context.proofs(),
            webhooks=self._webhooks.registry,
            outbox=central.parked,
            central_accounts=central.people,
            demo_cards=self._run.demo_cards,
            site_file=self.site_file,
            fleet_seen=lambda mark: None if self._fleet.parts is None else self._fleet.parts.gateways.since(mark),
        )
        return Interface(context, relay=central.relay, extra_routes=self._run.extra_routes)

    def _support_bundle(self) -> SupportBundle:
        base, context = self._base, self._context
        told = SupportContext(
            site_path=self.site_file.path,
            data=self._run.folder.path,
            verdict=context.verdict,
            state=context.state,
            lines=context.lines,
            events=base.store.events,
            incidents=base.incidents,
            log=self._run.log_tail,
            masking=self._masking,
            clock=base.clock,
        )
        return SupportBundle(told)

    def _running_site(self) -> RunningSite:
        base, run = self._base, self._run
        changes = SiteChanges(base, site=self.site, others=self._take_others)
        readers = ReaderTrials(lanes=base.lanes, field=base.field, store=base.store, clock=base.clock)
        context = SiteContext(
            secrets=run.secrets,
            take=changes.take,
            read=base.store.changes.bump,
            monotonic=base.clock.monotonic,
            hindrances=lambda: hindrances(self._problems.now(), self.interface),
            watch_readers=lambda devices: readers.watch(self.site, devices),
            tell=base.records.site_changed,
            lasts=lambda loaded: self._file_accounts.offer(loaded.accounts),
        )
        notice = "" if run.start.put_back else run.start.notice
        return RunningSite(context, files=run.files, loaded=run.loaded, notice=notice)

    async def _take_others(self, site: Site, found: Difference) -> None:
        """Apply the changes of a changed site file that concern neither lines nor devices nor lanes."""
        self.site = self.interface.site = site
        self._base.store.rename(site_name=site.site.name, places=places_of(site))
        self._recording.change_cameras(site.cameras)
        self._recording.change_limits(site.storage)
        self._keeping.change(expiry_limits(site), consumer_days=site.keep.consumer_days)
        self._base.registration.declare(site)
        self._polled.clear()
        self._polled.update(self._polled_lines(site))
        if found.central:
            await self._central.start_anew()
        elif self._central.parts.sync is not None:
            await self._central.parts.sync.trust_anew()
        if found.fleet:
            await self._fleet.start_anew()
        if found.mqtt:
            await self._mirror.start_anew()
        self._site_state.change()
        if found.interface:
            self.interface.start_anew()

    def _polled_lines(self, site: Site) -> dict[str, PolledLine]:
        base = self._base
        buses, path = base.field.field.buses, self._run.files.path
        return polled_lines(site, buses, site_path=path, devices=base.lanes.devices)
