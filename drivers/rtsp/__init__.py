"""Video sources and the RTSP protocol: reading, serving, and a test picture."""
