"""The RTSP client, which reads a camera over TCP or UDP. Blocking; belongs in a thread."""
