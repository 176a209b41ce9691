"""The legacy family, entered by the key of a program. The interface names no permissions for it: these are the same
names as for what `/v1` has of the kind.
"""

from __future__ import annotations

from gateway.web.catalogue.operation import Operation, needs
from gateway.web.shapes import legacy as shapes

PREFIX = "/api/v1/"

ACCESS_GRANT = Operation(
    "POST",
    "/api/v1/access/grant",
    needs("can_add_access_cards", "can_add_guests"),
    purpose="Let a user pass a lane for a while, or for good",
    body=shapes.GrantBody,
    answer=shapes.GrantTold,
)
ACCESS_REVOKE = Operation(
    "POST",
    "/api/v1/access/revoke",
    needs("can_delete_access_cards", "can_delete_guests"),
    purpose="End a grant at once",
    body=shapes.AccessIdBody,
    answer=shapes.RevokedTold,
)
ACCESS_PERMISSIONS = Operation(
    "GET",
    "/api/v1/access/permissions",
    needs("can_view_access_cards", "can_view_guests"),
    purpose="Grants that stand",
    query=shapes.PageQuery,
    answer=shapes.PermissionsTold,
)
ACCESS_UNLOCK = Operation(
    "POST",
    "/api/v1/access/unlock",
    needs("can_control_devices"),
    purpose="Open a gate once",
    body=shapes.UnlockBody,
    answer=shapes.UnlockTold,
)
DEVICES = Operation(
    "GET",
    "/api/v1/devices",
    needs("can_view_devices"),
    purpose="Every device",
    query=shapes.PageQuery,
    answer=shapes.DevicesTold,
)
DEVICE_REGISTER = Operation(
    "POST",
    "/api/v1/devices",
    needs("can_add_devices"),
    purpose="Register a device with central",
    body=shapes.DeviceBody,
    answer=shapes.DeviceTold,
    status=201,
)
DEVICE = Operation(
    "GET", "/api/v1/devices/{id}", needs("can_view_devices"), purpose="One device", answer=shapes.DeviceTold
)
DEVICE_DELETE = Operation(
    "DELETE", "/api/v1/devices/{id}", needs("can_edit_devices"), purpose="Remove a device", answer=shapes.DeviceTold
)
STREAM = Operation(
    "GET",
    "/api/v1/video/stream/{camera_id}",
    needs("can_view_cameras"),
    purpose="Where a camera is watched live, by an address with a token",
    query=shapes.StreamQuery,
    answer=shapes.StreamTold,
)
CAMERAS = Operation(
    "GET",
    "/api/v1/video/cameras",
    needs("can_view_cameras"),
    purpose="Cameras and whether they record",
    answer=shapes.CamerasTold,
)
RECORDINGS = Operation(
    "GET",
    "/api/v1/video/recordings",
    needs("can_view_camera_events"),
    purpose="Recorded footage of events, by date and camera",
    query=shapes.RecordingsQuery,
    answer=shapes.RecordingsTold,
)
# Of this gateway alone: what a key may list it must be able to fetch.
RECORDING_CLIP = Operation(
    "GET",
    "/api/v1/video/recordings/{id}/clip",
    needs("can_view_camera_events"),
    head=True,
    purpose="A recording as MP4",
    answer_type="video/mp4",
)
WEBHOOK_CREATE = Operation(
    "POST",
    "/api/v1/webhooks",
    needs("can_edit_settings") & needs("can_view_events"),
    purpose="Register a receiver of events",
    body=shapes.WebhookBody,
    answer=shapes.WebhookCreated,
    status=201,
)
WEBHOOKS = Operation(
    "GET", "/api/v1/webhooks", needs("can_edit_settings"), purpose="Every webhook", answer=shapes.WebhooksTold
)
WEBHOOK_DELETE = Operation(
    "DELETE",
    "/api/v1/webhooks/{id}",
    needs("can_edit_settings"),
    purpose="Send nothing to a receiver any more",
    answer=shapes.WebhookDeleted,
)

OPERATIONS: tuple[Operation, ...] = (
    ACCESS_GRANT,
    ACCESS_REVOKE,
    ACCESS_PERMISSIONS,
    ACCESS_UNLOCK,
    DEVICES,
    DEVICE_REGISTER,
    DEVICE,
    DEVICE_DELETE,
    STREAM,
    CAMERAS,
    RECORDINGS,
    RECORDING_CLIP,
    WEBHOOK_CREATE,
    WEBHOOKS,
    WEBHOOK_DELETE,
)
