import hashlib
from itertools import accumulate

import pytest
from hostile_camera import film, sound
from hypothesis import given
from hypothesis import strategies as st

from drivers.rtsp import formats, h264
from drivers.rtsp.frames import AudioCodec, AudioFormat, EncodedAudio, Entry, VideoCodec
from gateway.camera_worker.salvage import salvage, whole_frames
from gateway.camera_worker.transport_stream import TransportMuxer, access_units
from gateway.domain.footage import parse_segment_path
from gateway.runtime.clock import ClockOffset

START = 1_800_000_000_000_000


@pytest.fixture
def stream(encoded):
    muxer = TransportMuxer(codec=VideoCodec.H264)
    return [muxer.mux(frame, frame.data) for frame in encoded(1)]


@pytest.mark.long("ffmpeg")
@pytest.mark.parametrize("cut", [1, 100, 188, 1000])
def test_keeps_every_frame_but_the_last(tmp_path, stream, judge, cut):
    part = tmp_path / "4" / "2027011508" / f"{START}.part"
    part.parent.mkdir(parents=True)
    data = b"".join(stream)[:-cut]
    part.write_bytes(data)
    begins = accumulate(map(len, stream[:-1]), initial=0)
    begun = [
        at
        for at, frame in zip(begins, stream, strict=True)
        if at + frame.index(b"\x00\x00\x01\xe0") // 188 * 188 + 188 <= len(data)
    ]
    kept = len(begun) - 1
    (tmp_path / "4" / "2027011508" / "1.part").write_bytes(b"")
    saved = salvage(tmp_path, 4, offset=ClockOffset("run", 0, trusted=True))
    assert [parse_segment_path(segment.path) for segment in saved] == [(4, START, kept * 100_000)]
    assert (saved[0].frames, saved[0].width, saved[0].height) == (kept, 320, 180)
    file = tmp_path / saved[0].path
    assert file.stat().st_size == saved[0].size == begun[-1]
    assert saved[0].sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert judge.decode(file) == ""
    assert len(judge.probe(file)["packets"]) == kept
    assert not list(tmp_path.rglob("*.part"))


def test_zeros_at_the_end_are_not_kept(stream):
    whole = whole_frames(b"".join(stream[:5]) + bytes(4096))
    assert whole is not None
    assert whole.frames == 4
    assert h264.parameter_sets(whole.first) != (b"", b"")


@pytest.fixture
def sounding(encoded):
    """The units of a stream with sound, each as its transport packets, and whether it is sound."""
    format_ = AudioFormat(AudioCodec.AAC, 44_100, 2)
    muxer = TransportMuxer(codec=VideoCodec.H264, sound=format_)
    units = []
    for number, frame in enumerate(encoded(1)):
        units.append((bytes(muxer.mux(frame, frame.data)), False))
        heard = sound("aac").units[4 * number : 4 * number + 4]
        units += [(muxer.mux_sound(EncodedAudio(data, frame.pts, 0.0, format_)), True) for data in heard]
    return units


def test_what_is_kept_ends_with_whole_pictures_and_pieces_of_sound_wherever_a_packet_is_missing(sounding):
    whole = b"".join(unit for unit, _ in sounding)
    sent = {(unit.is_sound, unit.data) for unit in access_units(whole)}
    for missing in range(3 * 188, len(whole), 188):  # behind the tables and the begin of the first picture
        broken = whole[:missing] + whole[missing + 188 :]
        found = whole_frames(broken)
        kept = [] if found is None else list(access_units(broken[: found.size]))
        assert all((unit.is_sound, unit.data) in sent for unit in kept)
        assert sum(not unit.is_sound for unit in kept) == (0 if found is None else found.frames)
    assert found is not None
    assert found.frames == 9


def test_a_piece_of_sound_that_is_shorter_than_it_says_ends_what_is_kept(sounding):
    """A decoder takes no part of it."""
    place = next(number for number, (_, is_sound) in enumerate(sounding[9:], start=9) if is_sound)
    unit, _ = sounding[place]
    cut = b"".join(each for each, _ in sounding[:place]) + unit[:188]
    whole = whole_frames(cut + b"".join(each for each, is_sound in sounding[place + 1 :] if not is_sound))
    assert whole is not None
    assert whole.size <= sum(len(each) for each, _ in sounding[:place])


@given(st.binary(max_size=2000))
def test_rubbish_is_never_a_segment(data):
    assert whole_frames(data) is None


@given(st.lists(st.binary(min_size=187, max_size=187), max_size=12))
def test_rubbish_in_packets_raises_nothing(packets):
    whole_frames(b"".join(b"\x47" + packet for packet in packets))


def test_what_was_found_keeps_its_monotonic_time_while_nobody_set_the_clock(tmp_path, stream):
    part = tmp_path / "4" / "2027011508" / f"{START}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"".join(stream))
    (saved,) = salvage(tmp_path, 4, offset=ClockOffset("run", START - 7_000_000, trusted=False))
    assert (saved.boot_id, saved.monotonic, saved.clock_trusted) == ("run", 7_000_000, False)


@pytest.mark.parametrize(
    ("codec", "made", "entry"),
    [
        ("h264", {"options": "open-gop=1:bframes=2:b-adapt=0", "b_frames": 2}, Entry.RECOVERY),
        ("h264", {"options": "intra-refresh=1"}, Entry.RECOVERY),
        ("h265", {"options": "open-gop=1:bframes=2:b-adapt=0", "b_frames": 2}, Entry.RECOVERY),
        ("h264", {}, Entry.IDR),
        ("h265", {}, Entry.IDR),
    ],
)
def test_what_was_found_tells_the_entry_point_that_it_begins_with(tmp_path, codec, made, entry):
    frames = film(codec, frames=100, gop=30, **made)
    begin = next(number for number, frame in enumerate(frames) if number and frame.keyframe)
    muxer = TransportMuxer(codec=VideoCodec(codec))
    head = formats.told_by(frames[0]).head
    part = tmp_path / "4" / "2027011508" / f"{START}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"".join(muxer.mux(each, head + each.data) for each in frames[begin : begin + 20]))
    (saved,) = salvage(tmp_path, 4, offset=ClockOffset("run", 0, trusted=True))
    assert saved.entry is entry
    assert (saved.whole_after > 0) == ("intra" in made.get("options", ""))
