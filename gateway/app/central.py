"""The wiring of the parts that work with central."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from gateway.app.contexts import LanesContext
from gateway.central.central_link import CentralLink
from gateway.central.client.accounts import AccountsAtCentral, RoleMap
from gateway.central.client.client import CentralClient
from gateway.central.client.pace import HELD_SECONDS
from gateway.central.client.session import GatewayAccount, UsedCodes
from gateway.central.field_map import CardFieldMap
from gateway.central.lane_commands import CommandNumbers, CommandRules, LaneCommands
from gateway.central.pull.pull import DownSync
from gateway.central.push.evidence import EvidenceSender
from gateway.central.push.outbox import OutboxSender
from gateway.central.push.parked_rows import ParkedRows
from gateway.central.push.reconcile import Reconcile
from gateway.central.push.upstream import upstream
from gateway.central.push.writes import CentralWrites
from gateway.central.relay import CentralRelay, RelayLimits
from gateway.central.runner import Sync, SyncPace
from gateway.central.site_cards import SiteCards
from gateway.domain.commands import GateAction
from gateway.lanes import Lanes
from gateway.recording.evidence_files import EvidenceFiles
from gateway.runtime.clock import Clock, WallTimes
from gateway.site import CentralSection, Secrets, Site
from gateway.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class CentralParts:
    """The parts that work with central. A site without central has only the first two.

    Attributes:
        writes: the writer of records that central also keeps, for people and programs.
        parked: the actions on outbox rows that central refused.
        sync: the loop that pulls lists and pushes records.
        relay: the relay of callers' requests to central.
        people: the sign-in of central's accounts.
        link: the state of the line to central, for the page.
    """

    writes: CentralWrites
    parked: ParkedRows
    sync: Sync | None = None
    relay: CentralRelay | None = None
    people: AccountsAtCentral | None = None
    link: CentralLink | None = None

    async def recall(self) -> None:
        """Restore the writes that the last run left. Raises StoreError."""
        await self.writes.recall()

    def runs(self) -> Mapping[str, Callable[[], Coroutine[Any, Any, None]]]:
        """Return the loops by the names of their tasks."""
        return {name: part.run for name, part in (("sync", self.sync), ("relay", self.relay)) if part is not None}


def central_parts(site: Site, base: LanesContext, evidence_files: EvidenceFiles) -> CentralParts:
    """Build everything that works with central. Raises ConfigError for a missing secret."""
    secrets, store, clock, lanes = base.run.secrets, base.store, base.clock, base.lanes
    central, zone = site.central, ZoneInfo(site.site.timezone)
    fields = CardFieldMap.model_validate(dict(central.card_fields) if central else {})
    cards = SiteCards(store=store, clock=clock, zone=zone, fields=fields)
    if central is None:
        return CentralParts(writes=CentralWrites(cards, sender=None), parked=ParkedRows(cards))
    client = _client(central, secrets=secrets, store=store, clock=clock)
    may_take, ask_after = central.write_may_take_seconds, central.ask_person_hours * 3600
    central_now = upstream(client, cards, may_take=may_take, ask_after=ask_after)
    down = DownSync(central_now)
    sender = OutboxSender(central_now, card_renamed=lanes.areas.card_renamed, held_seconds=HELD_SECONDS)
    sync = Sync(
        central_now,
        down=down,
        sender=sender,
        pace=SyncPace(
            pull_seconds=central.pull_seconds,
            longest_pull_seconds=central.longest_pull_seconds,
            bytes_per_second=central.pull_bytes_per_second,
            clock_alert_seconds=central.clock_alert_seconds,
        ),
        evidence=EvidenceSender(central_now, files=evidence_files.lost),
        reconcile=Reconcile(central_now),
        commands=_commands_of_central(site, client=client, store=store, clock=clock, lanes=lanes),
    )
    how = central.accounts
    return CentralParts(
        writes=CentralWrites(cards, sender=sender),
        parked=ParkedRows(cards, client=client),
        sync=sync,
        relay=CentralRelay(
            client=client, url=central.url, limits=RelayLimits(body_bytes=central.relay_megabytes * 1024 * 1024)
        ),
        people=AccountsAtCentral(
            client=client, roles=RoleMap(paths=how.permissions_in, names=how.names, roles=how.roles)
        ),
        link=CentralLink(
            client=client,
            down=down,
            sync=sync,
            made_at=clock.monotonic(),
            wall_times=WallTimes(clock),
            password_in=secrets.how_changed(central.password),
        ),
    )


def _client(central: CentralSection, *, secrets: Secrets, store: Store, clock: Clock) -> CentralClient:
    return CentralClient(
        url=central.url,
        account=GatewayAccount(
            username=central.username,
            password=secrets.get(central.password),
            totp_secret=secrets.get(central.totp) if central.totp else "",
            used_codes=UsedCodes(notes=store.notes),
        ),
        clock=clock,
        ca_file=central.ca_file,
        timeout_seconds=central.timeout_seconds,
        requests_per_second=central.requests_per_second,
    )


def _commands_of_central(
    site: Site, *, client: CentralClient, store: Store, clock: Clock, lanes: Lanes
) -> LaneCommands | None:
    central = site.central
    if central is None or not central.commands or not site.lanes:
        return None
    rules = CommandRules(
        meanings=tuple(
            CommandNumbers(type=it.type, category=it.category, subcategory=it.subcategory, action=GateAction(it.action))
            for it in central.commands
        ),
        gates=tuple(lane.gate for lane in site.lanes),
        zone=ZoneInfo(site.site.timezone),
        every=central.commands_every_seconds,
        fresh=central.commands_fresh_seconds,
    )
    return LaneCommands(
        client=client, lanes=lanes, commands=store.commands, journal=store.journal, clock=clock, rules=rules
    )
