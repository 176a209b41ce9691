"""The context of the interface: what other layers offer, and what its families share; built once, handed down whole."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Protocol
from zoneinfo import ZoneInfo

from gateway.domain.announcements import PlaceNames
from gateway.domain.server_lines import CentralStatus, FleetSeen
from gateway.domain.writes import JsonObject, RecordWriter
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
from gateway.store import OutboxRow, Store, Webhook
from gateway.support.bundle import SupportBundle
from gateway.web.auth.authentication import Authentication
from gateway.web.auth.central_sign_in import CentralAccounts
from gateway.web.auth.viewers import OpenViews
from gateway.web.http.dates import Moments
from gateway.web.spreadsheets import Spreadsheets
from gateway.web.status.snapshot import DemoCard, EventStates


class Acknowledge(Protocol):
    """The function that notes that a person knows of a problem. Raises NotFoundError when the problem is over."""

    def __call__(self, key: tuple[str, ...], *, by: str, silent_seconds: float = 0.0) -> None:
        """Note that `by` knows of the problem `key`; nobody is called for it for `silent_seconds`."""


class Central(Protocol):
    """The line to central, as far as the page needs it."""

    def snapshot(self) -> CentralStatus:
        """Return the present state of the line. Never waits."""
        ...

    async def reconcile(self, *, days: int, by: str) -> None:
        """Request a comparison of the records of the last `days` with central's; missing ones are sent again.

        The request is on disk when this returns. Raises StoreError.
        """
        ...

    async def refresh(self, *, by: str) -> None:
        """Request that all lists are fetched again, now or as soon as central answers.

        The request is on disk when this returns. Raises StoreError.
        """
        ...


class RefusedActions(Protocol):
    """A person's actions on rows that central refused; `by`, the person's account, is recorded.

    All raise NotFoundError for an unknown row, and CommandRefused for a row that central has not refused.
    """

    async def retry(self, row_id: int, *, by: str) -> OutboxRow:
        """Send a row again unchanged."""
        ...

    async def edit(self, row_id: int, fields: JsonObject, *, by: str) -> OutboxRow:
        """Send a row again with changed fields; None removes a field."""
        ...

    async def settle(self, row_id: int, central_id: int | None, *, by: str) -> OutboxRow:
        """Settle a row of unknown outcome: `central_id` is its id at central, None if central does not have it."""
        ...

    async def drop(self, row_id: int, *, by: str) -> OutboxRow:
        """Drop a row: central never gets it."""
        ...


class WebhookActions(Protocol):
    """Management of webhooks. Methods that take an id raise NotFoundError for an unknown one."""

    async def create(self, *, url: str, types: Sequence[str], secret: str | None, by: str) -> Webhook:
        """Register a receiver; generate a secret if `secret` is None.

        Raises ReceiverRefused for the URL, SecretRefused for the secret, and CommandRefused when there are too many.
        """
        ...

    async def all(self) -> tuple[Webhook, ...]:
        """Return all webhooks, oldest first."""
        ...

    async def remove(self, webhook_id: str) -> None:
        """Remove a webhook, with the messages that wait for it."""
        ...

    async def enable(self, webhook_id: str, *, by: str) -> Webhook:
        """Resume deliveries to a disabled webhook, oldest message first."""
        ...

    async def replay(self, webhook_id: str, *, since: int | None, until: int | None) -> int:
        """Queue again the messages that were given up, or, with `since`, all of a period (wall micros).

        Return their number. Raises CommandRefused for a disabled webhook.
        """
        ...

    async def test(self, webhook_id: str) -> str:
        """Send a test message; return "" when the receiver accepted it, else the reason."""
        ...


@dataclass(frozen=True, kw_only=True)
class InterfaceContext:
    """The parts of the gateway that the interface and the page stand on, and the parts that their families share.

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
        central_accounts: sign-in at central; None where accounts of central may not sign in.
        demo_cards: cards that the page offers to present.
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
    central_accounts: CentralAccounts | None = None
    demo_cards: tuple[DemoCard, ...] = ()
    site_file: RunningSite | None = None
    fleet_seen: Callable[[str], FleetSeen | None] = lambda _: None

    @cached_property
    def release(self) -> str:
        """The gateway's version."""
        return version("edge-gateway")

    @cached_property
    def zone(self) -> ZoneInfo:
        """The site's time zone."""
        return ZoneInfo(self.site.site.timezone)

    @cached_property
    def places(self) -> PlaceNames:
        """The names of lanes, by lane and by device."""
        return places_of(self.site)

    @cached_property
    def auth(self) -> Authentication:
        """Accounts, keys, sessions, sign-in and viewers."""
        return Authentication(
            site=self.site,
            store=self.store,
            guessable=self.guessable,
            central_accounts=self.central_accounts,
            clock=self.clock,
        )

    @cached_property
    def views(self) -> OpenViews:
        """The open live views."""
        return OpenViews(viewing=self.recording.viewing, viewers=self.auth.viewers)

    @cached_property
    def moments(self) -> Moments:
        """The moments of records as answers show them."""
        return Moments(clock=self.clock, central_status=self.central_status, zone=self.zone)

    @cached_property
    def event_states(self) -> EventStates:
        """Events as the page shows them."""
        return EventStates(camera_events=self.store.camera_events, recording=self.recording)

    @cached_property
    def spreadsheets(self) -> Spreadsheets:
        """The maker of Excel files."""
        return Spreadsheets(folder=self.data / "spreadsheets")

    @cached_property
    def grants(self) -> SiteGrants:
        """Permission for single cards at single devices, as programs of the legacy interface give it."""
        return SiteGrants(site=self.site, grants=self.store.grants, clock=self.clock)

    @property
    def central_status(self) -> Callable[[], CentralStatus] | None:
        """The function that returns the state of the line to central; None for a site without central."""
        return self.central.snapshot if self.central else None

    def running_site(self) -> Site:
        """Return the site in force, which may be newer than `site`."""
        return self.site if self.site_file is None else self.site_file.running.site
