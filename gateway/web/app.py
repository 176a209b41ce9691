"""The application: every operation of the catalogue bound to its handler."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from zoneinfo import ZoneInfo

import structlog
from aiohttp import web

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
from gateway.web.auth.sessions import Sessions
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
from gateway.web.legacy.webhooks import LegacyWebhooks, WebhookDesk
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
from gateway.web.read_cursors import Readers
from gateway.web.register.register import Register
from gateway.web.register.socket import listening
from gateway.web.relayed.ids import RelayedIds
from gateway.web.relayed.relay import Relay, Relayed
from gateway.web.spreadsheets import Spreadsheets
from gateway.web.status.consumers import StatusReaders
from gateway.web.status.evidence import Evidence
from gateway.web.status.live import Live
from gateway.web.status.orders import Standing
from gateway.web.status.outbox import OutboxDesk, StatusOutbox
from gateway.web.status.page import StatusPage
from gateway.web.status.snapshot import DemoCard
from gateway.web.status.sync import Central, StatusSync
from gateway.web.status.updates import Watch
from gateway.web.status.webhooks import StatusWebhooks

log = structlog.get_logger(__name__)

_ENDED_SECONDS = 60.0


def build_app(
    *,
    site: Site,
    store: Store,
    lanes: Lanes,
    areas: Areas,
    recording: Recording,
    central: Central | None,
    writes: RecordWriter,
    clock: Clock,
    accounts: Accounts,
    data: Path,
    readiness: Readiness,
    webhooks: WebhookDesk,
    outbox: OutboxDesk,
    relay: Relay | None = None,
    central_accounts: CentralAccounts | None = None,
    extra_routes: Sequence[Route] = (),
    demo_cards: tuple[DemoCard, ...] = (),
    site_file: RunningSite | None = None,
) -> web.Application:
    """The whole interface and the page.

    Args:
        site: the site file.
        store: opened and running.
        lanes: lanes and devices.
        areas: who is where.
        recording: footage.
        central: None for a site that stands alone.
        writes: how what central also keeps is written.
        clock: both clocks.
        accounts: the site file's accounts.
        data: the data folder.
        readiness: what is not ready.
        webhooks: who is told of the site's events.
        outbox: what is done with what central refused.
        relay: the way to central for what only central answers; None for a site that stands alone.
        central_accounts: central's, where they may sign in here.
        extra_routes: more operations, entered by their own rules.
        demo_cards: what the page offers to present; the route for it is among `extra_routes`.
        site_file: the file that `site` was read from, where it may be read again.
    """
    release = version("edge-gateway")
    central_status = central.snapshot if central else None
    roster = Roster(site=accounts, store=store)
    keys = ApiKeys(store=store, clock=clock)
    central_sessions = CentralSessions()
    sessions = Sessions(
        store=store,
        roster=roster,
        central=_central_sign_in(site, central_accounts, store=store, roster=roster, clock=clock),
        central_sessions=central_sessions,
        clock=clock,
        idle_minutes=site.api.session_idle_minutes,
        longest_hours=site.api.session_hours,
    )
    readers = Readers(store=store, clock=clock)
    status_readers = StatusReaders(store=store, readers=readers, clock=clock, reader_days=site.keep.reader_days)
    watch = Watch(
        site=site,
        store=store,
        lanes=lanes,
        areas=areas,
        recording=recording,
        central_status=central_status,
        clock=clock,
        readiness=readiness,
        version=release,
        demo_cards=demo_cards,
        notices=site_file.notices if site_file else tuple,
        readers=status_readers.shown,
    )
    spreadsheets = Spreadsheets(folder=data / "spreadsheets")
    viewers = Viewers(tokens=ViewTokens(monotonic=clock.monotonic), sessions=sessions, keys=keys)
    views = OpenViews(viewing=recording.viewing, viewers=viewers)
    segments = SegmentFiles(monotonic=clock.monotonic)
    moments = Moments(clock=clock, central_status=central_status, zone=ZoneInfo(site.site.timezone))
    live = Live(watch=watch, sessions=sessions, clock=clock)
    routes = (
        *Health(readiness=readiness, version=release).routes(),
        *Description(operations=PUBLIC, release=release).routes(),
        *Auth(sessions=sessions).routes(),
        *Devices(site=site, store=store, lanes=lanes, writes=writes).routes(),
        *EntriesFamily(
            site=site,
            store=store,
            writes=writes,
            clock=clock,
            moments=moments,
            spreadsheets=spreadsheets,
            readers=readers,
        ).routes(),
        *CardsFamily(store=store, writes=writes, clock=clock, zone=ZoneInfo(site.site.timezone)).routes(),
        *CardSheet(store=store, spreadsheets=spreadsheets, zone=ZoneInfo(site.site.timezone)).routes(),
        *EventsFamily(store=store, zone=ZoneInfo(site.site.timezone), readers=readers).routes(),
        *Cameras(store=store, recording=recording, viewers=viewers, writes=writes, segments=segments).routes(),
        *Whep(viewing=recording.viewing, viewers=viewers, views=views, ice_servers=site.live.ice_servers).routes(),
        *CameraEventsFamily(
            site=site,
            store=store,
            recording=recording,
            writes=writes,
            clock=clock,
            moments=moments,
            segments=segments,
            readers=readers,
            viewers=viewers,
        ).routes(),
        *EvidenceFamily(store=store, shelf=recording.exhibits, writes=writes, clock=clock).routes(),
        *StatusPage().routes(),
        *Evidence(store=store, recording=recording, folder=data, site_name=site.site.name, clock=clock).routes(),
        *Standing(store=store, lanes=lanes, areas=areas).routes(),
        *live.routes(),
        *StatusOutbox(desk=outbox, outbox=store.outbox, refused=store.refused).routes(),
        *StatusSync(central=central).routes(),
        *status_readers.routes(),
        *StatusWebhooks(desk=webhooks, zone=ZoneInfo(site.site.timezone)).routes(),
        *LegacyAccess(granting=Granting(site=site, grants=store.grants, clock=clock), lanes=lanes).routes(),
        *LegacyDevices(
            store=store,
            lanes=lanes,
            writes=writes,
            clock=clock,
            places=places_of(site),
            stands_alone=site.central is None,
        ).routes(),
        *LegacyVideo(site=site, store=store, recording=recording, viewers=viewers, clock=clock).routes(),
        *LegacyWebhooks(desk=webhooks).routes(),
    )
    if Counter(route.operation for route in routes) != Counter(OPERATIONS):
        raise AssertionError("every operation of the catalogue has exactly one handler")
    relayed = (
        *Relayed(relay=relay, sessions=central_sessions, ids=RelayedIds(references=store.references)).routes(),
        *ExternalSignIn(relay=relay, sessions=sessions).routes(),
    )
    doors = Doors(Admission(sessions=sessions, viewers=viewers), LegacyAdmission(keys=keys))
    proxies = site.api.proxies()
    limits = ConnectionLimits(clock=clock, proxies=proxies)
    app = assembled((*routes, *relayed, *extra_routes), doors, live, limits)
    app[TRUSTED_PROXIES] = proxies
    app[HOST_NAMES] = served_names(site.api, machine=socket.gethostname())
    app[PUBLIC_URL] = site.api.public_url or ""

    async def changed(usernames: tuple[str, ...]) -> None:
        for username in usernames:
            sessions.changed(username)
        await roster.load()
        await keys.load()
        store.changes.bump()

    register = Register(store=store, clock=clock, site_file=accounts.names(), changed=changed)
    run_folder = data / "run"
    app.cleanup_ctx.append(
        partial(
            _who_may_sign_in,
            roster=roster,
            keys=keys,
            sessions=sessions,
            asked=lambda: listening(register, run_folder=run_folder, site_file=site_file),
            readers=readers,
            views=views,
        )
    )
    app.on_cleanup.append(segments.close)
    return app


def _central_sign_in(
    site: Site, central: CentralAccounts | None, *, store: Store, roster: Roster, clock: Clock
) -> CentralSignIn | None:
    if central is None or site.central is None or not site.central.accounts.sign_in:
        return None
    days = site.central.accounts.remember_days
    return CentralSignIn(central=central, store=store, roster=roster, clock=clock, remember_days=days)


async def _who_may_sign_in(
    _: web.Application,
    *,
    roster: Roster,
    keys: ApiKeys,
    sessions: Sessions,
    asked: Callable[[], AbstractAsyncContextManager[None]],
    readers: Readers,
    views: OpenViews,
) -> AsyncIterator[None]:
    """Accounts and keys are read and changed, and sessions at central end with those here, while the app is served.
    Who reads lists is followed, and live views end with the right to watch.
    """
    await roster.load()
    await keys.load()
    async with asked(), asyncio.TaskGroup() as group:
        ending = group.create_task(_end_at_central(sessions), name="end-at-central")
        following = group.create_task(readers.run(), name="follow-readers")
        watching = group.create_task(views.run(), name="check-views")
        yield
        watching.cancel()
        ending.cancel()
        following.cancel()
    await sessions.end_all_at_central()


async def _end_at_central(sessions: Sessions) -> None:
    while True:
        await asyncio.sleep(_ENDED_SECONDS)
        try:
            await sessions.ended_elsewhere()
        except StoreError as error:
            log.debug("sessions_not_read", error=str(error))  # the store tells of itself; they are looked at again
