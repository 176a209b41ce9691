"""The one catalogue of operations: method, path, who may call, and the resource that the error envelope names.

Handlers are bound to it where the application is built; an operation without a handler, or with two, does not start.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

EVERYTHING = "*"
"""The permission of an account that may do all."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Who may call: of every group of permissions, at least one. `session`: whether a session is needed at all."""

    session: bool = True
    groups: tuple[tuple[str, ...], ...] = ()

    def __and__(self, other: Rule) -> Rule:
        """Both rules must hold."""
        return Rule(session=self.session or other.session, groups=self.groups + other.groups)

    def missing(self, permissions: AbstractSet[str]) -> tuple[str, ...]:
        """The first group of which `permissions` holds none, or an empty one when the rule is met."""
        if EVERYTHING in permissions:
            return ()
        return next((group for group in self.groups if permissions.isdisjoint(group)), ())


OPEN = Rule(session=False)
SIGNED_IN = Rule()


def needs(*permissions: str) -> Rule:
    """A session with at least one of these permissions."""
    return Rule(groups=(permissions,))


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the interface.

    Attributes:
        method: the HTTP method; a GET operation with `head` answers HEAD too.
        path: with `{id}` and the like in braces.
        rule: who may call.
        resource: the field that is null in the error envelope; "" for none.
    """

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    path: str
    rule: Rule
    resource: str = ""
    head: bool = False

    @property
    def writes(self) -> bool:
        """Whether a foreign page could do harm with it. Reads are POST too, so the method decides."""
        return self.method not in ("GET", "OPTIONS")


ROOT = Operation("GET", "/", OPEN, head=True)
LIVE = Operation("GET", "/health/live", OPEN, head=True)
READY = Operation("GET", "/health/ready", OPEN, head=True)

LOGIN = Operation("POST", "/v1/auth/login", OPEN, "session")
LOGOUT = Operation("POST", "/v1/auth/logout", SIGNED_IN, "user")
LOGOUT_BY_GET = Operation("GET", "/v1/auth/logout", SIGNED_IN, "user")
MFA = Operation("POST", "/v1/auth/mfa", SIGNED_IN, "mfa_enabled")

DEVICE_LIST = Operation("POST", "/v1/device/list", needs("can_view_devices"), "devices")
DEVICE = Operation("POST", "/v1/device", needs("can_view_devices"), "device")
DEVICE_OPEN = Operation("POST", "/v1/device/open", needs("can_control_devices"), "device")
DEVICE_CLOSE = Operation("POST", "/v1/device/close", needs("can_control_devices"), "device")

EVENT_LIST = Operation("POST", "/v1/event/list", needs("can_view_events"), "events")
EVENT = Operation("POST", "/v1/event", needs("can_view_events"), "event")

CAMERA_LIST = Operation("POST", "/v1/camera/list", needs("can_view_cameras"), "cameras")
CAMERA = Operation("POST", "/v1/camera", needs("can_view_cameras"), "camera")
# The document leaves this permission unconfirmed; a camera's state is a camera detail, so it is held the same way.
CAMERA_STATUS = Operation("GET", "/v1/camera/status/{id}", needs("can_view_cameras"), "status")
CAMERA_THUMBNAIL = Operation("GET", "/v1/camera/thumbnail/{id}", needs("can_view_cameras"), "thumbnail", head=True)

CAMERA_LIVE = Operation("GET", "/v1/camera/live/{id}/{file}", needs("can_view_cameras"), "live", head=True)
CAMERA_VIEW_RULE = needs("can_view_cameras")
# Entered by a session of that rule or by a camera's token; a view that there is, by whoever knows its address.
CAMERA_WHEP = Operation("POST", "/v1/camera/whep/{id}", OPEN)
CAMERA_WHEP_OPTIONS = Operation("OPTIONS", "/v1/camera/whep/{id}", OPEN)
CAMERA_WHEP_MORE = Operation("PATCH", "/v1/camera/whep/{id}/{view}", OPEN)
CAMERA_WHEP_END = Operation("DELETE", "/v1/camera/whep/{id}/{view}", OPEN)
CAMERA_WHEP_SESSION_OPTIONS = Operation("OPTIONS", "/v1/camera/whep/{id}/{view}", OPEN)

CAMERA_EVENT_LIST = Operation("POST", "/v1/camera/event/list", needs("can_view_camera_events"), "events")
CAMERA_EVENT = Operation("POST", "/v1/camera/event", needs("can_view_camera_events"), "event")
CAMERA_EVENT_THUMBNAIL = Operation(
    "GET", "/v1/camera/event/thumbnail/{id}", needs("can_view_camera_events"), "thumbnail", head=True
)
CAMERA_EVENT_CLIP = Operation("GET", "/v1/camera/event/clip/{id}", needs("can_view_camera_events"), "clip", head=True)
CAMERA_EVENT_VOD = Operation(
    "GET", "/v1/camera/event/vod/{id}/{file}", needs("can_view_camera_events"), "vod", head=True
)

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

OPERATIONS: tuple[Operation, ...] = (
    ROOT,
    LIVE,
    READY,
    LOGIN,
    LOGOUT,
    LOGOUT_BY_GET,
    MFA,
    DEVICE_LIST,
    DEVICE,
    DEVICE_OPEN,
    DEVICE_CLOSE,
    EVENT_LIST,
    EVENT,
    CAMERA_LIST,
    CAMERA,
    CAMERA_STATUS,
    CAMERA_THUMBNAIL,
    CAMERA_LIVE,
    CAMERA_WHEP,
    CAMERA_WHEP_OPTIONS,
    CAMERA_WHEP_MORE,
    CAMERA_WHEP_END,
    CAMERA_WHEP_SESSION_OPTIONS,
    CAMERA_EVENT_LIST,
    CAMERA_EVENT,
    CAMERA_EVENT_THUMBNAIL,
    CAMERA_EVENT_CLIP,
    CAMERA_EVENT_VOD,
    STATUS_PAGE,
    STATUS_SESSION,
    STATUS_LIVE,
    LANE_ORDER,
    LANE_STOP,
    AREA_COUNT,
    PASSBACK_FORGIVE,
    EVIDENCE,
    FOOTAGE_CHAIN,
)
"""What this gateway itself serves, always."""

DEMO_PRESENT = Operation("POST", "/status/demo/present", needs("can_control_devices"), "lane")
"""Only in the demo: `{lane_id, card}` presents a card."""
