"""GStreamer's RTSP server as a camera: run by Debian's Python, prints its port.

Arguments: [--port N] [--user NAME --password WORD] [--gop FRAMES] [--b-frames N] [--vp8]. Streams at /cam.
"""

import argparse

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtsp", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtsp, GstRtspServer  # noqa: E402  # versions are chosen first

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, default=0)
parser.add_argument("--user")
parser.add_argument("--password")
parser.add_argument("--gop", type=int, default=6)
parser.add_argument("--b-frames", type=int, default=0)
parser.add_argument("--vp8", action="store_true")
asked = parser.parse_args()

Gst.init(None)
server = GstRtspServer.RTSPServer()
server.set_service(str(asked.port))
server.set_address("127.0.0.1")
factory = GstRtspServer.RTSPMediaFactory()
encoder = "speed-preset=veryfast b-adapt=false" if asked.b_frames else "speed-preset=ultrafast tune=zerolatency"
profile = "main" if asked.b_frames else "constrained-baseline"
coded = (
    f"! x264enc {encoder} bframes={asked.b_frames} key-int-max={asked.gop} ! video/x-h264,profile={profile} "
    "! rtph264pay name=pay0 pt=96 config-interval=-1 )"
)
factory.set_launch(
    "( videotestsrc is-live=true pattern=ball ! video/x-raw,width=320,height=240,framerate=12/1 "
    + ("! vp8enc deadline=1 ! rtpvp8pay name=pay0 pt=96 )" if asked.vp8 else coded)
)
factory.set_shared(True)
if asked.user:
    auth = GstRtspServer.RTSPAuth()
    auth.set_supported_methods(GstRtsp.RTSPAuthMethod.DIGEST)
    token = GstRtspServer.RTSPToken()
    token.set_string("media.factory.role", "user")
    auth.add_digest(asked.user, asked.password, token)
    server.set_auth(auth)
    permissions = GstRtspServer.RTSPPermissions()
    permissions.add_permission_for_role("user", "media.factory.access", True)
    permissions.add_permission_for_role("user", "media.factory.construct", True)
    factory.set_permissions(permissions)
server.get_mount_points().add_factory("/cam", factory)
server.attach(None)
print(server.get_bound_port(), flush=True)
GLib.MainLoop().run()
