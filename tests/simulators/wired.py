"""The parts that work with central over a store, each wired by itself as the daemon wires it."""

from __future__ import annotations

from datetime import UTC

from gateway.central import wiring
from gateway.central.pull.pull import DownSync
from gateway.central.push.outbox import OutboxSender
from gateway.central.push.own_records import OwnRecords
from gateway.central.push.parked_rows import ParkedRows
from gateway.central.push.search_attempts import ASK_AFTER, MAY_TAKE
from gateway.central.push.writes import CentralWrites
from gateway.central.runner import Sync


def outbox_sender(
    *, client, store, clock, newest=None, may_take=MAY_TAKE, ask_after=ASK_AFTER, zone=UTC, fields=None, **more
) -> OutboxSender:
    """A sender of the outbox; `more` are its own arguments."""
    upstream = wiring.upstream(client, store=store, clock=clock, newest=newest, may_take=may_take, ask_after=ask_after)
    cards = wiring.site_cards(store, clock=clock, zone=zone, fields=fields)
    return wiring.outbox_sender(store, upstream=upstream, cards=cards, **more)


def central_writes(*, client, store, clock, zone=UTC, fields=None) -> CentralWrites:
    """A writer of records; without a client it stands alone."""
    cards = wiring.site_cards(store, clock=clock, zone=zone, fields=fields)
    if client is None:
        return wiring.central_writes(store, sender=None, cards=cards)
    upstream = wiring.upstream(client, store=store, clock=clock)
    sender = wiring.outbox_sender(store, upstream=upstream, cards=cards)
    return wiring.central_writes(store, sender=sender, cards=cards)


def down_sync(*, client, store, clock, zone=UTC, fields=None) -> DownSync:
    """A pull."""
    upstream = wiring.upstream(client, store=store, clock=clock)
    cards = wiring.site_cards(store, clock=clock, zone=zone, fields=fields)
    return wiring.down_sync(store, upstream=upstream, cards=cards)


def own_records(*, client, store, clock) -> OwnRecords:
    """The check that central's ids still name what this site made."""
    return wiring.upstream(client, store=store, clock=clock).own_records


def parked_rows(*, store, clock, client=None, zone=UTC, fields=None) -> ParkedRows:
    """The actions on parked rows."""
    cards = wiring.site_cards(store, clock=clock, zone=zone, fields=fields)
    return wiring.parked_rows(store, cards=cards, client=client)


def sync_loop(*, store, **more) -> Sync:
    """The loop that pulls and pushes; `more` are its own arguments."""
    return Sync(outbox=store.outbox, backlog=store.backlog, journal=store.journal, changes=store.changes, **more)
