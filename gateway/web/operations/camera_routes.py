"""The routes of cameras, camera events and evidence."""

from __future__ import annotations

from gateway.domain.writes import RecordWriter
from gateway.recording import Recording
from gateway.runtime.clock import Clock
from gateway.site.models import Site
from gateway.store import Store
from gateway.web.auth.admission import Route
from gateway.web.auth.viewers import Viewers
from gateway.web.http.segments import SegmentFiles
from gateway.web.http.times import Moments
from gateway.web.operations.camera_events.handlers import CameraEventsFamily
from gateway.web.operations.cameras.handlers import Cameras
from gateway.web.operations.cameras.open_views import OpenViews
from gateway.web.operations.cameras.whep import Whep
from gateway.web.operations.evidence import EvidenceFamily
from gateway.web.read_cursors import Consumers


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
    segments: SegmentFiles,
    consumers: Consumers,
) -> tuple[Route, ...]:
    """Build the routes of cameras, live views, camera events and evidence from the parts of the gateway."""
    return (
        *Cameras(
            cameras=store.cameras,
            pending_writes=store.pending_writes,
            recording=recording,
            viewers=viewers,
            writes=writes,
            segments=segments,
        ).routes(),
        *Whep(viewing=recording.viewing, viewers=viewers, views=views, ice_servers=site.live.ice_servers).routes(),
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
            segments=segments,
            consumers=consumers,
            viewers=viewers,
        ).routes(),
        *EvidenceFamily(
            evidence=store.evidence,
            camera_events=store.camera_events,
            journal=store.journal,
            files=recording.evidence_files,
            writes=writes,
            clock=clock,
        ).routes(),
    )
