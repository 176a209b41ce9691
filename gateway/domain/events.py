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
        """The kind's name for people."""
        return _NAMES[self][0]

    @property
    def category(self) -> Category:
        """The kind's area."""
        return _NAMES[self][1]

    @property
    def severity(self) -> Severity:
        """The kind's severity."""
        return _NAMES[self][2]


_NAMES: Mapping[EventKind, tuple[str, Category, Severity]] = MappingProxyType(
    {
        EventKind.VEHICLE_ARRIVED: ("Vehicle arrived", Category.LANE, Severity.INFO),
        EventKind.ACCESS_GRANTED: ("Access granted", Category.LANE, Severity.INFO),
        EventKind.ACCESS_DENIED: ("Access denied", Category.LANE, Severity.NOTICE),
        EventKind.GATE_OPENED: ("Gate opened", Category.LANE, Severity.INFO),
        EventKind.GATE_CLOSED: ("Gate closed", Category.LANE, Severity.INFO),
        EventKind.VEHICLE_PASSED: ("Vehicle passed", Category.LANE, Severity.INFO),
        EventKind.VEHICLE_BACKED_OUT: ("Vehicle backed out", Category.LANE, Severity.NOTICE),
        EventKind.OPENING_TIMED_OUT: ("Gate did not open", Category.LANE, Severity.ALARM),
        EventKind.UNAUTHORISED_PASSAGE: ("Passage without a decision", Category.LANE, Severity.WARNING),
        EventKind.CLOSING_HELD: ("Closing held by a safety point", Category.LANE, Severity.NOTICE),
        EventKind.CLOSING_TIMED_OUT: ("Gate did not close", Category.LANE, Severity.ALARM),
        EventKind.CARD_IGNORED: ("Card ignored", Category.LANE, Severity.NOTICE),
        EventKind.PLATE_IGNORED: ("Plate ignored", Category.LANE, Severity.INFO),
        EventKind.READING_UNUSABLE: ("Card or plate not usable", Category.LANE, Severity.WARNING),
        EventKind.CARD_TESTED: ("Card tested", Category.LANE, Severity.INFO),
        EventKind.GATE_REOPENED: ("Gate opened again while closing", Category.LANE, Severity.WARNING),
        EventKind.COMMAND_RECORDED: ("Command recorded", Category.LANE, Severity.INFO),
        EventKind.COMMAND_SENT: ("Command sent", Category.LANE, Severity.INFO),
        EventKind.COMMAND_ACKNOWLEDGED: ("Command acknowledged", Category.LANE, Severity.INFO),
        EventKind.COMMAND_DONE: ("Command done", Category.LANE, Severity.INFO),
        EventKind.COMMAND_REFUSED: ("Command refused", Category.LANE, Severity.WARNING),
        EventKind.COMMAND_UNKNOWN: ("Command outcome unknown", Category.LANE, Severity.WARNING),
        EventKind.VEHICLE_TAILGATED: ("Vehicle tailgated", Category.LANE, Severity.ALARM),
        EventKind.WRONG_WAY: ("Vehicle went the wrong way", Category.LANE, Severity.ALARM),
        EventKind.FORCED_OPEN: ("Gate forced open", Category.LANE, Severity.ALARM),
        EventKind.HELD_OPEN: ("Gate open too long", Category.LANE, Severity.WARNING),
        EventKind.VEHICLE_STUCK: ("Vehicle stuck under the gate", Category.LANE, Severity.WARNING),
        EventKind.INPUT_STUCK: ("Input stuck", Category.LANE, Severity.WARNING),
        EventKind.INPUT_CHATTERS: ("Input chatters", Category.LANE, Severity.WARNING),
        EventKind.KEY_SWITCH_ON: ("Key switch in use", Category.LANE, Severity.NOTICE),
        EventKind.FIRE_INPUT: ("Fire input active", Category.LANE, Severity.ALARM),
        EventKind.TROUBLE_ENDED: ("Trouble ended", Category.LANE, Severity.INFO),
        EventKind.ORDER_BEGAN: ("Standing order began", Category.LANE, Severity.NOTICE),
        EventKind.ORDER_ENDED: ("Standing order ended", Category.LANE, Severity.NOTICE),
        EventKind.HOLD_FAILED: ("Gate could not be held open", Category.LANE, Severity.ALARM),
        EventKind.OPENED_LATE: ("Gate opened late", Category.LANE, Severity.WARNING),
        EventKind.SCHEDULE_DOUBTED: ("Schedule uncertain", Category.LANE, Severity.WARNING),
        EventKind.STOP_BEGAN: ("Gate stopped", Category.LANE, Severity.NOTICE),
        EventKind.STOP_ENDED: ("Gate no longer stopped", Category.LANE, Severity.INFO),
        EventKind.POSITION_UNKNOWN: ("Gate position unknown", Category.LANE, Severity.ALARM),
        EventKind.LANE_COMMISSIONED: ("Lane commissioned", Category.LANE, Severity.NOTICE),
        EventKind.DEVICE_TAMPERED: ("Device tampered with", Category.SECURITY, Severity.ALARM),
        EventKind.TAMPER_ENDED: ("Device housing closed", Category.SECURITY, Severity.INFO),
        EventKind.COUNT_CORRECTED: ("Count corrected", Category.LANE, Severity.NOTICE),
        EventKind.PASSBACK_FORGIVEN: ("Anti-passback forgiven", Category.LANE, Severity.NOTICE),
        EventKind.PASSBACK_NOTED: ("Card used twice", Category.LANE, Severity.WARNING),
        EventKind.DURESS_SIGNALLED: ("Duress", Category.SECURITY, Severity.ALARM),
        EventKind.PIN_LOCKED: ("Wrong PINs", Category.SECURITY, Severity.ALARM),
        EventKind.SECOND_AWAITED: ("Waiting for a second credential", Category.LANE, Severity.INFO),
        EventKind.GRANT_GIVEN: ("Access grant given", Category.LANE, Severity.NOTICE),
        EventKind.GRANT_REVOKED: ("Access grant revoked", Category.LANE, Severity.NOTICE),
        EventKind.PRESENCE_CONTRADICTED: ("Passages contradict each other", Category.LANE, Severity.WARNING),
        EventKind.AREA_OVERFULL: ("Area over its limit", Category.LANE, Severity.WARNING),
        EventKind.DEVICE_CONNECTED: ("Device connected", Category.DEVICE, Severity.INFO),
        EventKind.DEVICE_LOST: ("Device lost", Category.DEVICE, Severity.ALARM),
        EventKind.CAMERA_RECORDING: ("Camera recording", Category.CAMERA, Severity.INFO),
        EventKind.CAMERA_LOST: ("Camera lost", Category.CAMERA, Severity.ALARM),
        EventKind.FOOTAGE_GAP: ("Gap in footage", Category.CAMERA, Severity.WARNING),
        EventKind.WORKER_LOST: ("Camera worker lost", Category.CAMERA, Severity.ALARM),
        EventKind.FOOTAGE_DELETED: ("Footage deleted", Category.CAMERA, Severity.INFO),
        EventKind.MOMENT_MARKED: ("Moment marked", Category.CAMERA, Severity.NOTICE),
        EventKind.INCIDENT_MARKED: ("Incident marked", Category.CAMERA, Severity.WARNING),
        EventKind.CAMERA_EVENT_CHANGED: ("Camera event changed", Category.CAMERA, Severity.NOTICE),
        EventKind.CAMERA_EVENT_DELETED: ("Camera event deleted", Category.CAMERA, Severity.NOTICE),
        EventKind.EVIDENCE_ADDED: ("Evidence added", Category.CAMERA, Severity.NOTICE),
        EventKind.EVIDENCE_LINKED: ("Evidence link made", Category.SECURITY, Severity.NOTICE),
        EventKind.EVIDENCE_LINK_REVOKED: ("Evidence link revoked", Category.SECURITY, Severity.NOTICE),
        EventKind.EVIDENCE_OPENED: ("Evidence opened", Category.SECURITY, Severity.NOTICE),
        EventKind.EVIDENCE_MISSING: ("Evidence missing", Category.CAMERA, Severity.ALARM),
        EventKind.EVIDENCE_FOUND: ("Evidence is back", Category.CAMERA, Severity.NOTICE),
        EventKind.GATEWAY_STARTED: ("Gateway started", Category.SYSTEM, Severity.INFO),
        EventKind.GATEWAY_STOPPED: ("Gateway stopped", Category.SYSTEM, Severity.INFO),
        EventKind.STORE_DAMAGED: ("Store damaged", Category.SYSTEM, Severity.ALARM),
        EventKind.STORAGE_LOW: ("Storage low", Category.SYSTEM, Severity.ALARM),
        EventKind.RECORDS_WAITED: ("Nothing could be recorded", Category.SYSTEM, Severity.ALARM),
        EventKind.UNREAD_DROPPED: ("Dropped before it was read", Category.SYSTEM, Severity.WARNING),
        EventKind.CONSUMER_FORGOTTEN: ("Program no longer waited for", Category.SYSTEM, Severity.NOTICE),
        EventKind.POWER_LOST: ("Stopped without warning", Category.SYSTEM, Severity.WARNING),
        EventKind.PROBLEM_BEGAN: ("Problem began", Category.SYSTEM, Severity.WARNING),
        EventKind.PROBLEM_ENDED: ("Problem ended", Category.SYSTEM, Severity.INFO),
        EventKind.PROBLEM_ACKNOWLEDGED: ("Problem acknowledged", Category.SYSTEM, Severity.NOTICE),
        EventKind.SITE_CHANGED: ("Site file changed", Category.SYSTEM, Severity.NOTICE),
        EventKind.SITE_CHANGE_CONFIRMED: ("Change of the site file confirmed", Category.SYSTEM, Severity.NOTICE),
        EventKind.SITE_CHANGE_RETURNED: ("Change of the site file taken back", Category.SYSTEM, Severity.WARNING),
        EventKind.SITE_CHANGE_REFUSED: ("Change of the site file refused", Category.SYSTEM, Severity.WARNING),
        EventKind.CENTRAL_REACHED: ("Central reached", Category.SYNC, Severity.INFO),
        EventKind.CENTRAL_LOST: ("Central lost", Category.SYNC, Severity.WARNING),
        EventKind.CARDS_CHANGED: ("Access cards changed", Category.SYNC, Severity.INFO),
        EventKind.SWEEP_SUSPENDED: ("Central's list not trusted", Category.SYNC, Severity.ALARM),
        EventKind.RECORD_PARKED: ("Record refused by central", Category.SYNC, Severity.WARNING),
        EventKind.RECORD_RELEASED: ("Refused record sent again", Category.SYNC, Severity.NOTICE),
        EventKind.RECORD_DROPPED: ("Refused record dropped", Category.SYNC, Severity.WARNING),
        EventKind.WRITES_REFUSED: ("Too many changes waiting", Category.SYNC, Severity.WARNING),
        EventKind.CHANGED_ON_BOTH_SIDES: ("Record changed on both sides", Category.SYNC, Severity.NOTICE),
        EventKind.ID_GIVEN_TWICE: ("Central gave an id twice", Category.SYNC, Severity.ALARM),
        EventKind.CENTRAL_COMMAND_LATE: ("Central's command not carried out", Category.SYNC, Severity.WARNING),
        EventKind.CLOCKS_DIFFER: ("Central's clock differs", Category.SYNC, Severity.ALARM),
        EventKind.CLOCKS_AGREE: ("Central's clock agrees again", Category.SYNC, Severity.INFO),
        EventKind.NOT_PERMITTED: ("Not permitted at central", Category.SYNC, Severity.WARNING),
        EventKind.CENTRAL_SET_BACK: ("Central was set back", Category.SYNC, Severity.ALARM),
        EventKind.CENTRAL_RECONCILED: ("Records sent to central again", Category.SYNC, Severity.NOTICE),
        EventKind.BACKLOG_NEARLY_FULL: ("Backlog for central nearly full", Category.SYNC, Severity.WARNING),
        EventKind.WEBHOOK_DISABLED: ("Webhook disabled", Category.SYNC, Severity.WARNING),
        EventKind.WEBHOOK_BACKLOG_FULL: ("Webhook backlog full", Category.SYNC, Severity.WARNING),
        EventKind.WEBHOOK_ENABLED: ("Webhook enabled", Category.SYNC, Severity.NOTICE),
        EventKind.SIGN_IN_REFUSED: ("Sign-in refused", Category.SECURITY, Severity.NOTICE),
        EventKind.ACCOUNT_CHANGED: ("Accounts changed", Category.SECURITY, Severity.NOTICE),
    }
)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, before it has an id.

    Attributes:
        kind: what happened.
        date_at: when it happened, in wall micros UTC.
        clock_trusted: whether the clock was known to be right then.
        description: one sentence for people.
        device_id: the device or camera concerned, 0 for none.
        lane_id: the lane concerned, "" for none.
        data: further facts by name, without nesting; stored as JSON text.
    """

    kind: EventKind
    date_at: int
    clock_trusted: bool
    description: str
    device_id: int = 0
    lane_id: str = ""
    data: Mapping[str, Scalar] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The kind's name for people."""
        return self.kind.label

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
    present state. None if it was recorded at once.
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
