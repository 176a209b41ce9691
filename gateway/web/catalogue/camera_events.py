"""Camera events, their footage and evidence."""

from __future__ import annotations

from gateway.web.catalogue.operation import Operation, needs

CAMERA_EVENT_LIST = Operation("POST", "/v1/camera/event/list", needs("can_view_camera_events"), "events")
CAMERA_EVENT = Operation("POST", "/v1/camera/event", needs("can_view_camera_events"), "event")
CAMERA_EVENT_THUMBNAIL = Operation(
    "GET", "/v1/camera/event/thumbnail/{id}", needs("can_view_camera_events"), "thumbnail", head=True
)
CAMERA_EVENT_CLIP = Operation("GET", "/v1/camera/event/clip/{id}", needs("can_view_camera_events"), "clip", head=True)
CAMERA_EVENT_VOD = Operation(
    "GET", "/v1/camera/event/vod/{id}/{file}", needs("can_view_camera_events"), "vod", head=True
)

OPERATIONS: tuple[Operation, ...] = (
    CAMERA_EVENT_LIST,
    CAMERA_EVENT,
    CAMERA_EVENT_THUMBNAIL,
    CAMERA_EVENT_CLIP,
    CAMERA_EVENT_VOD,
)
