"""RTSP and RTP. The packages `client` and `server` do the I/O; all other modules are pure (bytes in, values out)."""
