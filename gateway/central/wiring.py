"""The parts that work with central, built over the tables of one store.

The site's cards and the upstream are built once and shared by the other parts.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, tzinfo

from gateway.central.client.client import CentralClient
from gateway.central.pull.cards import CardPull
from gateway.central.pull.field_map import CardFieldMap
from gateway.central.pull.pull import DownSync
from gateway.central.push.conflicting_changes import ConflictingChanges
from gateway.central.push.events import OutboxEvents
from gateway.central.push.evidence import EvidenceOnDisk, EvidenceSender
from gateway.central.push.lost_records import LostRecords
from gateway.central.push.newest_ids import NewestIds
from gateway.central.push.outbox import OutboxSender
from gateway.central.push.own_records import OwnRecords
from gateway.central.push.parked_rows import ParkedRows
from gateway.central.push.reconcile import Reconcile
from gateway.central.push.restored_central import RestoreDetector
from gateway.central.push.search_attempts import ASK_AFTER, MAY_TAKE, SearchAttempts
from gateway.central.push.unknown_outcomes import OutcomeSearch
from gateway.central.push.upstream import Upstream
from gateway.central.push.writes import CentralWrites
from gateway.central.site_cards import SiteCards
from gateway.runtime.clock import Clock
from gateway.runtime.supervision import Backoff
from gateway.store import Store


def site_cards(store: Store, *, clock: Clock, zone: tzinfo = UTC, fields: CardFieldMap | None = None) -> SiteCards:
    """Build the site's cards; `fields` names the fields of central's records that make a card."""
    return SiteCards(
        cards=store.cards,
        pending_writes=store.pending_writes,
        delivered_records=store.delivered_records,
        clock=clock,
        zone=zone,
        fields=fields or CardFieldMap(),
    )


def upstream(
    client: CentralClient,
    *,
    store: Store,
    clock: Clock,
    newest: NewestIds | None = None,
    may_take: float = MAY_TAKE,
    ask_after: float = ASK_AFTER,
) -> Upstream:
    """Build what the senders share.

    For `may_take` seconds after a lost answer, central may still carry out the write. After `ask_after` seconds a
    person decides about a row of unknown outcome.
    """
    newest = newest or NewestIds(client=client, clock=clock)
    delivered_records, notes = store.delivered_records, store.cards
    restore = RestoreDetector(
        lost_records=LostRecords(client=client, delivered_records=delivered_records, notes=notes, clock=clock),
        delivered_records=delivered_records,
        notes=notes,
        events=store.events,
        journal=store.journal,
        changes=store.changes,
        clock=clock,
    )
    return Upstream(
        client=client,
        newest=newest,
        restore=restore,
        own_records=OwnRecords(
            client=client,
            pending_writes=store.pending_writes,
            delivered_records=delivered_records,
            cards=notes,
            restore=restore,
        ),
        outcomes=OutcomeSearch(
            client=client,
            unknown_outcomes=store.unknown_outcomes,
            references=store.references,
            cards=notes,
            pending_writes=store.pending_writes,
            delivered_records=delivered_records,
            clock=clock,
            attempts=SearchAttempts(monotonic=clock.monotonic, may_take=may_take, ask_after=ask_after),
            newest=newest,
            may_take=may_take,
        ),
    )


def central_writes(store: Store, *, sender: OutboxSender | None, cards: SiteCards) -> CentralWrites:
    """Build the writer of records; without a `sender` the site keeps them itself."""
    return CentralWrites(
        sender=sender,
        pending_writes=store.pending_writes,
        references=store.references,
        backlog=store.backlog,
        journal=store.journal,
        cards=cards,
        clock=cards.clock,
    )


def parked_rows(store: Store, *, cards: SiteCards, client: CentralClient | None = None) -> ParkedRows:
    """Build the actions on parked rows."""
    return ParkedRows(
        refused=store.refused,
        unknown_outcomes=store.unknown_outcomes,
        references=store.references,
        cards=cards,
        clock=cards.clock,
        client=client,
    )


def down_sync(store: Store, *, upstream: Upstream, cards: SiteCards) -> DownSync:
    """Build the pull."""
    client, clock = upstream.client, cards.clock
    return DownSync(
        client=client,
        cards=store.cards,
        devices=store.devices,
        cameras=store.cameras,
        pending_writes=store.pending_writes,
        journal=store.journal,
        changes=store.changes,
        clock=clock,
        card_pull=CardPull(
            client=client,
            cards=store.cards,
            pending_writes=store.pending_writes,
            delivered_records=store.delivered_records,
            clock=clock,
            zone=cards.zone,
            fields=cards.fields,
            restore=upstream.restore,
        ),
        restore=upstream.restore,
    )


def outbox_sender(
    store: Store,
    *,
    upstream: Upstream,
    cards: SiteCards,
    row_backoff: Backoff | None = None,
    away_backoff: Backoff | None = None,
    card_renamed: Callable[[int, int], None] | None = None,
    held_seconds: float = 0.0,
) -> OutboxSender:
    """Build the sender of the outbox."""
    clock = cards.clock
    events = OutboxEvents(journal=store.journal, clock=clock)
    return OutboxSender(
        upstream=upstream,
        outbox=store.outbox,
        pending_writes=store.pending_writes,
        references=store.references,
        unknown_outcomes=store.unknown_outcomes,
        changes=store.changes,
        cards=cards,
        conflicting_changes=ConflictingChanges(
            change_bases=store.change_bases,
            references=store.references,
            clock=clock,
            cards=cards,
            events=events,
        ),
        events=events,
        clock=clock,
        row_backoff=row_backoff,
        away_backoff=away_backoff,
        card_renamed=card_renamed,
        held_seconds=held_seconds,
    )


def evidence_sender(
    store: Store,
    *,
    upstream: Upstream,
    clock: Clock,
    files: EvidenceOnDisk,
    may_take: float = MAY_TAKE,
    ask_after: float = ASK_AFTER,
) -> EvidenceSender:
    """Build the sender of evidence files. `may_take` and `ask_after` are as for `upstream`."""
    return EvidenceSender(
        client=upstream.client,
        own_records=upstream.own_records,
        evidence=store.evidence,
        outbox=store.outbox,
        unknown_outcomes=store.unknown_outcomes,
        pending_writes=store.pending_writes,
        journal=store.journal,
        changes=store.changes,
        clock=clock,
        files=files,
        may_take=may_take,
        ask_after=ask_after,
    )


def reconcile(store: Store, *, upstream: Upstream, cards: SiteCards, backoff: Backoff | None = None) -> Reconcile:
    """Build the comparison of delivered records with central's."""
    return Reconcile(
        client=upstream.client,
        delivered_records=store.delivered_records,
        notes=store.cards,
        journal=store.journal,
        changes=store.changes,
        clock=cards.clock,
        cards=cards,
        restore=upstream.restore,
        backoff=backoff,
    )
