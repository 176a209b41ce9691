"""Play an HLS playlist by GStreamer and print how many pictures were decoded. Debian's Python runs it.

It plays to the end, or until so many pictures were decoded. It knows the address alone and sends no headers of its
own.
"""

from __future__ import annotations

import argparse
import sys

import gi

gi.require_version("Gst", "1.0")
from gi.repository import Gst  # noqa: E402  # only after its version is chosen

ENDS = Gst.MessageType.EOS | Gst.MessageType.ERROR | Gst.MessageType.APPLICATION


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--pictures", type=int, default=0)
    arguments = parser.parse_args()
    Gst.init(None)
    pipeline = Gst.parse_launch(
        "souphttpsrc name=source ! hlsdemux ! tsdemux ! h264parse ! openh264dec ! "
        "fakesink name=shown signal-handoffs=true sync=false"
    )
    source = pipeline.get_by_name("source")
    source.set_property("location", arguments.url)
    pictures = 0

    def count(*_: object) -> None:
        nonlocal pictures
        pictures += 1
        if pictures == arguments.pictures:
            pipeline.post_message(Gst.Message.new_application(pipeline, Gst.Structure.new_empty("enough")))

    pipeline.get_by_name("shown").connect("handoff", count)
    pipeline.set_state(Gst.State.PLAYING)
    message = pipeline.get_bus().timed_pop_filtered(40 * Gst.SECOND, ENDS)
    pipeline.set_state(Gst.State.NULL)
    if message is None or message.type is Gst.MessageType.ERROR:
        print("no end" if message is None else message.parse_error(), file=sys.stderr)
        return 1
    print(pictures)
    return 0


sys.exit(main())
