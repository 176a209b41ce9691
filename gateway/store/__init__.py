"""The store: SQLite with one writer and group commit, one file per aggregate. Only this package knows SQL."""

from gateway.store.cards import CardChanges, CardRecord
from gateway.store.changes import Changes
from gateway.store.event_pages import EventFilter, EventPage
from gateway.store.held import Arriving, Held
from gateway.store.journal import Entry, Journal, Recorded
from gateway.store.outbox import Books, OutboxRow
from gateway.store.parking_entries import EntryFilter, EntryTotals
from gateway.store.passages import RecordedPassage
from gateway.store.records import KnownRecord, Records
from gateway.store.segments import Choice, Segment
from gateway.store.sessions import Session
from gateway.store.store import Store

__all__ = [
    "Arriving",
    "Books",
    "CardChanges",
    "CardRecord",
    "Changes",
    "Choice",
    "Entry",
    "EntryFilter",
    "EntryTotals",
    "EventFilter",
    "EventPage",
    "Held",
    "Journal",
    "KnownRecord",
    "OutboxRow",
    "Recorded",
    "RecordedPassage",
    "Records",
    "Segment",
    "Session",
    "Store",
]
