"""The application: every operation of the catalogue bound to its handler."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from zoneinfo import ZoneInfo

import structlog
from aiohttp import web

from gateway.domain.central_status import CentralStatus
from gateway.domain.errors import StoreError
from gateway.domain.writes import RecordWriter
from gateway.lanes import Lanes
from gateway.lanes.access_rules import places_of
from gateway.lanes.grants import Granting
from gateway.lanes.presence import Areas
from gateway.recording import Recording
from gateway.runtime.clock import Clock
from gateway.site.models import Site
from gateway.site.running import RunningSite
from gateway.store import Store
from gateway.web.auth.accounts import Roster
from gateway.web.auth.admission import Admission, Route
from gateway.web.auth.api_keys import ApiKeys
from gateway.web.auth.central_sessions import CentralSessions
from gateway.web.auth.central_sign_in import CentralAccounts, CentralSignIn
from gateway.web.auth.external_sign_in import ExternalSignIn
from gateway.web.auth.memory_sessions import MemorySessions
from gateway.web.auth.second_factor import SecondFactor
from gateway.web.auth.sessions import Sessions
from gateway.web.auth.sign_in import SignIn
from gateway.web.auth.site_file_accounts import Accounts
from gateway.web.auth.view_tokens import ViewTokens
from gateway.web.auth.viewers import Viewers
from gateway.web.catalogue import OPERATIONS, PUBLIC
from gateway.web.http.connection_limits import ConnectionLimits
from gateway.web.http.forwarded import TRUSTED_PROXIES
from gateway.web.http.host_names import HOST_NAMES, served_names
from gateway.web.http.public_address import PUBLIC_URL
from gateway.web.http.segments import SegmentFiles
from gateway.web.http.server import Doors, assembled
from gateway.web.http.times import Moments
from gateway.web.legacy.access import LegacyAccess
from gateway.web.legacy.admission import LegacyAdmission
from gateway.web.legacy.devices import LegacyDevices
from gateway.web.legacy.video import LegacyVideo
from gateway.web.legacy.webhooks import LegacyWebhooks, WebhookActions
from gateway.web.operations.camera_events.handlers import CameraEventsFamily
from gateway.web.operations.cameras.handlers import Cameras
from gateway.web.operations.cameras.open_views import OpenViews
from gateway.web.operations.cameras.whep import Whep
from gateway.web.operations.cards.handlers import CardsFamily
from gateway.web.operations.cards.sheet import CardSheet
from gateway.web.operations.description import Description
from gateway.web.operations.devices import Devices
from gateway.web.operations.entries.handlers import EntriesFamily
from gateway.web.operations.events import EventsFamily
from gateway.web.operations.evidence import EvidenceFamily
from gateway.web.operations.health import Health, Readiness
from gateway.web.operations.session import Auth
from gateway.web.read_cursors import Consumers
from gateway.web.register.register import Register
from gateway.web.register.socket import listening
from gateway.web.relayed.ids import RelayedIds
from gateway.web.relayed.relay import Relay, Relayed
from gateway.web.spreadsheets import Spreadsheets
from gateway.web.status.consumers import StatusConsumers
from gateway.web.status.live import Live
from gateway.web.status.orders import StatusOrders
from gateway.web.status.outbox import RefusedActions, StatusOutbox
from gateway.web.status.page import StatusPage
from gateway.web.status.proof_packages import ProofPackages
from gateway.web.status.snapshot import DemoCard
from gateway.web.status.sync import Central, StatusSync
from gateway.web.status.updates import Watch
from gateway.web.status.webhooks import StatusWebhooks

log = structlog.get_logger(__name__)

_ENDED_SECONDS = 60.0


@cache
def _release() -> str:
    return version("edge-gateway")


@dataclass(frozen=True, kw_only=True)
class Interface:
    """The whole interface and the page, built once from the parts of the gateway.

    Attributes:
        site: the site file.
        store: opened and running.
        lanes: lanes and devices.
        areas: vehicles counted by area.
        recording: footage.
        central: None for a site that stands alone.
        writes: writer of records that central also keeps.
        clock: both clocks.
        accounts: the site file's accounts.
        data: the data folder.
        readiness: what is not ready.
        webhooks: receivers of the site's events.
        outbox: decisions on records that central refused.
        relay: the way to central for what only central answers; None for a site that stands alone.
        central_accounts: central's, where they may sign in here.
        extra_routes: more operations, entered by their own rules.
        demo_cards: cards that the page offers to present; the route for it is among `extra_routes`.
        site_file: the file that `site` was read from, where it may be read again.
    """

    site: Site
    store: Store
    lanes: Lanes
    areas: Areas
    recording: Recording
    central: Central | None
    writes: RecordWriter
    clock: Clock
    accounts: Accounts
    data: Path
    readiness: Readiness
    webhooks: WebhookActions
    outbox: RefusedActions
    relay: Relay | None = None
    central_accounts: CentralAccounts | None = None
    extra_routes: Sequence[Route] = ()
    demo_cards: tuple[DemoCard, ...] = ()
    site_file: RunningSite | None = None

    def build(self) -> web.Application:
        """Return the application. Raises AssertionError for an operation without a handler, or with two."""
        routes = (*self._v1_routes(), *self._page_routes(), *self._legacy_routes())
        if Counter(route.operation for route in routes) != Counter(OPERATIONS):
            raise AssertionError("every operation of the catalogue has exactly one handler")
        doors = Doors(Admission(sessions=self._sessions, viewers=self._viewers), LegacyAdmission(keys=self._keys))
        proxies = self.site.api.proxies()
        limits = ConnectionLimits(clock=self.clock, proxies=proxies)
        app = assembled((*routes, *self._relayed_routes(), *self.extra_routes), doors, self._live, limits)
        app[TRUSTED_PROXIES] = proxies
        app[HOST_NAMES] = served_names(self.site.api, machine=socket.gethostname())
        app[PUBLIC_URL] = self.site.api.public_url or ""
        app.cleanup_ctx.append(self._while_served)
        app.on_cleanup.append(self._segments.close)
        return app

    @cached_property
    def _zone(self) -> ZoneInfo:
        return ZoneInfo(self.site.site.timezone)

    @cached_property
    def _roster(self) -> Roster:
        return Roster(site=self.accounts, store=self.store)

    @cached_property
    def _keys(self) -> ApiKeys:
        return ApiKeys(store=self.store, clock=self.clock)

    @cached_property
    def _central_sessions(self) -> CentralSessions:
        return CentralSessions(central=self.central_accounts)

    @cached_property
    def _sessions(self) -> Sessions:
        api = self.site.api
        return Sessions(
            kept=MemorySessions(stored=self.store.sessions),
            roster=self._roster,
            central_sessions=self._central_sessions,
            clock=self.clock,
            idle_minutes=api.session_idle_minutes,
            longest_hours=api.session_hours,
        )

    @cached_property
    def _sign_in(self) -> SignIn:
        return SignIn(
            sessions=self._sessions,
            roster=self._roster,
            second_factor=SecondFactor(accounts=self.store.accounts, clock=self.clock),
            central=self._central_sign_in(),
            central_sessions=self._central_sessions,
            journal=self.store.journal,
            clock=self.clock,
        )

    @cached_property
    def _viewers(self) -> Viewers:
        tokens = ViewTokens(monotonic=self.clock.monotonic)
        return Viewers(tokens=tokens, sessions=self._sessions, keys=self._keys)

    @cached_property
    def _views(self) -> OpenViews:
        return OpenViews(viewing=self.recording.viewing, viewers=self._viewers)

    @cached_property
    def _consumers(self) -> Consumers:
        return Consumers(store=self.store, clock=self.clock)

    @cached_property
    def _segments(self) -> SegmentFiles:
        return SegmentFiles(monotonic=self.clock.monotonic)

    @cached_property
    def _central_status(self) -> Callable[[], CentralStatus] | None:
        return self.central.snapshot if self.central else None

    @cached_property
    def _status_consumers(self) -> StatusConsumers:
        days = self.site.keep.consumer_days
        return StatusConsumers(store=self.store, consumers=self._consumers, clock=self.clock, consumer_days=days)

    @cached_property
    def _live(self) -> Live:
        watch = Watch(
            site=self.site,
            store=self.store,
            lanes=self.lanes,
            areas=self.areas,
            recording=self.recording,
            central_status=self._central_status,
            clock=self.clock,
            readiness=self.readiness,
            version=_release(),
            demo_cards=self.demo_cards,
            notices=self.site_file.notices if self.site_file else tuple,
            consumers=self._status_consumers.shown,
        )
        return Live(watch=watch, sessions=self._sessions, clock=self.clock)

    def _central_sign_in(self) -> CentralSignIn | None:
        section = self.site.central
        if self.central_accounts is None or section is None or not section.accounts.sign_in:
            return None
        return CentralSignIn(
            central=self.central_accounts,
            store=self.store,
            roster=self._roster,
            clock=self.clock,
            remember_days=section.accounts.remember_days,
        )

    def _v1_routes(self) -> tuple[Route, ...]:
        site, store, recording, writes, clock = self.site, self.store, self.recording, self.writes, self.clock
        moments = Moments(clock=clock, central_status=self._central_status, zone=self._zone)
        spreadsheets = Spreadsheets(folder=self.data / "spreadsheets")
        viewers, views, segments, consumers = self._viewers, self._views, self._segments, self._consumers
        ice_servers = site.live.ice_servers
        return (
            *Health(readiness=self.readiness, version=_release()).routes(),
            *Description(operations=PUBLIC, release=_release()).routes(),
            *Auth(sign_in=self._sign_in, sessions=self._sessions).routes(),
            *Devices(site=site, store=store, lanes=self.lanes, writes=writes).routes(),
            *EntriesFamily(
                site=site,
                store=store,
                writes=writes,
                clock=clock,
                moments=moments,
                spreadsheets=spreadsheets,
                consumers=consumers,
            ).routes(),
            *CardsFamily(store=store, writes=writes, clock=clock, zone=self._zone).routes(),
            *CardSheet(store=store, spreadsheets=spreadsheets, zone=self._zone).routes(),
            *EventsFamily(store=store, zone=self._zone, consumers=consumers).routes(),
            *Cameras(store=store, recording=recording, viewers=viewers, writes=writes, segments=segments).routes(),
            *Whep(viewing=recording.viewing, viewers=viewers, views=views, ice_servers=ice_servers).routes(),
            *CameraEventsFamily(
                site=site,
                store=store,
                recording=recording,
                writes=writes,
                clock=clock,
                moments=moments,
                segments=segments,
                consumers=consumers,
                viewers=viewers,
            ).routes(),
            *EvidenceFamily(store=store, shelf=recording.evidence_files, writes=writes, clock=clock).routes(),
        )

    def _page_routes(self) -> tuple[Route, ...]:
        store, name = self.store, self.site.site.name
        return (
            *StatusPage().routes(),
            *ProofPackages(
                store=store, recording=self.recording, folder=self.data, site_name=name, clock=self.clock
            ).routes(),
            *StatusOrders(store=store, lanes=self.lanes, areas=self.areas).routes(),
            *self._live.routes(),
            *StatusOutbox(actions=self.outbox, outbox=store.outbox, refused=store.refused).routes(),
            *StatusSync(central=self.central).routes(),
            *self._status_consumers.routes(),
            *StatusWebhooks(actions=self.webhooks, zone=self._zone).routes(),
        )

    def _legacy_routes(self) -> tuple[Route, ...]:
        site, store, clock = self.site, self.store, self.clock
        return (
            *LegacyAccess(granting=Granting(site=site, grants=store.grants, clock=clock), lanes=self.lanes).routes(),
            *LegacyDevices(
                store=store,
                lanes=self.lanes,
                writes=self.writes,
                clock=clock,
                places=places_of(site),
                stands_alone=site.central is None,
            ).routes(),
            *LegacyVideo(site=site, store=store, recording=self.recording, viewers=self._viewers, clock=clock).routes(),
            *LegacyWebhooks(actions=self.webhooks).routes(),
        )

    def _relayed_routes(self) -> tuple[Route, ...]:
        ids = RelayedIds(references=self.store.references)
        return (
            *Relayed(relay=self.relay, sessions=self._central_sessions, ids=ids).routes(),
            *ExternalSignIn(relay=self.relay, sign_in=self._sign_in).routes(),
        )

    async def _while_served(self, _: web.Application) -> AsyncIterator[None]:
        """Read accounts and keys, take changes of them, follow consumers and open views, end sessions at central."""
        await self._roster.load()
        await self._keys.load()
        register = Register(
            store=self.store, clock=self.clock, site_file=self.accounts.names(), changed=self._accounts_changed
        )
        asked = listening(register, run_folder=self.data / "run", site_file=self.site_file)
        async with asked, asyncio.TaskGroup() as group:
            tasks = (
                group.create_task(_end_at_central(self._sessions), name="end-at-central"),
                group.create_task(self._consumers.run(), name="follow-consumers"),
                group.create_task(self._views.run(), name="check-views"),
            )
            yield
            for task in tasks:
                task.cancel()
        await self._central_sessions.end_all()

    async def _accounts_changed(self, usernames: tuple[str, ...]) -> None:
        for username in usernames:
            self._sessions.changed(username)
        await self._roster.load()
        await self._keys.load()
        self.store.changes.bump()


async def _end_at_central(sessions: Sessions) -> None:
    while True:
        await asyncio.sleep(_ENDED_SECONDS)
        try:
            await sessions.ended_elsewhere()
        except StoreError as error:
            log.debug("sessions_not_read", error=str(error))  # the store tells of itself; they are looked at again
