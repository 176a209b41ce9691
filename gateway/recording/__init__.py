"""The control side of video: segment index, clips, playlists, retention, worker supervision. Never decodes."""

from gateway.recording.cameras import CameraSnapshot
from gateway.recording.recording import Recording

__all__ = ["CameraSnapshot", "Recording"]
