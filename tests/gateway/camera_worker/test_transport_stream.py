"""Written MPEG-TS, read again from the packets alone by the rules of ISO/IEC 13818-1."""

import io
from fractions import Fraction

import av
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from drivers.contract import ProtocolViolation
from drivers.rtsp.frames import AudioCodec, AudioFormat, EncodedAudio, EncodedFrame, VideoCodec
from gateway.camera_worker.transport_stream import TransportMuxer

pytestmark = pytest.mark.usefixtures("each_code")

PICTURES, SOUND, TABLE = 0x100, 0x101, 0x1000
START = b"\x00\x00\x00\x01"
DELIMITER = START + b"\x09\xf0"


def packets(data: bytes) -> list[tuple[int, bool, int, bytes, bytes]]:
    """Of each packet its pid, whether a unit begins in it, its counter, adaptation field and payload."""
    assert len(data) % 188 == 0
    found = []
    for at in range(0, len(data), 188):
        packet = data[at : at + 188]
        assert packet[0] == 0x47
        assert packet[3] & 0x10, "each packet here has a payload"
        begin = 4 + (packet[4] + 1 if packet[3] & 0x20 else 0)
        assert begin < 188, "a payload of nothing"
        pid = (packet[1] & 0x1F) << 8 | packet[2]
        found.append((pid, bool(packet[1] & 0x40), packet[3] & 0x0F, packet[5:begin], packet[begin:]))
    return found


def frame(data: bytes, *, pts: int, dts: int, keyframe: bool = False) -> EncodedFrame:
    return EncodedFrame(data, pts, dts, keyframe, 0.0, VideoCodec.H264)


def written(stamp: bytes) -> int:
    bits = int.from_bytes(stamp, "big")
    assert bits & 0x100010001 == 0x100010001
    return (bits >> 33 & 7) << 30 | (bits >> 17 & 0x7FFF) << 15 | bits >> 1 & 0x7FFF


sizes = st.one_of(st.integers(0, 600), st.integers(0, 30_000), st.integers(0, 40).map(lambda count: count * 184 + 152))


@given(
    st.lists(st.tuples(sizes, st.booleans(), st.integers(0, 20_000)), min_size=1, max_size=20),
    st.integers(-90_000, (1 << 33) + 5),
)
@example([(147, True, 0), (148, True, 1), (149, True, 0), (150, True, 5)], 0)
@example([(size, False, 3_600) for size in range(138, 155)], -7_200)
def test_every_frame_comes_back_whole_with_its_times_and_counters_run_on(frames, begin):
    muxer = TransportMuxer(codec=VideoCodec.H264)
    counters: dict[int, int] = {}
    for number, (size, keyframe, ahead) in enumerate(frames):
        data, dts = START + bytes(number % 251 for _ in range(size)), begin + number * 3_600
        taken = packets(muxer.mux(frame(data, pts=dts + ahead, dts=dts, keyframe=keyframe), data))
        for pid, _, counter, _, _ in taken:
            assert counter == counters.get(pid, counter)
            counters[pid] = counter + 1 & 0x0F
        assert [pid for pid, *_ in taken if pid != PICTURES] == ([0, TABLE] if keyframe else [])
        pictures = [packet for packet in taken if packet[0] == PICTURES]
        assert [begins for _, begins, *_ in pictures] == [True] + [False] * (len(pictures) - 1)
        field = pictures[0][3]
        assert bool(field[0] & 0x40) is keyframe
        assert int.from_bytes(field[1:7], "big") >> 15 == (dts + 90_000) % (1 << 33)
        assert all(stuffed in (b"", b"\x00" + b"\xff" * (len(stuffed) - 1)) for _, _, _, stuffed, _ in pictures[1:])
        unit = b"".join(payload for *_, payload in pictures)
        assert unit[:6] == b"\x00\x00\x01\xe0\x00\x00"
        times = unit[9 : 9 + unit[8]]
        told = [written(times[at : at + 5]) for at in range(0, len(times), 5)]
        assert told == [(90_000 + time) % (1 << 33) for time in ([dts + ahead, dts] if ahead else [dts])]
        assert unit[9 + unit[8] :] == DELIMITER + data


@pytest.mark.parametrize("codec", VideoCodec)
@pytest.mark.parametrize("sound", [None, AudioFormat(AudioCodec.AAC, 48_000, 1)])
def test_its_tables_are_those_of_libav(codec, sound):
    """libav writes the same streams; nothing of its tables differs but what is told of sound beyond its kind."""
    target = io.BytesIO()
    data = START + b"\x67" + START + b"\x68" + START + b"\x65" + b"\x88" * 20
    with av.open(target, "w", format="mpegts", options={"mpegts_flags": "pat_pmt_at_frames"}) as container:
        stream = container.add_mux_stream({"h264": "h264", "h265": "hevc"}[codec], time_base=Fraction(1, 90_000))
        if sound is not None:
            container.add_mux_stream("aac", rate=48_000, time_base=Fraction(1, 90_000))
        packet = av.Packet(data)
        packet.stream, packet.pts, packet.dts, packet.time_base = stream, 0, 0, Fraction(1, 90_000)
        container.mux_one(packet)
    theirs = {pid: payload for pid, _, _, _, payload in packets(target.getvalue()) if pid in (0, TABLE)}
    muxer = TransportMuxer(codec=codec, sound=sound)
    ours = {pid: payload for pid, *_, payload in packets(muxer.mux(frame(data, pts=0, dts=0, keyframe=True), data))}
    assert {pid: ours[pid] for pid in (0, TABLE)} == theirs


def test_sound_runs_on_beside_the_pictures():
    sound = AudioFormat(AudioCodec.AAC, 48_000, 1)
    muxer = TransportMuxer(codec=VideoCodec.H264, sound=sound)
    data = START + b"\x65" + bytes(50)
    muxer.mux(frame(data, pts=0, dts=0, keyframe=True), data)
    counter = 0
    for size in (*range(155, 175), 184, 368, 1_000):
        taken = packets(muxer.mux_sound(EncodedAudio(bytes(size), 1_920, 0.0, sound)))
        assert {pid for pid, *_ in taken} == {SOUND}
        assert [number for _, _, number, _, _ in taken] == [counter + at & 0x0F for at in range(len(taken))]
        counter += len(taken)
        unit = b"".join(payload for *_, payload in taken)
        assert int.from_bytes(unit[4:6], "big") == len(unit) - 6
        assert written(unit[9:14]) == 91_920
        assert unit[14 + 7 :] == bytes(size)


@pytest.mark.parametrize(("pts", "data"), [(0, START + b"\x65"), (9, b"no picture"), (9, b"")])
def test_what_cannot_be_written_is_refused(pts, data):
    with pytest.raises(ProtocolViolation):
        TransportMuxer(codec=VideoCodec.H264).mux(frame(data, pts=pts, dts=1, keyframe=True), data)
