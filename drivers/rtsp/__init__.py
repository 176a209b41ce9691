"""RTSP and RTP: `client` and `server` do the I/O, and every module beside them is pure (bytes in, values out)."""
