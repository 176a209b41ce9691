"""The store: SQLite with one writer and group commit, one file per aggregate. Only this package knows SQL."""

from gateway.store.accounts import StoredAccount
from gateway.store.api_keys import ApiKey
from gateway.store.backlog_quota import DEFAULT_BYTES, GIGABYTE, Backlog
from gateway.store.camera_events import CameraEventFilter
from gateway.store.card_rows import CardRecord
from gateway.store.cards import CardChanges
from gateway.store.changes import Changes
from gateway.store.deliveries import Delivery
from gateway.store.event_footage import LONGEST_PIN
from gateway.store.event_pages import EventFilter, EventPage
from gateway.store.exhibits import TooMany
from gateway.store.held import Arriving, Held
from gateway.store.journal import Entry, Journal, Recorded
from gateway.store.keeping import KeepLimits
from gateway.store.outbox import Books
from gateway.store.outbox_rows import OutboxRow
from gateway.store.parking_entries import EntryFilter, EntryTotals
from gateway.store.passages import RecordedPassage
from gateway.store.read_marks import LISTS, ListName, Reader, ReadMark
from gateway.store.records import KnownRecord, Records
from gateway.store.references import References, Resolved
from gateway.store.refused import Reason
from gateway.store.remembered import RememberedAccount
from gateway.store.second_factor_seal import UNREADABLE
from gateway.store.segment_rows import Segment
from gateway.store.segments import Choice
from gateway.store.sessions import Session
from gateway.store.store import Store
from gateway.store.webhook_queue import Message
from gateway.store.webhooks import Webhook, WebhookBooks

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
    "CardRecord",
    "Changes",
    "Choice",
    "Delivery",
    "Entry",
    "EntryFilter",
    "EntryTotals",
    "EventFilter",
    "EventPage",
    "Held",
    "Journal",
    "KeepLimits",
    "KnownRecord",
    "ListName",
    "Message",
    "OutboxRow",
    "ReadMark",
    "Reader",
    "Reason",
    "Recorded",
    "RecordedPassage",
    "Records",
    "References",
    "RememberedAccount",
    "Resolved",
    "Segment",
    "Session",
    "Store",
    "StoredAccount",
    "TooMany",
    "Webhook",
    "WebhookBooks",
]
