"""Segments that a disk damaged: nonsense is no footage, or is reported as damaged."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from drivers.contract import ProtocolViolation
from drivers.rtsp import formats
from drivers.rtsp.frames import TICKS_PER_SECOND, AudioCodec, AudioFormat, EncodedAudio, EncodedFrame, VideoCodec
from gateway.camera_worker.salvage import whole_frames
from gateway.camera_worker.transport_stream import (
    TransportMuxer,
    access_units,
    announces_sound,
    picture_times,
    sound_name,
    sound_ticks,
    video_type,
)

START = b"\x00\x00\x00\x01"
SETS = {
    VideoCodec.H264: ("67640028acd940780227e5c044000003000400000300c83c60c658", "68ebe3cb22c0"),
    VideoCodec.H265: (
        "40010c01ffff01600000030090000003000003005d959809",
        "42010101600000030090000003000003005da00280802d165959a4932b9a020000030002000003003210",
        "4401c172b46240",
    ),
}
SLICES = {VideoCodec.H264: b"\x65\x88", VideoCodec.H265: b"\x26\x01"}
LONGEST_SIDE = 65_535


def footage(codec: VideoCodec) -> bytes:
    """Three frames and the sound beside them."""
    sound = AudioFormat(AudioCodec.AAC, 48_000, 1)
    muxer = TransportMuxer(codec=codec, sound=sound)
    told = b""
    for number in range(3):
        sets = b"".join(START + bytes.fromhex(each) for each in SETS[codec]) if not number else b""
        data = sets + START + SLICES[codec] + bytes(range(1, 200))
        dts = number * 3_600
        told += muxer.mux(EncodedFrame(data, dts + 3_600, dts, not number, 0.0, codec), data)
        told += muxer.mux_sound(EncodedAudio(b"\x21" * 90, dts, 0.0, sound))
    return told


FOOTAGE = {codec: footage(codec) for codec in VideoCodec}
TABLE = 188
"""Where the table of streams begins: behind the table of programs."""
LONGER_THAN_A_PACKET = [(TABLE + 4 + 2, 0xBF), (TABLE + 4 + 3, 0xFF)]

# most of the bytes that say something are in the tables and at the first frame's begin
places = st.one_of(st.integers(0, 3 * 188), st.integers(0, 2_000))
damage = st.lists(st.tuples(places, st.integers(0, 255)), max_size=12)


def damaged(codec: VideoCodec, changes: list[tuple[int, int]], begin: int, end: int) -> bytes:
    data = bytearray(FOOTAGE[codec])
    for at, value in changes:
        data[at % len(data)] = value
    return bytes(data)[begin : len(data) - end]


@given(st.sampled_from(VideoCodec), damage, st.sampled_from([0, 0, 0, 1, 188, 376]), st.integers(0, 700))
@example(VideoCodec.H264, LONGER_THAN_A_PACKET, 0, 0)
@example(VideoCodec.H264, [*LONGER_THAN_A_PACKET, (TABLE + 4 + 11, 0xFF), (TABLE + 4 + 12, 0xFF)], 0, 0)
@example(VideoCodec.H265, [*LONGER_THAN_A_PACKET, (TABLE + 4 + 16, 0x0F), (TABLE + 4 + 17, 0x9B)], 0, 0)
def test_no_damage_raises_anything_but_what_is_promised(codec, changes, begin, end):
    data = damaged(codec, changes, begin, end)
    assert announces_sound(data) in (True, False)
    assert video_type(data) in (None, *range(256))
    assert sound_name(data) in ("", *(f"mp4a.40.{kind}" for kind in (1, 2, 3, 4)))
    units = list(access_units(data))
    assert [unit.pts for unit in units if not unit.is_sound] == picture_times(data)
    assert sum(len(unit.data) for unit in units) <= len(data)
    whole = whole_frames(data)
    if whole is None:
        return
    assert 0 < whole.size <= len(data)
    for each in VideoCodec:
        try:
            described = formats.of_units(each, whole.first)
        except ProtocolViolation:
            continue
        if described is not None:
            assert 0 < described.width <= LONGEST_SIDE
            assert 0 < described.height <= LONGEST_SIDE


def test_without_damage_it_says_what_is_in_it():
    for codec, size in ((VideoCodec.H264, (1920, 1080)), (VideoCodec.H265, (1280, 720))):
        data = FOOTAGE[codec]
        assert (announces_sound(data), sound_name(data)) == (True, "mp4a.40.2")
        whole = whole_frames(data)
        assert (whole.frames, whole.ticks) == (2, 7_200)
        described = formats.of_units(codec, whole.first)
        assert (described.width, described.height) == size


def test_pictures_and_sound_are_read_in_the_order_in_which_they_were_written():
    units = list(access_units(FOOTAGE[VideoCodec.H264]))
    second = TICKS_PER_SECOND  # what the muxer adds to all times
    assert [(unit.is_sound, unit.pts - second) for unit in units] == [
        (False, 3_600), (True, 0), (False, 7_200), (True, 3_600), (False, 10_800), (True, 7_200)
    ]  # fmt: skip
    assert [unit.is_entry for unit in units] == [True, False, False, False, False, False]
    assert units[2].data.endswith(START + SLICES[VideoCodec.H264] + bytes(range(1, 200)))
    assert units[1].data[7:] == b"\x21" * 90
    assert sound_ticks(units[1].data) == 1_920


def test_a_picture_ends_before_what_is_damaged_in_it():
    whole = list(access_units(FOOTAGE[VideoCodec.H264]))
    last = len(FOOTAGE[VideoCodec.H264]) - 188 - 188
    units = list(access_units(damaged(VideoCodec.H264, [(last, 0)], 0, 0)))
    assert [unit.data for unit in units[:4]] == [unit.data for unit in whole[:4]]
    assert 0 < len(units[4].data) < len(whole[4].data)
    assert whole[4].data.startswith(units[4].data)


def test_what_a_table_says_within_its_packet_is_taken_though_it_says_it_is_longer():
    data = damaged(VideoCodec.H264, LONGER_THAN_A_PACKET, 0, 0)
    assert (announces_sound(data), video_type(data)) == (True, 0x1B)
