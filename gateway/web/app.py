"""The application: every operation of the catalogue bound to its handler."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from zoneinfo import ZoneInfo

from aiohttp import web

from drivers.listening.addresses import is_this_machine, parsed_address
from drivers.listening.http import HttpPlaces
from drivers.listening.places import Places
from gateway.domain.central_status import CentralStatus
from gateway.domain.fleet_seen import FleetSeen
from gateway.domain.writes import RecordWriter
from gateway.lanes import Lanes
from gateway.lanes.access_rules import places_of
from gateway.lanes.grants import SiteGrants
from gateway.lanes.incidents import Incidents
from gateway.lanes.presence import Areas
from gateway.lines.site_lines import SiteLines
from gateway.problems.found import SiteState
from gateway.problems.problem import Verdict
from gateway.proof_package.of_events import ProofPackages
from gateway.recording import Recording
from gateway.runtime.clock import Clock
from gateway.runtime.loop_watch import LoopWatch
from gateway.site.models import Site
from gateway.site.running_site import RunningSite
from gateway.store import Store
from gateway.support.bundle import SupportBundle
from gateway.web.auth.admission import Admission
from gateway.web.auth.authentication import Authentication
from gateway.web.auth.central_sign_in import CentralAccounts
from gateway.web.auth.external_sign_in import ExternalSignIn
from gateway.web.catalogue import OPERATIONS, PUBLIC
from gateway.web.families import Route
from gateway.web.http.addresses import HOST_NAMES, PUBLIC_URL, TRUSTED_PROXIES, is_trusted, served_names
from gateway.web.http.dates import Moments
from gateway.web.http.server import BOUNDS, assembled
from gateway.web.legacy.access import LegacyAccess
from gateway.web.legacy.devices import LegacyDevices
from gateway.web.legacy.video import LegacyVideo
from gateway.web.legacy.webhooks import LegacyWebhooks, WebhookActions
from gateway.web.local_commands import LocalCommands
from gateway.web.operations.camera_events.handlers import CameraEventsFamily
from gateway.web.operations.cameras.handlers import Cameras
from gateway.web.operations.cameras.open_views import OpenViews
from gateway.web.operations.cameras.whep import Whep
from gateway.web.operations.cards.handlers import CardsFamily
from gateway.web.operations.description import Description
from gateway.web.operations.devices import Devices
from gateway.web.operations.entries.handlers import EntriesFamily
from gateway.web.operations.events import EventsFamily
from gateway.web.operations.evidence import EvidenceFamily
from gateway.web.operations.health import Health
from gateway.web.operations.metrics.handler import Metrics
from gateway.web.operations.session import Auth
from gateway.web.relayed.ids import RelayedIds
from gateway.web.relayed.relay import Relay, Relayed
from gateway.web.spreadsheets import Spreadsheets
from gateway.web.status.card_desk import StatusCards
from gateway.web.status.commissioning import StatusCommissioning
from gateway.web.status.event_history import EventHistory
from gateway.web.status.event_states import EventStates
from gateway.web.status.fleet import StatusFleet
from gateway.web.status.gate_travels import StatusTravels
from gateway.web.status.incidents import StatusIncidents
from gateway.web.status.lane_view import StatusLane
from gateway.web.status.lines import StatusLines
from gateway.web.status.live import Live
from gateway.web.status.orders import StatusOrders
from gateway.web.status.outbox import RefusedActions, StatusOutbox
from gateway.web.status.page import StatusPage
from gateway.web.status.problems import Acknowledge, StatusProblems
from gateway.web.status.proof_packages import StatusProofs
from gateway.web.status.settings import StatusSettings
from gateway.web.status.settings_accounts import StatusAccounts
from gateway.web.status.snapshot import DemoCard
from gateway.web.status.support import StatusSupport
from gateway.web.status.sync import Central, StatusSync
from gateway.web.status.trends import StatusTrends
from gateway.web.status.updates import Watch
from gateway.web.status.webhooks import StatusWebhooks


@cache
def _release() -> str:
    return version("edge-gateway")


@dataclass(frozen=True, kw_only=True)
class Interface:
    """The whole interface and the page, built once from the parts of the gateway.

    Attributes:
        site: the site file.
        store: the store, opened and running.
        lanes: the lanes and their devices.
        areas: the numbers of vehicles by area.
        recording: the footage.
        central: the line to central; None for a site without central.
        writes: the writer of records that central also keeps.
        clock: the monotonic clock and the wall clock.
        started_at: when the gateway started (monotonic seconds).
        guessable: the hashes of passwords that are known to be easily guessed, by the account's name.
        data: the data folder.
        verdict: returns the present problems of the site.
        site_state: returns the present state of the site's parts, from which the problems follow.
        acknowledge: notes that a person knows of a problem.
        incidents: what lanes did around each alarm.
        lines: the polled lines, their scans and frames.
        loop: the watch over the event loop.
        support: the maker of support bundles.
        proofs: the maker of proof packages.
        webhooks: the receivers of the site's events.
        outbox: a person's decisions on records that central refused.
        relay: the relay of operations that only central answers; None for a site without central.
        central_accounts: sign-in at central; None where accounts of central may not sign in.
        extra_routes: further operations, each with its own rule.
        demo_cards: cards that the page offers to present; the route for it is among `extra_routes`.
        site_file: the file from which `site` was read; None where it cannot be read again.
        fleet_seen: returns the gateways of the fleet that have changed since a mark; None without `[fleet]`.
    """

    site: Site
    store: Store
    lanes: Lanes
    areas: Areas
    recording: Recording
    central: Central | None
    writes: RecordWriter
    clock: Clock
    started_at: float
    guessable: MutableMapping[str, str]
    data: Path
    verdict: Callable[[], Verdict]
    site_state: Callable[[], SiteState]
    acknowledge: Acknowledge
    incidents: Incidents
    lines: SiteLines
    loop: LoopWatch
    support: SupportBundle
    proofs: ProofPackages
    webhooks: WebhookActions
    outbox: RefusedActions
    relay: Relay | None = None
    central_accounts: CentralAccounts | None = None
    extra_routes: Sequence[Route] = ()
    demo_cards: tuple[DemoCard, ...] = ()
    site_file: RunningSite | None = None
    fleet_seen: Callable[[str], FleetSeen | None] = lambda _: None

    def build(self) -> web.Application:
        """Return the application. Raises AssertionError unless each operation of the catalogue has one handler."""
        routes = (*self._v1_routes(), *self._page_routes(), *self._legacy_routes())
        if Counter(route.operation for route in routes) != Counter(OPERATIONS):
            raise AssertionError("every operation of the catalogue has exactly one handler")
        admission = Admission(sessions=self._auth.sessions, viewers=self._auth.viewers, keys=self._auth.keys)
        proxies = self.site.api.proxies()
        places = HttpPlaces(
            Places(
                bounds=BOUNDS,
                monotonic=self.clock.monotonic,
                is_configured=is_this_machine,
                is_proxy=lambda host: (found := parsed_address(host)) is not None and is_trusted(found, proxies),
            ),
            monotonic=self.clock.monotonic,
        )
        app = assembled((*routes, *self._relayed_routes(), *self.extra_routes), admission, self._live, places)
        app.router.add_routes(LocalCommands(register=self._auth.register, site_file=self.site_file).routes())
        app[TRUSTED_PROXIES] = proxies
        app[HOST_NAMES] = served_names(self.site.api, machine=socket.gethostname())
        app[PUBLIC_URL] = self.site.api.public_url or ""
        app.cleanup_ctx.append(self._while_served)
        app.on_shutdown.append(self._release)
        return app

    async def _release(self, _: web.Application) -> None:
        self.recording.live.release()

    @cached_property
    def _zone(self) -> ZoneInfo:
        return ZoneInfo(self.site.site.timezone)

    @cached_property
    def _auth(self) -> Authentication:
        store = self.store
        return Authentication(
            site=self.site,
            accounts=store.accounts,
            guessable=self.guessable,
            api_keys=store.api_keys,
            stored_sessions=store.sessions,
            remembered_accounts=store.remembered_accounts,
            journal=store.journal,
            changes=store.changes,
            central_accounts=self.central_accounts,
            clock=self.clock,
        )

    @cached_property
    def _views(self) -> OpenViews:
        return OpenViews(viewing=self.recording.viewing, viewers=self._auth.viewers)

    @cached_property
    def _central_status(self) -> Callable[[], CentralStatus] | None:
        return self.central.snapshot if self.central else None

    @cached_property
    def _live(self) -> Live:
        store = self.store
        watch = Watch(
            site=self.site,
            changes=store.changes,
            events=store.events,
            states=self._event_states,
            outbox=store.outbox,
            store_failing=lambda: store.failing or store.damaged,
            lanes=self.lanes,
            areas=self.areas,
            recording=self.recording,
            central_status=self._central_status,
            fleet_status=lambda: self.site_state().fleet,
            broker_status=lambda: self.site_state().broker,
            clock=self.clock,
            started_at=self.started_at,
            verdict=self.verdict,
            version=_release(),
            demo_cards=self.demo_cards,
        )
        return Live(watch=watch, sessions=self._auth.sessions, clock=self.clock)

    @cached_property
    def _event_states(self) -> EventStates:
        return EventStates(camera_events=self.store.camera_events, recording=self.recording)

    @cached_property
    def _spreadsheets(self) -> Spreadsheets:
        return Spreadsheets(folder=self.data / "spreadsheets")

    def _v1_routes(self) -> tuple[Route, ...]:
        store, release = self.store, _release()
        moments = Moments(clock=self.clock, central_status=self._central_status, zone=self._zone)
        return (
            *Health(verdict=self.verdict, version=release).routes(),
            *Metrics(
                state=self.site_state,
                verdict=self.verdict,
                lanes=self.lanes.figures,
                store=store,
                loop=self.loop,
                has_central=self.central is not None,
                version=release,
            ).routes(),
            *Description(operations=PUBLIC, release=release).routes(),
            *Auth(sign_in=self._auth.sign_in, sessions=self._auth.sessions).routes(),
            *Devices(
                devices=store.devices,
                pending_writes=store.pending_writes,
                lanes=self.lanes,
                writes=self.writes,
                places=places_of(self.site),
                clock=self.clock,
                site_file=self.site_file,
            ).routes(),
            *EntriesFamily(
                site=self.site,
                cards=store.cards,
                devices=store.devices,
                entries=store.entries,
                pending_writes=store.pending_writes,
                writes=self.writes,
                clock=self.clock,
                moments=moments,
                spreadsheets=self._spreadsheets,
            ).routes(),
            *CardsFamily(
                cards=store.cards,
                devices=store.devices,
                journal=store.journal,
                pending_writes=store.pending_writes,
                writes=self.writes,
                clock=self.clock,
                site=lambda: self.site if self.site_file is None else self.site_file.running.site,
                spreadsheets=self._spreadsheets,
            ).routes(),
            *EventsFamily(events=store.events, zone=self._zone).routes(),
            *self._camera_routes(moments),
        )

    def _camera_routes(self, moments: Moments) -> tuple[Route, ...]:
        store, viewers = self.store, self._auth.viewers
        return (
            *Cameras(
                cameras=store.cameras,
                pending_writes=store.pending_writes,
                recording=self.recording,
                viewers=viewers,
                writes=self.writes,
            ).routes(),
            *Whep(
                viewing=self.recording.viewing,
                viewers=viewers,
                views=self._views,
                ice_servers=self.site.live.ice_servers,
                monotonic=self.clock.monotonic,
            ).routes(),
            *CameraEventsFamily(
                site=self.site,
                camera_events=store.camera_events,
                evidence=store.evidence,
                journal=store.journal,
                pending_writes=store.pending_writes,
                recording=self.recording,
                writes=self.writes,
                clock=self.clock,
                moments=moments,
                viewers=viewers,
            ).routes(),
            *EvidenceFamily(
                evidence=store.evidence,
                camera_events=store.camera_events,
                journal=store.journal,
                files=self.recording.evidence_files,
                writes=self.writes,
                makers=viewers.makers,
                clock=self.clock,
            ).routes(),
        )

    def _page_routes(self) -> tuple[Route, ...]:
        store, name = self.store, self.site.site.name
        return (
            *StatusPage().routes(),
            *StatusProofs(packages=self.proofs, recording=self.recording).routes(),
            *StatusOrders(changes=store.changes, lanes=self.lanes, areas=self.areas, clock=self.clock).routes(),
            *self._live.routes(),
            *EventHistory(
                events=store.events,
                cards=store.cards,
                states=self._event_states,
                spreadsheets=self._spreadsheets,
                places=places_of(self.site),
                zone=self._zone,
            ).routes(),
            *StatusSettings(site_file=self.site_file).routes(),
            *StatusAccounts(register=self._auth.register, roster=self._auth.roster).routes(),
            *StatusProblems(acknowledge=self.acknowledge).routes(),
            *StatusIncidents(incidents=self.incidents).routes(),
            *StatusSupport(bundle=self.support).routes(),
            *StatusLines(state=self.site_state, lines=self.lines).routes(),
            *StatusFleet(status=lambda: self.site_state().fleet, seen=self.fleet_seen).routes(),
            *StatusCards(events=store.events, refused=store.refused, clock=self.clock).routes(),
            *StatusCommissioning(
                lanes=self.lanes, journal=store.journal, folder=self.data, site_name=name, clock=self.clock
            ).routes(),
            *StatusTravels(lanes=self.lanes, events=store.events).routes(),
            *StatusTrends(
                state=self.site_state,
                day_counts=store.day_counts,
                events=store.events,
                clock=self.clock,
                zone=self._zone,
            ).routes(),
            *StatusLane(lanes=self.lanes, cards=store.cards, events=store.events, states=self._event_states).routes(),
            *StatusOutbox(actions=self.outbox, outbox=store.outbox, refused=store.refused).routes(),
            *StatusSync(central=self.central).routes(),
            *StatusWebhooks(actions=self.webhooks, zone=self._zone).routes(),
        )

    def _legacy_routes(self) -> tuple[Route, ...]:
        store = self.store
        grants = SiteGrants(site=self.site, grants=store.grants, clock=self.clock)
        return (
            *LegacyAccess(granting=grants, lanes=self.lanes).routes(),
            *LegacyDevices(
                devices=store.devices,
                pending_writes=store.pending_writes,
                registered_devices=store.registered_devices,
                lanes=self.lanes,
                writes=self.writes,
                clock=self.clock,
                places=places_of(self.site),
                stands_alone=self.site.central is None,
            ).routes(),
            *LegacyVideo(
                site=self.site,
                camera_events=store.camera_events,
                segments=store.segments,
                recording=self.recording,
                viewers=self._auth.viewers,
                clock=self.clock,
            ).routes(),
            *LegacyWebhooks(actions=self.webhooks).routes(),
        )

    def _relayed_routes(self) -> tuple[Route, ...]:
        ids = RelayedIds(references=self.store.references)
        return (
            *Relayed(relay=self.relay, sessions=self._auth.central_sessions, ids=ids).routes(),
            *ExternalSignIn(relay=self.relay, sign_in=self._auth.sign_in).routes(),
        )

    async def _while_served(self, _: web.Application) -> AsyncIterator[None]:
        """Run the interface's tasks while it is served: open views, session ends."""
        await self._auth.load()
        async with asyncio.TaskGroup() as group:
            tasks = (
                group.create_task(self._auth.run(), name="end-at-central"),
                group.create_task(self._views.run(), name="check-views"),
            )
            yield
            for task in tasks:
                task.cancel()
        await self._auth.central_sessions.end_all()
