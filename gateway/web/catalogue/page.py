"""The page of the site and what it asks for; the interface has none of these."""

from __future__ import annotations

from gateway.web.catalogue.operation import OPEN, SIGNED_IN, Operation, needs

STATUS_PAGE = Operation("GET", "/status/", OPEN, head=True)
STATUS_SESSION = Operation("GET", "/status/session", OPEN, "user")
STATUS_LIVE = Operation("GET", "/status/live", SIGNED_IN, "snapshot")

# Of this site alone: the interface has no operation for them.
LANE_ORDER = Operation("POST", "/status/lane/order", needs("can_control_devices"), "lane")
LANE_STOP = Operation("POST", "/status/lane/stop", needs("can_control_devices"), "lane")
AREA_COUNT = Operation("POST", "/status/area/count", needs("can_edit_entries"), "area")
PASSBACK_FORGIVE = Operation("POST", "/status/passback/forgive", needs("can_edit_entries"), "passback")

EVIDENCE = Operation(
    "GET", "/status/evidence/{id}", needs("can_view_events") & needs("can_view_camera_events"), "evidence"
)
FOOTAGE_CHAIN = Operation("GET", "/status/chain/{id}", needs("can_view_camera_events"), "leaves")

WEBHOOK_LIST = Operation("POST", "/status/webhook/list", needs("can_edit_settings"), "webhooks", reads=True)
WEBHOOK_ENABLE = Operation("POST", "/status/webhook/enable", needs("can_edit_settings"), "webhook")
WEBHOOK_REPLAY = Operation("POST", "/status/webhook/replay", needs("can_edit_settings"), "webhook")
WEBHOOK_TEST = Operation("POST", "/status/webhook/test", needs("can_edit_settings"), "webhook")

OUTBOX_LIST = Operation("POST", "/status/outbox/list", needs("can_edit_settings"), "waiting", reads=True)
OUTBOX_BOOKS = Operation("POST", "/status/outbox/books", needs("can_edit_settings"), "books", reads=True)
OUTBOX_RETRY = Operation("POST", "/status/outbox/retry", needs("can_edit_settings"), "waiting")
OUTBOX_EDIT = Operation("POST", "/status/outbox/edit", needs("can_edit_settings"), "waiting")
OUTBOX_SETTLE = Operation("POST", "/status/outbox/settle", needs("can_edit_settings"), "waiting")
OUTBOX_DROP = Operation("POST", "/status/outbox/drop", needs("can_edit_settings"), "waiting")
SYNC_STATE = Operation("POST", "/status/sync", needs("can_edit_settings"), "sync", reads=True)
SYNC_REFRESH = Operation("POST", "/status/sync/refresh", needs("can_edit_settings"), "sync")
SYNC_RECONCILE = Operation("POST", "/status/sync/reconcile", needs("can_edit_settings"), "sync")
READER_LIST = Operation("POST", "/status/reader/list", needs("can_edit_settings"), "readers", reads=True)
READER_FORGET = Operation("POST", "/status/reader/forget", needs("can_edit_settings"), "readers")

OPERATIONS: tuple[Operation, ...] = (
    STATUS_PAGE,
    STATUS_SESSION,
    STATUS_LIVE,
    LANE_ORDER,
    LANE_STOP,
    AREA_COUNT,
    PASSBACK_FORGIVE,
    EVIDENCE,
    FOOTAGE_CHAIN,
    WEBHOOK_LIST,
    WEBHOOK_ENABLE,
    WEBHOOK_REPLAY,
    WEBHOOK_TEST,
    OUTBOX_LIST,
    OUTBOX_BOOKS,
    OUTBOX_RETRY,
    OUTBOX_EDIT,
    OUTBOX_SETTLE,
    OUTBOX_DROP,
    SYNC_STATE,
    SYNC_REFRESH,
    SYNC_RECONCILE,
    READER_LIST,
    READER_FORGET,
)

DEMO_PRESENT = Operation("POST", "/status/demo/present", needs("can_control_devices"), "lane")
"""Only in the demo: `{lane_id, card}` presents a card."""
