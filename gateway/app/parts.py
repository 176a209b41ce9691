"""Parts of the daemon that are built from the site file and the data folder alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from gateway.lanes.access_rules import places_of
from gateway.recording import Recording
from gateway.runtime.clock import SystemClock, boot_id, offset_of
from gateway.runtime.data_folder import MEDIA_MARKER, DataFolder, media_fault
from gateway.runtime.supervision import Progress
from gateway.runtime.trusted_time import read_trusted_time
from gateway.site import Secrets, Site
from gateway.store import DEFAULT_BYTES, GIGABYTE, Store
from gateway.webhooks.client import ReceiverClient
from gateway.webhooks.registry import WebhookRegistry
from gateway.webhooks.sender import WebhookSender


@dataclass(frozen=True, slots=True)
class WebhookParts:
    """The sender of webhooks, their registry, and the HTTP client of both. Call `client.close` at the end."""

    client: ReceiverClient
    sender: WebhookSender
    registry: WebhookRegistry


def clock_of(folder: DataFolder) -> SystemClock:
    """Build the clock, which takes up the last trusted time from the data folder."""
    clock = SystemClock()
    if (last := read_trusted_time(folder.path)) is not None:
        clock.recall(last, boot_id=boot_id())
    return clock


def store_of(site: Site, *, folder: DataFolder, clock: SystemClock) -> Store:
    """Build the store of a site."""
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


def recording_of(
    site: Site, *, store: Store, folder: DataFolder, clock: SystemClock, progress: Progress, secrets: Secrets
) -> Recording:
    """Build the recording of a site's cameras."""
    return Recording(
        site=site,
        store=store,
        media=folder.media,
        run_folder=folder.run,
        clock=clock,
        progress=progress,
        secrets=secrets,
        media_fault=partial(media_fault, folder.path),
        marker=MEDIA_MARKER,
    )


def webhooks_of(site: Site, *, store: Store, clock: SystemClock) -> WebhookParts:
    """Build the parts that send a site's events to webhooks. Raises OSError for an unreadable `ca_file`."""
    limits = site.webhooks
    client = ReceiverClient(allowed=limits.networks(), ca_file=limits.ca_file, timeout_seconds=limits.timeout_seconds)
    return WebhookParts(
        client=client,
        sender=WebhookSender(webhooks=store.webhooks, client=client, clock=clock),
        registry=WebhookRegistry(webhooks=store.webhooks, client=client, clock=clock),
    )
