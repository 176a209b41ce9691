"""The RTSP server: gives encoded frames to viewers, on the event loop. Nothing here reads a camera."""
