import base64
from dataclasses import replace
from itertools import pairwise

import pytest
from hostile_camera import TICKS, film

from drivers.rtsp import h264
from drivers.rtsp.packetizer import PAYLOAD_TYPE, Packetizer
from drivers.rtsp.sdp import Encoding, parse_description
from drivers.rtsp.video_track import FootageLost, VideoTrack, recordable

pytestmark = pytest.mark.usefixtures("each_code")


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


def test_the_next_connection_begins_at_the_pace_of_the_one_before():
    """A camera that stamps 21 pictures a second as 25."""

    def connection(factor: float) -> tuple[float, float]:
        track = VideoTrack(encodings={PAYLOAD_TYPE: Encoding("H264", 90_000)}, lossy=False, now=0.0, factor=factor)
        packetizer = Packetizer(ssrc=7, sequence=0, timestamp=0)
        pictures = film()
        frames = []
        for number in range(90 * 21):
            packets = packetizer.packets(replace(pictures[number % len(pictures)], pts=number * TICKS))
            frames += track.frames(packets, number / 21)
        errors = [(frame.pts - frames[0].pts) / 90_000 - frame.arrived for frame in frames]
        assert track.factor(10.0) == factor, "so soon nothing is known"
        return max(map(abs, errors)), track.factor(90.0)

    off, factor = connection(1.0)
    assert off > 0.3
    assert abs(factor - 25 / 21) < 0.01
    assert connection(factor)[0] < 0.1


def seen(*, missing: range, seconds_a_picture: float) -> list:
    """Return the frames that a recording gets over a network that loses whole pictures."""
    track = VideoTrack(encodings={PAYLOAD_TYPE: Encoding("H264", 90_000)}, lossy=True, now=0.0)
    packetizer = Packetizer(ssrc=7, sequence=0, timestamp=0)
    found = []
    for number, frame in enumerate(film()):
        packets = packetizer.packets(frame)
        if number not in missing:
            found += track.frames(packets, number * seconds_a_picture)
    return found


def test_a_lost_picture_costs_itself_alone():
    film_ = film()
    lost = next(number for number, frame in enumerate(film_) if number and frame.keyframe) - 1
    frames = seen(missing=range(lost, lost + 1), seconds_a_picture=0.04)
    assert FootageLost(by_network=True) not in frames
    assert [frame.pts - frames[0].pts for frame in frames] == [
        frame.pts - film_[0].pts for number, frame in enumerate(film_) if number != lost
    ]


def test_pictures_lost_for_long_are_a_gap_until_the_next_keyframe():
    frames = seen(missing=range(3, 8), seconds_a_picture=0.3)
    at = frames.index(FootageLost(by_network=True))
    assert at == 3
    assert frames[at + 1].keyframe


def test_packets_of_another_encoding_are_no_pictures_also_where_the_sequence_wraps():
    track = VideoTrack(encodings={PAYLOAD_TYPE: Encoding("H264", 90_000)}, lossy=True, now=0.0)
    first, others = film()[:3], film()[3:5]
    count = sum(
        len(packets) for packets in map(Packetizer(ssrc=7, sequence=0, timestamp=0, largest=300).packets, first)
    )
    packetizer = Packetizer(ssrc=7, sequence=0x10000 - count, timestamp=0, largest=300)
    came = [packet for frame in first for packet in packetizer.packets(frame)]
    assert came[-1][2:4] == b"\xff\xff"
    came += [
        packet[:1] + bytes((packet[1] + 1,)) + packet[2:] for frame in others for packet in packetizer.packets(frame)
    ]
    assert len(track.frames(came, 1.0)) == len(first)


def test_sets_that_were_announced_as_one_unit_are_told_apart():
    sets = [unit for unit in h264.nal_units(film()[0].data) if h264.nal_type(unit) in (h264.SPS, h264.PPS)]
    glued = base64.b64encode(h264.START_CODE.join(sets)).decode()
    track = VideoTrack(
        encodings={PAYLOAD_TYPE: Encoding("H264", 90_000, {"sprop-parameter-sets": glued})}, lossy=False, now=0.0
    )
    assert track.format == h264.video_format(*sets)


def test_a_video_that_can_be_recorded_is_found_behind_one_that_cannot():
    media = parse_description(
        b"m=application 0 RTP/AVP 107\na=control:metadata\n"
        b"m=video 0 RTP/AVP 26\na=rtpmap:26 JPEG/90000\na=control:jpeg\n"
        b"m=video 0 RTP/AVP 96\na=rtpmap:96 H264/90000\na=control:main\n"
        b"m=video 0 RTP/AVP 97\na=rtpmap:97 H265/90000\na=control:other\n",
        base="rtsp://camera/",
    )
    assert recordable(media).control == "rtsp://camera/main"
