from dataclasses import replace
from itertools import pairwise

import pytest
from hostile_camera import TICKS, film

from drivers.rtsp.rtp import PAYLOAD_TYPE, Packetizer
from drivers.rtsp.sdp import Encoding
from drivers.rtsp.video_track import VideoTrack


@pytest.mark.parametrize("clock", [1_000, 48_000, 90_000, 1_000_000])
def test_a_clock_of_any_rate_wraps_without_a_jump(clock):
    """RFC 3550, 5.1: the timestamp wraps at 32 bits of its own clock, whatever the rate (`a=rtpmap`)."""
    track = VideoTrack(encodings={PAYLOAD_TYPE: Encoding("H264", clock)}, lossy=False, now=0.0)
    packetizer = Packetizer(ssrc=7, sequence=0, timestamp=0xFFFFFFFF - clock)
    frames = []
    for number, frame in enumerate(film()):
        packets = packetizer.packets(replace(frame, pts=frame.pts * clock // 90_000))
        frames += track.frames(packets, 100.0 + number / 25)
    assert len(frames) > 40
    assert {after.pts - before.pts for before, after in pairwise(frames)} == {TICKS}
    assert track.keeps_time
