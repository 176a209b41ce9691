"""So many cameras that send the same 1080p stream of 4 Mbit/s, made once and repeated: prints its port, then serves.

`python steady_cameras.py COUNT [PACKET_BYTES]`: streams at /1 to /COUNT, 25 pictures a second, a keyframe every two
seconds.
"""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import replace
from fractions import Fraction

import av
from av.video.frame import PictureType

from drivers.rtsp.frames import TICKS_PER_SECOND, EncodedFrame
from drivers.rtsp.packetizer import LARGEST_PACKET
from drivers.rtsp.server.fanout import Fanout
from drivers.rtsp.server.server import RtspServer, ServedStream

RATE = 25
SECONDS = 8
BITS_PER_SECOND = 4_000_000
PICTURE = "testsrc2=size=1920x1080:rate=25,noise=alls=25:allf=t"


def encoded() -> list[EncodedFrame]:
    """A few seconds of a noisy test picture, as a camera would encode it."""
    encoder = av.CodecContext.create("libx264", "w")
    encoder.width, encoder.height, encoder.pix_fmt = 1920, 1080, "yuv420p"
    encoder.time_base, encoder.framerate = Fraction(1, RATE), Fraction(RATE)
    encoder.bit_rate = BITS_PER_SECOND
    encoder.gop_size = 2 * RATE
    rate = BITS_PER_SECOND // 1000
    encoder.options = {
        "preset": "ultrafast", "tune": "zerolatency", "threads": "1",
        "x264-params": f"vbv-maxrate={rate}:vbv-bufsize={rate}:scenecut=0:repeat-headers=1:annexb=1",
    }  # fmt: skip
    found: list[EncodedFrame] = []
    with av.open(PICTURE, "r", format="lavfi") as source:
        for number, raw in enumerate(source.decode(video=0)):
            if number == RATE * SECONDS:
                break
            picture = raw.reformat(format="yuv420p")
            picture.pict_type = PictureType.NONE  # else each would be a keyframe, as raw pictures are
            picture.pts, picture.time_base = number, Fraction(1, RATE)
            found += [_frame(packet) for packet in encoder.encode(picture)]
    return found


def _frame(packet: av.Packet) -> EncodedFrame:
    ticks = int(packet.pts * TICKS_PER_SECOND // RATE)
    return EncodedFrame(bytes(packet), ticks, ticks, packet.is_keyframe, 0.0)


async def main(count: int, packet_bytes: int = LARGEST_PACKET) -> None:
    frames = encoded()
    feeds = [Fanout() for _ in range(count)]
    streams = {f"/{number}": ServedStream(feed=feed) for number, feed in enumerate(feeds, 1)}
    for stream in streams.values():
        stream.packet_bytes = packet_bytes
    async with RtspServer(streams=streams) as server:
        print(server.port, sum(len(frame.data) for frame in frames) * 8 // SECONDS, flush=True)
        began, sent = time.monotonic(), 0
        while True:
            frame = frames[sent % len(frames)]
            ticks = sent * TICKS_PER_SECOND // RATE
            for feed in feeds:
                feed.publish(replace(frame, pts=ticks, dts=ticks))
            sent += 1
            await asyncio.sleep(max(0.0, began + sent / RATE - time.monotonic()))  # the pace of the cameras


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
