"""Wiring of the exchange with central. All of it is None for a site without central, except the keeping of events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from zoneinfo import ZoneInfo

from gateway.app.expiry import EventKeeping
from gateway.central.client.accounts import CentralPeople, RoleMap
from gateway.central.client.client import CentralClient
from gateway.central.client.session import UsedCodes
from gateway.central.commands.lane_commands import LaneCommands, Meaning
from gateway.central.pull.field_map import CardFieldMap
from gateway.central.pull.pull import DownSync
from gateway.central.push.evidence import EvidenceSender
from gateway.central.push.outbox import OutboxSender
from gateway.central.push.reconcile import Reconcile
from gateway.central.relay.relay import CentralRelay, RelayLimits
from gateway.central.runner import Sync
from gateway.central.site_cards import SiteCards
from gateway.domain.commands import GateAction
from gateway.lanes import Lanes
from gateway.recording.evidence_files import EvidenceFiles
from gateway.runtime.clock import Clock
from gateway.site import Secrets, Site
from gateway.store import ExpiryLimits, Store


def central_client(site: Site, *, secrets: Secrets, store: Store, clock: Clock) -> CentralClient | None:
    """Build the client of central. Raises ConfigError for a missing secret."""
    central = site.central
    if central is None:
        return None
    return CentralClient(
        url=central.url,
        username=central.username,
        password=secrets.get(central.password),
        totp_secret=secrets.get(central.totp) if central.totp else "",
        used_codes=UsedCodes(cards=store.cards),
        clock=clock,
        ca_file=central.ca_file,
        timeout_seconds=central.timeout_seconds,
    )


def relay_to_central(site: Site, *, client: CentralClient | None) -> CentralRelay | None:
    """Build the relay of callers' requests to central."""
    central = site.central
    if central is None or client is None:
        return None
    limits = RelayLimits(body_bytes=central.relay_megabytes * 1024 * 1024)
    return CentralRelay(client=client, url=central.url, limits=limits)


def people_of_central(site: Site, *, client: CentralClient | None) -> CentralPeople | None:
    """Return the sign-in for accounts of central."""
    if site.central is None or client is None:
        return None
    how = site.central.accounts
    return CentralPeople(client=client, roles=RoleMap(paths=how.permissions_in, names=how.names, roles=how.roles))


def down_from_central(site: Site, *, client: CentralClient | None, store: Store, clock: Clock) -> DownSync | None:
    """Build what pulls lists from central."""
    if client is None:
        return None
    zone = ZoneInfo(site.site.timezone)
    return DownSync(client=client, store=store, clock=clock, zone=zone, fields=card_fields(site))


def card_fields(site: Site) -> CardFieldMap:
    """Return central's names for a card's fields: those of the site file, else the usual ones."""
    return CardFieldMap.model_validate(dict(site.central.card_fields) if site.central else {})


def sync_with_central(
    site: Site,
    *,
    client: CentralClient | None,
    down: DownSync | None,
    store: Store,
    clock: Clock,
    evidence_files: EvidenceFiles,
    card_renamed: Callable[[int, int], None],
    lanes: Lanes,
) -> Sync | None:
    """Build the loop that pulls and pushes."""
    if site.central is None or client is None or down is None:
        return None
    zone = ZoneInfo(site.site.timezone)
    return Sync(
        client=client,
        down=down,
        sender=OutboxSender(
            client=client,
            store=store,
            clock=clock,
            may_take=site.central.write_may_take_seconds,
            ask_after=site.central.ask_person_hours * 3600,
            zone=zone,
            fields=card_fields(site),
            card_renamed=card_renamed,
            restore=down.restore,
        ),
        store=store,
        clock=clock,
        pull_seconds=site.central.pull_seconds,
        bytes_per_second=site.central.pull_bytes_per_second,
        evidence=EvidenceSender(
            client=client,
            store=store,
            clock=clock,
            files=evidence_files.lost,
            may_take=site.central.write_may_take_seconds,
            ask_after=site.central.ask_person_hours * 3600,
        ),
        reconcile=Reconcile(
            client=client,
            store=store,
            clock=clock,
            cards=SiteCards(store=store, clock=clock, zone=zone, fields=card_fields(site)),
            restore=down.restore,
        ),
        commands=_commands_of_central(site, client=client, store=store, clock=clock, lanes=lanes),
        clock_alert_seconds=site.central.clock_alert_seconds,
    )


def event_keeping(site: Site, *, store: Store, clock: Clock, forget: Callable[[int], Awaitable[None]]) -> EventKeeping:
    """Return the keeper that deletes old events and waits for programs that pull them."""
    limits = ExpiryLimits(
        days=site.keep.days,
        most_days=site.keep.most_days,
        most_events=site.keep.most_events,
        transaction_days=site.storage.transaction_days,
        incident_days=site.storage.incident_days,
    )
    return EventKeeping(store=store, clock=clock, limits=limits, consumer_days=site.keep.consumer_days, forget=forget)


def _commands_of_central(
    site: Site, *, client: CentralClient, store: Store, clock: Clock, lanes: Lanes
) -> LaneCommands | None:
    central = site.central
    if central is None or not central.commands or not site.lanes:
        return None
    return LaneCommands(
        client=client,
        lanes=lanes,
        commands=store.commands,
        journal=store.journal,
        clock=clock,
        meanings=tuple(
            Meaning(type=it.type, category=it.category, subcategory=it.subcategory, action=GateAction(it.action))
            for it in central.commands
        ),
        gates=tuple(lane.gate for lane in site.lanes),
        zone=ZoneInfo(site.site.timezone),
        every=central.commands_every_seconds,
        fresh=central.commands_fresh_seconds,
    )
