"""Camera events, their footage and evidence."""

from __future__ import annotations

from gateway.web.catalogue.operation import MULTIPART, OPEN, Operation, ViewKind, needs
from gateway.web.http.bodies import ById
from gateway.web.shapes.camera_events import (
    CameraEventAnswer,
    CameraEventListBody,
    CameraEventsAnswer,
    ChangedCameraEvent,
    NewCameraEvent,
)
from gateway.web.shapes.evidence import (
    EvidenceAccessAnswer,
    EvidenceAccessBody,
    EvidenceAnswer,
    EvidenceUpload,
)

CAMERA_EVENT_LIST = Operation(
    "POST",
    "/v1/camera/event/list",
    needs("can_view_camera_events"),
    "events",
    purpose="List camera events, newest first",
    body=CameraEventListBody,
    answer=CameraEventsAnswer,
    reads=True,
)
CAMERA_EVENT = Operation(
    "POST",
    "/v1/camera/event",
    needs("can_view_camera_events"),
    "event",
    purpose="One camera event by the site's id or central's",
    body=ById,
    answer=CameraEventAnswer,
    reads=True,
)
CAMERA_EVENT_PUT = Operation(
    "PUT",
    "/v1/camera/event",
    needs("can_add_camera_events"),
    "event",
    purpose="Mark a moment of a camera, so that its footage is kept",
    body=NewCameraEvent,
    answer=CameraEventAnswer,
)
CAMERA_EVENT_PATCH = Operation(
    "PATCH",
    "/v1/camera/event",
    needs("can_edit_camera_events"),
    "event",
    purpose="Change what a camera event says",
    body=ChangedCameraEvent,
    answer=CameraEventAnswer,
)
CAMERA_EVENT_DELETE = Operation(
    "DELETE",
    "/v1/camera/event",
    needs("can_delete_camera_events"),
    "event",
    purpose="Delete a camera event; its footage is held no longer",
    body=ById,
    answer=CameraEventAnswer,
)
CAMERA_EVENT_THUMBNAIL = Operation(
    "GET",
    "/v1/camera/event/thumbnail/{id}",
    needs("can_view_camera_events"),
    "thumbnail",
    head=True,
    purpose="A picture of the moment",
    answer_type="image/jpeg",
)
CAMERA_EVENT_CLIP = Operation(
    "GET",
    "/v1/camera/event/clip/{id}",
    needs("can_view_camera_events"),
    "clip",
    head=True,
    purpose="The recorded clip",
    answer_type="video/mp4",
    refuses=(403,),
    view=ViewKind.RECORDED,
)
CAMERA_EVENT_VOD = Operation(
    "GET",
    "/v1/camera/event/vod/{id}/{file}",
    needs("can_view_camera_events"),
    "vod",
    head=True,
    purpose="The recorded footage as HLS: master.m3u8 and what it names",
    answer_type="application/vnd.apple.mpegurl",
    other_types=("video/MP2T",),
    refuses=(403,),
    view=ViewKind.RECORDED,
)
EVIDENCE_UPLOAD = Operation(
    "POST",
    "/v1/camera/event/evidence",
    needs("can_add_camera_events"),
    "evidence",
    purpose="Upload evidence",
    body=EvidenceUpload,
    body_type=MULTIPART,
    answer=EvidenceAnswer,
)
EVIDENCE_ACCESS = Operation(
    "POST",
    "/v1/camera/event/evidence/{id}/access",
    needs("can_view_camera_events"),
    "access",
    purpose="Create an evidence access link, or take links back",
    body=EvidenceAccessBody,
    answer=EvidenceAccessAnswer,
)
# Whoever has the address has the file, for as long as the link is good.
EVIDENCE_FILE = Operation(
    "GET",
    "/v1/camera/event/evidence/file/{token}",
    OPEN,
    "evidence",
    head=True,
    purpose="The file of an evidence access link",
    answer_type="application/octet-stream",
)

OPERATIONS: tuple[Operation, ...] = (
    CAMERA_EVENT_LIST,
    CAMERA_EVENT,
    CAMERA_EVENT_PUT,
    CAMERA_EVENT_PATCH,
    CAMERA_EVENT_DELETE,
    CAMERA_EVENT_THUMBNAIL,
    CAMERA_EVENT_CLIP,
    CAMERA_EVENT_VOD,
    EVIDENCE_UPLOAD,
    EVIDENCE_ACCESS,
    EVIDENCE_FILE,
)
