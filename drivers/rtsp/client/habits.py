"""The habits of one camera: how it departs from the standards. They are learned on its connections."""

from __future__ import annotations

from dataclasses import dataclass, field

from drivers.rtsp.client.keepalive import KeepAliveHabits


@dataclass(slots=True)
class CameraHabits:
    """Lessons of the connections to one camera, for the next ones. Belongs to the thread that reads it."""

    keepalive: KeepAliveHabits = field(default_factory=KeepAliveHabits)
    older_tls: bool = False
    """It refuses today's TLS, and takes that of older cameras."""
    ends_at_options: bool = False
    """It hangs up at OPTIONS before DESCRIBE, or right after its answer, or leaves it unanswered."""
    ends_at_sound: bool = False
    """It hangs up when its sound is set up, or leaves that unanswered; its pictures are worth more."""
    pace: float = 1.0
    """The real time that passes while it counts one second, as its last connection showed."""
    udp_fails: bool = False
    """No picture of it came through over UDP."""
    refuses_account: bool = False
    """It refused the account. Many lock it after a few attempts, so none is repeated."""
