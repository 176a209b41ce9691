"""The RTSP server, which sends encoded frames to viewers, on the event loop. It reads no camera itself."""
