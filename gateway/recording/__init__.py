"""The control of video: segment index, clips, playlists, retention and supervision of workers. It never decodes."""

from gateway.recording.cameras import CameraSnapshot
from gateway.recording.recording import Recording
from gateway.recording.worker_pool import RestartingWorker

__all__ = ["CameraSnapshot", "Recording", "RestartingWorker"]
