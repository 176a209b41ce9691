"""The routes of the legacy family."""

from __future__ import annotations

from gateway.domain.writes import RecordWriter
from gateway.lanes import Lanes
from gateway.lanes.access_rules import places_of
from gateway.lanes.grants import SiteGrants
from gateway.recording import Recording
from gateway.runtime.clock import Clock
from gateway.site.models import Site
from gateway.store import Store
from gateway.web.auth.viewers import Viewers
from gateway.web.families import Route
from gateway.web.legacy.access import LegacyAccess
from gateway.web.legacy.devices import LegacyDevices
from gateway.web.legacy.video import LegacyVideo
from gateway.web.legacy.webhooks import LegacyWebhooks, WebhookActions


def legacy_routes(
    *,
    site: Site,
    store: Store,
    lanes: Lanes,
    recording: Recording,
    viewers: Viewers,
    writes: RecordWriter,
    webhooks: WebhookActions,
    clock: Clock,
) -> tuple[Route, ...]:
    """Build the routes of `/api/v1` from the parts of the gateway."""
    return (
        *LegacyAccess(granting=SiteGrants(site=site, grants=store.grants, clock=clock), lanes=lanes).routes(),
        *LegacyDevices(
            devices=store.devices,
            pending_writes=store.pending_writes,
            registered_devices=store.registered_devices,
            lanes=lanes,
            writes=writes,
            clock=clock,
            places=places_of(site),
            stands_alone=site.central is None,
        ).routes(),
        *LegacyVideo(
            site=site,
            camera_events=store.camera_events,
            segments=store.segments,
            recording=recording,
            viewers=viewers,
            clock=clock,
        ).routes(),
        *LegacyWebhooks(actions=webhooks).routes(),
    )
