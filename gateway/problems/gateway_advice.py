"""What each kind of problem of cameras, storage and the gateway means for drivers, and what a technician does."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gateway.domain.events import Severity
from gateway.domain.problems import ProblemKind as K
from gateway.problems.advice import Advice

_CAMERA_STEPS = (
    "Check the camera's supply and its network cable (the lamp at the switch).",
    "Open the camera's own page from a computer on the same network.",
    "Check address, user and password of the camera in the site file.",
)

GATEWAY_ADVICE: Mapping[K, Advice] = MappingProxyType(
    {
        K.CAMERA_UNREACHABLE: Advice(
            "Camera unreachable", Severity.ALARM, "Lanes work; nothing is recorded by this camera.", _CAMERA_STEPS
        ),
        K.CAMERA_REFUSED: Advice(
            "Camera refuses",
            Severity.ALARM,
            "Lanes work; nothing is recorded by this camera.",
            (
                "Check user and password of the camera.",
                "Check the path of its stream, and that its codec is H.264 or H.265.",
                "Check how many programs may watch the camera at once.",
            ),
        ),
        K.CAMERA_UNSUPPORTED: Advice(
            "Camera sends no usable video",
            Severity.WARNING,
            "Lanes work; nothing is recorded of this camera.",
            ("Set the camera's stream to H.264 or H.265, on its own page.",),
        ),
        K.CAMERA_STALLED: Advice(
            "Camera sends no picture", Severity.ALARM, "Lanes work; nothing is recorded by this camera.", _CAMERA_STEPS
        ),
        K.CAMERA_DISK_FAILED: Advice(
            "Footage cannot be written",
            Severity.ALARM,
            "Lanes work; nothing is recorded by this camera.",
            ("Check that the disk of the media folder is mounted and has room.", "Replace a disk that fails."),
        ),
        K.CAMERA_NEVER_SEEN: Advice(
            "Camera not seen yet",
            Severity.NOTICE,
            "The gateway has just started and waits for this camera.",
            ("Wait half a minute.",),
        ),
        K.FOOTAGE_AT_RISK: Advice(
            "Footage at risk",
            Severity.WARNING,
            "Lanes work; footage is deleted sooner than the site file wants.",
            (
                "Put in a larger disk, or lower the cameras' bit rate.",
                "Lower the days of footage in `[storage]`, if that is allowed here.",
            ),
        ),
        K.STORE_FAILING: Advice(
            "Nothing can be recorded",
            Severity.ALARM,
            "Lanes go on with what is in memory; events wait and are lost at a power cut.",
            (
                "Look whether the disk of the data folder is full: delete what is not the gateway's.",
                "If it is not full, look in the system's log for errors of the disk, and replace it.",
            ),
        ),
        K.CLOCK_NOT_SET: Advice(
            "Clock not set",
            Severity.WARNING,
            "Cards with days or times are decided by the last trusted time.",
            ("Check that the box reaches a time server.", "Check the battery of its real-time clock."),
        ),
        K.INTERFACE_NOT_SERVED: Advice(
            "Interface not served",
            Severity.ALARM,
            "Lanes work; nobody can use the page or the interface.",
            ("Look which other program uses the port, and stop it or change `[api] port`.",),
        ),
        K.SITE_FILE_NOTICE: Advice(
            "Site file", Severity.NOTICE, "Lanes work by the site file of the last start.", ("Read the notice above.",)
        ),
        K.CERTIFICATE_ENDS: Advice(
            "Certificate near its end",
            Severity.WARNING,
            "Lanes work; soon browsers and programs will refuse the page and the interface.",
            ("Put a new certificate and its key in the files of `[api.tls]`.", "Restart the gateway."),
        ),
        K.WEBHOOK_DISABLED: Advice(
            "Webhook disabled",
            Severity.WARNING,
            "Lanes work; a program does not get its messages.",
            (
                "Ask whoever runs that program whether it works.",
                "Enable the webhook again: `edge-gateway webhooks enable`.",
            ),
        ),
    }
)
