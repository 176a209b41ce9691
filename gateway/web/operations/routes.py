"""The routes of the `/v1` interface and of the probes, each bound to its handler."""

from __future__ import annotations

from collections.abc import Callable
from zoneinfo import ZoneInfo

from gateway.domain.writes import RecordWriter
from gateway.lanes import Lanes
from gateway.lanes.access_rules import places_of
from gateway.problems.found import SiteState
from gateway.problems.problem import Verdict
from gateway.recording import Recording
from gateway.runtime.clock import Clock
from gateway.runtime.loop_watch import LoopWatch
from gateway.site.models import Site
from gateway.site.running_site import RunningSite
from gateway.store import Store
from gateway.web.auth.authentication import Authentication
from gateway.web.auth.viewers import Viewers
from gateway.web.catalogue import PUBLIC
from gateway.web.families import Route
from gateway.web.http.times import Moments
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
from gateway.web.spreadsheets import Spreadsheets


def v1_routes(
    *,
    site: Site,
    site_file: RunningSite | None,
    site_state: Callable[[], SiteState],
    verdict: Callable[[], Verdict],
    store: Store,
    lanes: Lanes,
    has_central: bool,
    writes: RecordWriter,
    clock: Clock,
    moments: Moments,
    loop: LoopWatch,
    auth: Authentication,
    spreadsheets: Spreadsheets,
    release: str,
) -> tuple[Route, ...]:
    """Build all routes but those of `camera_routes` from the parts of the interface."""
    return (
        *Health(verdict=verdict, version=release).routes(),
        *Metrics(
            state=site_state,
            verdict=verdict,
            lanes=lanes.figures,
            store=store,
            loop=loop,
            has_central=has_central,
            version=release,
        ).routes(),
        *Description(operations=PUBLIC, release=release).routes(),
        *Auth(sign_in=auth.sign_in, sessions=auth.sessions).routes(),
        *Devices(
            devices=store.devices,
            pending_writes=store.pending_writes,
            lanes=lanes,
            writes=writes,
            places=places_of(site),
            clock=clock,
            site_file=site_file,
        ).routes(),
        *EntriesFamily(
            site=site,
            cards=store.cards,
            devices=store.devices,
            entries=store.entries,
            pending_writes=store.pending_writes,
            writes=writes,
            clock=clock,
            moments=moments,
            spreadsheets=spreadsheets,
        ).routes(),
        *CardsFamily(
            cards=store.cards,
            devices=store.devices,
            journal=store.journal,
            pending_writes=store.pending_writes,
            writes=writes,
            clock=clock,
            site=lambda: site if site_file is None else site_file.running.site,
            spreadsheets=spreadsheets,
        ).routes(),
        *EventsFamily(events=store.events, zone=ZoneInfo(site.site.timezone)).routes(),
    )


def camera_routes(
    *,
    site: Site,
    store: Store,
    recording: Recording,
    writes: RecordWriter,
    clock: Clock,
    moments: Moments,
    viewers: Viewers,
    views: OpenViews,
) -> tuple[Route, ...]:
    """Build the routes of cameras, live views, camera events and evidence from the parts of the interface."""
    return (
        *Cameras(
            cameras=store.cameras,
            pending_writes=store.pending_writes,
            recording=recording,
            viewers=viewers,
            writes=writes,
        ).routes(),
        *Whep(
            viewing=recording.viewing,
            viewers=viewers,
            views=views,
            ice_servers=site.live.ice_servers,
            monotonic=clock.monotonic,
        ).routes(),
        *CameraEventsFamily(
            site=site,
            camera_events=store.camera_events,
            evidence=store.evidence,
            journal=store.journal,
            pending_writes=store.pending_writes,
            recording=recording,
            writes=writes,
            clock=clock,
            moments=moments,
            viewers=viewers,
        ).routes(),
        *EvidenceFamily(
            evidence=store.evidence,
            camera_events=store.camera_events,
            journal=store.journal,
            files=recording.evidence_files,
            writes=writes,
            makers=viewers.makers,
            clock=clock,
        ).routes(),
    )
