"""The parts that work with central over a store, each wired by itself as the daemon wires it."""

from __future__ import annotations

from datetime import UTC

from gateway.central.field_map import CardFieldMap
from gateway.central.pull.pull import DownSync
from gateway.central.push.evidence import EvidenceSender
from gateway.central.push.outbox import OutboxSender
from gateway.central.push.parked_rows import ParkedRows
from gateway.central.push.upstream import Upstream, upstream
from gateway.central.push.writes import CentralWrites
from gateway.central.runner import Sync, SyncPace
from gateway.central.site_cards import SiteCards


def site_cards(*, store, clock, zone=UTC, fields=None) -> SiteCards:
    """The site's cards."""
    return SiteCards(store=store, clock=clock, zone=zone, fields=fields or CardFieldMap())


def central_of(*, client, store, clock, zone=UTC, fields=None, **more) -> Upstream:
    """The site's central; `more` as `upstream` takes it."""
    return upstream(client, site_cards(store=store, clock=clock, zone=zone, fields=fields), **more)


def outbox_sender(
    *, row_backoff=None, away_backoff=None, card_renamed=None, held_seconds=0.0, **of_central
) -> OutboxSender:
    """A sender of the outbox."""
    return OutboxSender(
        central_of(**of_central),
        row_backoff=row_backoff,
        away_backoff=away_backoff,
        card_renamed=card_renamed,
        held_seconds=held_seconds,
    )


def evidence_sender(*, files, backoff=None, spread_seconds=10.0, **of_central) -> EvidenceSender:
    """A sender of evidence."""
    return EvidenceSender(central_of(**of_central), files=files, backoff=backoff, spread_seconds=spread_seconds)


def central_writes(*, client, **of_cards) -> CentralWrites:
    """A writer of records; without a client it stands alone."""
    sender = None if client is None else outbox_sender(client=client, **of_cards)
    return CentralWrites(site_cards(**of_cards), sender=sender)


def down_sync(**of_central) -> DownSync:
    """A pull."""
    return DownSync(central_of(**of_central))


def parked_rows(*, client=None, **of_cards) -> ParkedRows:
    """The actions on parked rows."""
    return ParkedRows(site_cards(**of_cards), client=client)


def sync_loop(*, client, store, clock, **more) -> Sync:
    """The loop that pulls and pushes; `more` are its own arguments, and those of its pace."""
    pace = {name: more.pop(name) for name in SyncPace.__dataclass_fields__ if name in more}
    return Sync(central_of(client=client, store=store, clock=clock), pace=SyncPace(**pace), **more)
