"""GStreamer's RTSP server as a camera that flashes and beeps each full second: run by Debian's Python, prints its port.

Arguments: [--port N] [--sound aac|pcmu|opus] [--b-frames N]. Streams at /cam.
All viewers share one encoder, as at a camera.
"""

import argparse

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer  # noqa: E402  # versions are chosen first

parser = argparse.ArgumentParser()
parser.add_argument("--port", default="0")
parser.add_argument("--sound", choices=("aac", "pcmu", "opus"), default="aac")
parser.add_argument("--b-frames", type=int, default=0)
asked = parser.parse_args()

WIDTH, HEIGHT, RATE = 160, 120, 25
# samples a second, in a buffer, and by how many the encoder delays sound without telling
SOUNDS = {
    "aac": (48_000, 1_600, 1_600, "voaacenc ! rtpmp4gpay name=pay1 pt=97"),
    "pcmu": (8_000, 160, 0, "mulawenc ! rtppcmupay name=pay1 pt=0"),
    "opus": (48_000, 960, 0, "opusenc ! rtpopuspay name=pay1 pt=97"),
}

Gst.init(None)
rate, samples, delay, encoder = SOUNDS[asked.sound]
reordering = "speed-preset=veryfast b-adapt=false rc-lookahead=0 sync-lookahead=0"
profile = "main" if asked.b_frames else "constrained-baseline"  # the latter has no B-frames, whatever is asked for
tune = reordering if asked.b_frames else "speed-preset=ultrafast tune=zerolatency"
factory = GstRtspServer.RTSPMediaFactory()
factory.set_launch(
    f"( videotestsrc is-live=true pattern=black ! video/x-raw,format=I420,width={WIDTH},height={HEIGHT},"
    f"framerate={RATE}/1 ! videobalance name=flash ! queue "
    f"! x264enc {tune} bframes={asked.b_frames} key-int-max={RATE} "
    f"bitrate=300 ! video/x-h264,profile={profile} ! rtph264pay name=pay0 pt=96 config-interval=-1 "
    f"audiotestsrc is-live=true freq=1000 samplesperbuffer={samples} "
    f"! audio/x-raw,rate={rate},channels=1 ! volume name=beep ! queue ! audioconvert ! {encoder} )"
)
factory.set_shared(True)


def on_at_each_second(pad, info, name, per_second, ahead):
    """Make the first tenth of each second white or loud, timed by the frames or samples before it.

    Live sources begin at any time, each at another.
    """
    buffer = info.get_buffer()
    buffer.pts = buffer.offset * Gst.SECOND // per_second
    is_on = (buffer.offset + ahead) % per_second * 10 < per_second
    pad.get_parent_element().set_property(name, 1.0 if is_on else 0.0)
    return Gst.PadProbeReturn.OK


def configure(_factory, media):
    """Prepare a pipeline that has been built."""
    for element, *changed in (("flash", "brightness", RATE, 0), ("beep", "volume", rate, delay)):
        pad = media.get_element().get_by_name(element).get_static_pad("sink")
        pad.add_probe(Gst.PadProbeType.BUFFER, on_at_each_second, *changed)


factory.connect("media-configure", configure)
server = GstRtspServer.RTSPServer()
server.set_service(asked.port)
server.set_address("127.0.0.1")
server.get_mount_points().add_factory("/cam", factory)
server.attach(None)
print(server.get_bound_port(), flush=True)
GLib.MainLoop().run()
