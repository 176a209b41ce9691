"""The RTSP client: reads one camera over TCP or UDP. Blocking; belongs in a thread. Nothing here serves."""
