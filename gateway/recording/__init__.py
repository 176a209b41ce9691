"""The control side of video: segment index, clips, playlists, retention, worker supervision. Never decodes."""

from gateway.recording.cameras import CameraSnapshot
from gateway.recording.recording import Recording
from gateway.recording.worker_pool import RestartingWorker

__all__ = ["CameraSnapshot", "Recording", "RestartingWorker"]
