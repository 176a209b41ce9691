"""The first frames of a camera's source, and what a decoder makes of them."""

from __future__ import annotations

from contextlib import closing
from itertools import chain, pairwise

import av

from drivers.rtsp.video_track import FootageLost


def first_frames(source, count: int) -> list:
    """Open a source; return its first frames and losses, fewer if it ends before."""
    with closing(source):
        source.open()
        found = []
        for frame in chain.from_iterable(source.batches()):
            found.append(frame)
            if len(found) == count:
                break
    return found


def decoded(frames, codec: str = "h264") -> int:
    """Return the number of pictures that a decoder makes of these without a complaint."""
    decoder = av.CodecContext.create("hevc" if codec == "h265" else codec, "r")
    decoder.options = {"err_detect": "explode"}
    count = sum(len(decoder.decode(av.Packet(frame.data))) for frame in frames)
    return count + len(decoder.decode(None))


def assert_whole(frames) -> None:
    """Nothing is lost, the frames are in order, and each is a picture."""
    assert not [frame for frame in frames if isinstance(frame, FootageLost)]
    assert frames[0].keyframe
    assert all(before.dts < after.dts for before, after in pairwise(frames))
    assert all(frame.dts <= frame.pts for frame in frames)
    assert decoded(frames, frames[0].codec) == len(frames)
