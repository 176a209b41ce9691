"""The control side of video: segment index, clips, playlists, retention, worker supervision. Never decodes."""
