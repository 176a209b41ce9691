"""Camera events, their footage and evidence."""

from __future__ import annotations

from gateway.web.catalogue.operation import OPEN, Operation, needs
from gateway.web.shapes.evidence import (
    EvidenceAccessAnswer,
    EvidenceAccessBody,
    EvidenceAnswer,
    EvidenceUpload,
)

CAMERA_EVENT_LIST = Operation("POST", "/v1/camera/event/list", needs("can_view_camera_events"), "events")
CAMERA_EVENT = Operation("POST", "/v1/camera/event", needs("can_view_camera_events"), "event")
CAMERA_EVENT_THUMBNAIL = Operation(
    "GET", "/v1/camera/event/thumbnail/{id}", needs("can_view_camera_events"), "thumbnail", head=True
)
CAMERA_EVENT_CLIP = Operation("GET", "/v1/camera/event/clip/{id}", needs("can_view_camera_events"), "clip", head=True)
CAMERA_EVENT_VOD = Operation(
    "GET", "/v1/camera/event/vod/{id}/{file}", needs("can_view_camera_events"), "vod", head=True
)
EVIDENCE_UPLOAD = Operation(
    "POST",
    "/v1/camera/event/evidence",
    needs("can_add_camera_events"),
    "evidence",
    purpose="Upload evidence",
    body=EvidenceUpload,
    body_type="multipart/form-data",
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
    CAMERA_EVENT_THUMBNAIL,
    CAMERA_EVENT_CLIP,
    CAMERA_EVENT_VOD,
    EVIDENCE_UPLOAD,
    EVIDENCE_ACCESS,
    EVIDENCE_FILE,
)
