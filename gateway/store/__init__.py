"""The store: SQLite with one writer and group commit, one file per aggregate. Only this package knows SQL."""

from gateway.store.accounts.accounts import UNREADABLE, StoredAccount
from gateway.store.accounts.api_keys import ApiKey
from gateway.store.accounts.remembered_accounts import RememberedAccount
from gateway.store.accounts.sessions import Session
from gateway.store.cards.cards import CardChanges
from gateway.store.cards.rows import StoredCard
from gateway.store.engine.changes import Changes
from gateway.store.engine.connection import Connect, Connector, Job, SqliteConnection
from gateway.store.events.expiry import ExpiryLimits
from gateway.store.events.journal import Entry, Journal, Recorded
from gateway.store.events.pages import EventFilter, EventPage
from gateway.store.events.parking_entries import EntryFilter, EntryTotals
from gateway.store.events.passages import RecordedPassage
from gateway.store.events.read_cursors import LISTS, Consumer, ListName, ReadCursor
from gateway.store.footage.camera_events import CameraEventFilter
from gateway.store.footage.event_footage import LONGEST_PIN
from gateway.store.footage.evidence import TooMany
from gateway.store.footage.segment_rows import Segment
from gateway.store.footage.segments import Choice
from gateway.store.outbox.backlog_quota import DEFAULT_BYTES, GIGABYTE, Backlog
from gateway.store.outbox.deliveries import OutboxDelivery
from gateway.store.outbox.outbox import Books
from gateway.store.outbox.pending_writes import Arriving, PendingWrite
from gateway.store.outbox.records import KnownRecord, Records
from gateway.store.outbox.references import References, Resolved
from gateway.store.outbox.rows import OutboxRow
from gateway.store.outbox.undecided import WaitReason
from gateway.store.store import RecordTimes, Store
from gateway.store.webhooks import Message, Webhook, WebhookBooks

__all__ = [
    "DEFAULT_BYTES",
    "GIGABYTE",
    "LISTS",
    "LONGEST_PIN",
    "UNREADABLE",
    "ApiKey",
    "Arriving",
    "Backlog",
    "Books",
    "CameraEventFilter",
    "CardChanges",
    "Changes",
    "Choice",
    "Connect",
    "Connector",
    "Consumer",
    "Entry",
    "EntryFilter",
    "EntryTotals",
    "EventFilter",
    "EventPage",
    "ExpiryLimits",
    "Job",
    "Journal",
    "KnownRecord",
    "ListName",
    "Message",
    "OutboxDelivery",
    "OutboxRow",
    "PendingWrite",
    "ReadCursor",
    "RecordTimes",
    "Recorded",
    "RecordedPassage",
    "Records",
    "References",
    "RememberedAccount",
    "Resolved",
    "Segment",
    "Session",
    "SqliteConnection",
    "Store",
    "StoredAccount",
    "StoredCard",
    "TooMany",
    "WaitReason",
    "Webhook",
    "WebhookBooks",
]
