"""Events of the site, and their numbers in the interface.

The interface leaves the values of `type`, `category` and `subcategory` open; this file is their catalogue. `type` is
the kind, `category` the area, `subcategory` the severity. A number is never reused for another meaning.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType

from gateway.texts import Text, Words, text

Scalar = str | int | float | bool | None
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Category(IntEnum):
    """The area of an event."""

    LANE = 1
    DEVICE = 2
    CAMERA = 3
    SYSTEM = 4
    SYNC = 5
    SECURITY = 6


class Severity(IntEnum):
    """Severity of an event; the interface's `subcategory`."""

    INFO = 0
    NOTICE = 1
    WARNING = 2
    ALARM = 3


class EventKind(IntEnum):
    """Kinds of events; the value is the interface's `type`."""

    VEHICLE_ARRIVED = 101
    ACCESS_GRANTED = 102
    ACCESS_DENIED = 103
    GATE_OPENED = 104
    GATE_CLOSED = 105
    VEHICLE_PASSED = 106
    VEHICLE_BACKED_OUT = 107
    OPENING_TIMED_OUT = 108
    UNAUTHORISED_PASSAGE = 109
    CLOSING_HELD = 110
    CLOSING_TIMED_OUT = 111
    CARD_IGNORED = 112
    GATE_REOPENED = 113
    PLATE_IGNORED = 114
    READING_UNUSABLE = 115
    CARD_TESTED = 116
    COMMAND_RECORDED = 120
    COMMAND_SENT = 121
    COMMAND_ACKNOWLEDGED = 122
    COMMAND_DONE = 123
    COMMAND_REFUSED = 124
    COMMAND_UNKNOWN = 125
    VEHICLE_TAILGATED = 130
    WRONG_WAY = 131
    FORCED_OPEN = 132
    HELD_OPEN = 133
    VEHICLE_STUCK = 134
    INPUT_STUCK = 135
    INPUT_CHATTERS = 136
    KEY_SWITCH_ON = 137
    FIRE_INPUT = 138
    TROUBLE_ENDED = 139
    ORDER_BEGAN = 140
    ORDER_ENDED = 141
    HOLD_FAILED = 142
    OPENED_LATE = 143
    SCHEDULE_DOUBTED = 144
    STOP_BEGAN = 145
    STOP_ENDED = 146
    POSITION_UNKNOWN = 147
    LANE_COMMISSIONED = 148
    DEVICE_TAMPERED = 170
    TAMPER_ENDED = 171
    COUNT_CORRECTED = 180
    PASSBACK_FORGIVEN = 181
    PASSBACK_NOTED = 182
    DURESS_SIGNALLED = 183
    PIN_LOCKED = 184
    SECOND_AWAITED = 185
    GRANT_GIVEN = 186
    GRANT_REVOKED = 187
    PRESENCE_CONTRADICTED = 188
    AREA_OVERFULL = 189
    DEVICE_CONNECTED = 201
    DEVICE_LOST = 202
    CAMERA_RECORDING = 301
    CAMERA_LOST = 302
    FOOTAGE_GAP = 303
    WORKER_LOST = 304
    FOOTAGE_DELETED = 305
    MOMENT_MARKED = 306
    CAMERA_EVENT_CHANGED = 307
    CAMERA_EVENT_DELETED = 308
    INCIDENT_MARKED = 309
    EVIDENCE_ADDED = 310
    EVIDENCE_LINKED = 311
    EVIDENCE_LINK_REVOKED = 312
    EVIDENCE_OPENED = 313
    EVIDENCE_MISSING = 314
    EVIDENCE_FOUND = 315
    GATEWAY_STARTED = 401
    GATEWAY_STOPPED = 402
    STORE_DAMAGED = 403
    STORAGE_LOW = 404
    POWER_LOST = 405
    RECORDS_WAITED = 406
    UNREAD_DROPPED = 407
    CONSUMER_FORGOTTEN = 408  # of earlier releases, and still in stored lists
    PROBLEM_BEGAN = 421
    PROBLEM_ENDED = 422
    PROBLEM_ACKNOWLEDGED = 423
    SITE_CHANGED = 431
    SITE_CHANGE_CONFIRMED = 432
    SITE_CHANGE_RETURNED = 433
    SITE_CHANGE_REFUSED = 434
    CENTRAL_REACHED = 501
    CENTRAL_LOST = 502
    CARDS_CHANGED = 503
    SWEEP_SUSPENDED = 504
    RECORD_PARKED = 505
    WRITES_REFUSED = 506
    RECORD_RELEASED = 507
    RECORD_DROPPED = 508
    CHANGED_ON_BOTH_SIDES = 509
    ID_GIVEN_TWICE = 510
    CENTRAL_COMMAND_LATE = 511
    CLOCKS_DIFFER = 512
    CLOCKS_AGREE = 513
    NOT_PERMITTED = 514
    CENTRAL_SET_BACK = 515
    CENTRAL_RECONCILED = 516
    BACKLOG_NEARLY_FULL = 517
    WEBHOOK_DISABLED = 521
    WEBHOOK_BACKLOG_FULL = 522
    WEBHOOK_ENABLED = 523
    SIGN_IN_REFUSED = 601
    ACCOUNT_CHANGED = 610

    @property
    def label(self) -> str:
        """The kind's name for people, in English."""
        return str(self.words)

    @property
    def words(self) -> Text:
        """The kind's name for people."""
        return text(f"kind.{self.name.lower()}")

    @property
    def category(self) -> Category:
        """The kind's area."""
        return _AREAS[self][0]

    @property
    def severity(self) -> Severity:
        """The kind's severity."""
        return _AREAS[self][1]


_AREAS: Mapping[EventKind, tuple[Category, Severity]] = MappingProxyType(
    {
        EventKind.VEHICLE_ARRIVED: (Category.LANE, Severity.INFO),
        EventKind.ACCESS_GRANTED: (Category.LANE, Severity.INFO),
        EventKind.ACCESS_DENIED: (Category.LANE, Severity.NOTICE),
        EventKind.GATE_OPENED: (Category.LANE, Severity.INFO),
        EventKind.GATE_CLOSED: (Category.LANE, Severity.INFO),
        EventKind.VEHICLE_PASSED: (Category.LANE, Severity.INFO),
        EventKind.VEHICLE_BACKED_OUT: (Category.LANE, Severity.NOTICE),
        EventKind.OPENING_TIMED_OUT: (Category.LANE, Severity.ALARM),
        EventKind.UNAUTHORISED_PASSAGE: (Category.LANE, Severity.WARNING),
        EventKind.CLOSING_HELD: (Category.LANE, Severity.NOTICE),
        EventKind.CLOSING_TIMED_OUT: (Category.LANE, Severity.ALARM),
        EventKind.CARD_IGNORED: (Category.LANE, Severity.NOTICE),
        EventKind.PLATE_IGNORED: (Category.LANE, Severity.INFO),
        EventKind.READING_UNUSABLE: (Category.LANE, Severity.WARNING),
        EventKind.CARD_TESTED: (Category.LANE, Severity.INFO),
        EventKind.GATE_REOPENED: (Category.LANE, Severity.WARNING),
        EventKind.COMMAND_RECORDED: (Category.LANE, Severity.INFO),
        EventKind.COMMAND_SENT: (Category.LANE, Severity.INFO),
        EventKind.COMMAND_ACKNOWLEDGED: (Category.LANE, Severity.INFO),
        EventKind.COMMAND_DONE: (Category.LANE, Severity.INFO),
        EventKind.COMMAND_REFUSED: (Category.LANE, Severity.WARNING),
        EventKind.COMMAND_UNKNOWN: (Category.LANE, Severity.WARNING),
        EventKind.VEHICLE_TAILGATED: (Category.LANE, Severity.ALARM),
        EventKind.WRONG_WAY: (Category.LANE, Severity.ALARM),
        EventKind.FORCED_OPEN: (Category.LANE, Severity.ALARM),
        EventKind.HELD_OPEN: (Category.LANE, Severity.WARNING),
        EventKind.VEHICLE_STUCK: (Category.LANE, Severity.WARNING),
        EventKind.INPUT_STUCK: (Category.LANE, Severity.WARNING),
        EventKind.INPUT_CHATTERS: (Category.LANE, Severity.WARNING),
        EventKind.KEY_SWITCH_ON: (Category.LANE, Severity.NOTICE),
        EventKind.FIRE_INPUT: (Category.LANE, Severity.ALARM),
        EventKind.TROUBLE_ENDED: (Category.LANE, Severity.INFO),
        EventKind.ORDER_BEGAN: (Category.LANE, Severity.NOTICE),
        EventKind.ORDER_ENDED: (Category.LANE, Severity.NOTICE),
        EventKind.HOLD_FAILED: (Category.LANE, Severity.ALARM),
        EventKind.OPENED_LATE: (Category.LANE, Severity.WARNING),
        EventKind.SCHEDULE_DOUBTED: (Category.LANE, Severity.WARNING),
        EventKind.STOP_BEGAN: (Category.LANE, Severity.NOTICE),
        EventKind.STOP_ENDED: (Category.LANE, Severity.INFO),
        EventKind.POSITION_UNKNOWN: (Category.LANE, Severity.ALARM),
        EventKind.LANE_COMMISSIONED: (Category.LANE, Severity.NOTICE),
        EventKind.DEVICE_TAMPERED: (Category.SECURITY, Severity.ALARM),
        EventKind.TAMPER_ENDED: (Category.SECURITY, Severity.INFO),
        EventKind.COUNT_CORRECTED: (Category.LANE, Severity.NOTICE),
        EventKind.PASSBACK_FORGIVEN: (Category.LANE, Severity.NOTICE),
        EventKind.PASSBACK_NOTED: (Category.LANE, Severity.WARNING),
        EventKind.DURESS_SIGNALLED: (Category.SECURITY, Severity.ALARM),
        EventKind.PIN_LOCKED: (Category.SECURITY, Severity.ALARM),
        EventKind.SECOND_AWAITED: (Category.LANE, Severity.INFO),
        EventKind.GRANT_GIVEN: (Category.LANE, Severity.NOTICE),
        EventKind.GRANT_REVOKED: (Category.LANE, Severity.NOTICE),
        EventKind.PRESENCE_CONTRADICTED: (Category.LANE, Severity.WARNING),
        EventKind.AREA_OVERFULL: (Category.LANE, Severity.WARNING),
        EventKind.DEVICE_CONNECTED: (Category.DEVICE, Severity.INFO),
        EventKind.DEVICE_LOST: (Category.DEVICE, Severity.ALARM),
        EventKind.CAMERA_RECORDING: (Category.CAMERA, Severity.INFO),
        EventKind.CAMERA_LOST: (Category.CAMERA, Severity.ALARM),
        EventKind.FOOTAGE_GAP: (Category.CAMERA, Severity.WARNING),
        EventKind.WORKER_LOST: (Category.CAMERA, Severity.ALARM),
        EventKind.FOOTAGE_DELETED: (Category.CAMERA, Severity.INFO),
        EventKind.MOMENT_MARKED: (Category.CAMERA, Severity.NOTICE),
        EventKind.INCIDENT_MARKED: (Category.CAMERA, Severity.WARNING),
        EventKind.CAMERA_EVENT_CHANGED: (Category.CAMERA, Severity.NOTICE),
        EventKind.CAMERA_EVENT_DELETED: (Category.CAMERA, Severity.NOTICE),
        EventKind.EVIDENCE_ADDED: (Category.CAMERA, Severity.NOTICE),
        EventKind.EVIDENCE_LINKED: (Category.SECURITY, Severity.NOTICE),
        EventKind.EVIDENCE_LINK_REVOKED: (Category.SECURITY, Severity.NOTICE),
        EventKind.EVIDENCE_OPENED: (Category.SECURITY, Severity.NOTICE),
        EventKind.EVIDENCE_MISSING: (Category.CAMERA, Severity.ALARM),
        EventKind.EVIDENCE_FOUND: (Category.CAMERA, Severity.NOTICE),
        EventKind.GATEWAY_STARTED: (Category.SYSTEM, Severity.INFO),
        EventKind.GATEWAY_STOPPED: (Category.SYSTEM, Severity.INFO),
        EventKind.STORE_DAMAGED: (Category.SYSTEM, Severity.ALARM),
        EventKind.STORAGE_LOW: (Category.SYSTEM, Severity.ALARM),
        EventKind.RECORDS_WAITED: (Category.SYSTEM, Severity.ALARM),
        EventKind.UNREAD_DROPPED: (Category.SYSTEM, Severity.WARNING),
        EventKind.CONSUMER_FORGOTTEN: (Category.SYSTEM, Severity.NOTICE),
        EventKind.POWER_LOST: (Category.SYSTEM, Severity.WARNING),
        EventKind.PROBLEM_BEGAN: (Category.SYSTEM, Severity.WARNING),
        EventKind.PROBLEM_ENDED: (Category.SYSTEM, Severity.INFO),
        EventKind.PROBLEM_ACKNOWLEDGED: (Category.SYSTEM, Severity.NOTICE),
        EventKind.SITE_CHANGED: (Category.SYSTEM, Severity.NOTICE),
        EventKind.SITE_CHANGE_CONFIRMED: (Category.SYSTEM, Severity.NOTICE),
        EventKind.SITE_CHANGE_RETURNED: (Category.SYSTEM, Severity.WARNING),
        EventKind.SITE_CHANGE_REFUSED: (Category.SYSTEM, Severity.WARNING),
        EventKind.CENTRAL_REACHED: (Category.SYNC, Severity.INFO),
        EventKind.CENTRAL_LOST: (Category.SYNC, Severity.WARNING),
        EventKind.CARDS_CHANGED: (Category.SYNC, Severity.INFO),
        EventKind.SWEEP_SUSPENDED: (Category.SYNC, Severity.ALARM),
        EventKind.RECORD_PARKED: (Category.SYNC, Severity.WARNING),
        EventKind.RECORD_RELEASED: (Category.SYNC, Severity.NOTICE),
        EventKind.RECORD_DROPPED: (Category.SYNC, Severity.WARNING),
        EventKind.WRITES_REFUSED: (Category.SYNC, Severity.WARNING),
        EventKind.CHANGED_ON_BOTH_SIDES: (Category.SYNC, Severity.NOTICE),
        EventKind.ID_GIVEN_TWICE: (Category.SYNC, Severity.ALARM),
        EventKind.CENTRAL_COMMAND_LATE: (Category.SYNC, Severity.WARNING),
        EventKind.CLOCKS_DIFFER: (Category.SYNC, Severity.ALARM),
        EventKind.CLOCKS_AGREE: (Category.SYNC, Severity.INFO),
        EventKind.NOT_PERMITTED: (Category.SYNC, Severity.WARNING),
        EventKind.CENTRAL_SET_BACK: (Category.SYNC, Severity.ALARM),
        EventKind.CENTRAL_RECONCILED: (Category.SYNC, Severity.NOTICE),
        EventKind.BACKLOG_NEARLY_FULL: (Category.SYNC, Severity.WARNING),
        EventKind.WEBHOOK_DISABLED: (Category.SYNC, Severity.WARNING),
        EventKind.WEBHOOK_BACKLOG_FULL: (Category.SYNC, Severity.WARNING),
        EventKind.WEBHOOK_ENABLED: (Category.SYNC, Severity.NOTICE),
        EventKind.SIGN_IN_REFUSED: (Category.SECURITY, Severity.NOTICE),
        EventKind.ACCOUNT_CHANGED: (Category.SECURITY, Severity.NOTICE),
    }
)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, before it has an id.

    Attributes:
        kind: what happened.
        date_at: when it happened, in wall micros UTC.
        clock_trusted: whether the clock was known to be right then.
        text: one sentence for people.
        device_id: the device or camera concerned, 0 for none.
        lane_id: the lane concerned, "" for none.
        data: further facts by name, without nesting; stored as JSON text.
    """

    kind: EventKind
    date_at: int
    clock_trusted: bool
    text: Words
    device_id: int = 0
    lane_id: str = ""
    data: Mapping[str, Scalar] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The kind's name for people."""
        return self.kind.label

    @property
    def description(self) -> str:
        """The text's English sentence."""
        return str(self.text)

    @property
    def category(self) -> Category:
        """The kind's area."""
        return self.kind.category

    @property
    def severity(self) -> Severity:
        """The kind's severity."""
        return self.kind.severity


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """An event on disk, with the interface's fields; `data` is JSON text.

    `recorded_at` is when it was recorded, in wall micros, if that was well after it happened: then it does not show the
    present state. None if it was recorded at once. `said` is the key and the arguments of the description as JSON text;
    None for words of others and for events of earlier releases.
    """

    id: int
    device_id: int
    type: int
    category: int
    subcategory: int
    name: str
    description: str
    date_at: int
    clock_trusted: bool
    lane_id: str
    data: str
    recorded_at: int | None = None
    said: str | None = None

    @property
    def trace(self) -> tuple[str, ...]:
        """The rules of an access decision, in words; empty for other events."""
        if '"trace"' not in self.data:
            return ()
        trace = json.loads(self.data).get("trace")
        return tuple(trace.split("; ")) if isinstance(trace, str) else ()


def without_formula(text: str) -> str:
    """Return a text of an event for CSV, with an apostrophe before what a spreadsheet would take for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text
