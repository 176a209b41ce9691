"""The linter finds what it is there to find: one planted fault for each of its rules."""

from __future__ import annotations

import io
from fractions import Fraction

import av
import pytest
from hls_linter import lint_all, lint_master, lint_media, lint_pair, lint_segment, lint_update

from drivers.rtsp.server import testcard

MASTER = """#EXTM3U
#EXT-X-VERSION:3
#EXT-X-INDEPENDENT-SEGMENTS
#EXT-X-STREAM-INF:BANDWIDTH=900000,AVERAGE-BANDWIDTH=800000,CODECS="avc1.64001f",RESOLUTION=320x180,FRAME-RATE=10.000
index.m3u8
"""
LIVE = (
    "#EXTM3U\n#EXT-X-VERSION:8\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:10\n#EXT-X-DISCONTINUITY-SEQUENCE:3\n"
    "#EXT-X-INDEPENDENT-SEGMENTS\n#EXT-X-PROGRAM-DATE-TIME:2026-01-01T12:00:00.000Z\n"
    + "".join(f"#EXTINF:2.000000,\n{number}.ts\n" for number in range(10, 14))
    + "#EXT-X-DISCONTINUITY\n#EXT-X-PROGRAM-DATE-TIME:2026-01-01T12:01:00.000Z\n"
    + "".join(f"#EXTINF:2.000000,\n{number}.ts\n" for number in range(14, 18))
)
VOD = (
    LIVE.replace("#EXT-X-MEDIA-SEQUENCE:10\n", "#EXT-X-MEDIA-SEQUENCE:0\n#EXT-X-PLAYLIST-TYPE:VOD\n")
    + "#EXT-X-ENDLIST\n"
)
MOVED = (
    LIVE.replace("SEQUENCE:10", "SEQUENCE:11").replace("#EXTINF:2.000000,\n10.ts\n", "") + "#EXTINF:2.000000,\n18.ts\n"
)


PARTED = (
    LIVE.replace("#EXT-X-MEDIA-SEQUENCE", "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,CAN-SKIP-UNTIL=24.0,"
                 "HOLD-BACK=12.0,PART-HOLD-BACK=3.000\n#EXT-X-PART-INF:PART-TARGET=1.000\n#EXT-X-MEDIA-SEQUENCE", 1)
    .replace("#EXTINF:2.000000,\n17.ts", '#EXT-X-PART:DURATION=1.000000,URI="17.0.ts",INDEPENDENT=YES\n'
             '#EXT-X-PART:DURATION=1.000000,URI="17.1.ts"\n#EXTINF:2.000000,\n17.ts')
    + '#EXT-X-PART:DURATION=1.000000,URI="18.0.ts",INDEPENDENT=YES\n#EXT-X-PART:DURATION=0.900000,URI="18.1.ts"\n'
    '#EXT-X-PRELOAD-HINT:TYPE=PART,URI="18.2.ts"\n'
)  # fmt: skip
GROWN = PARTED.replace("#EXT-X-PRELOAD", '#EXT-X-PART:DURATION=1.000000,URI="18.2.ts"\n#EXT-X-PRELOAD').replace(
    'PART,URI="18.2.ts"', 'PART,URI="18.3.ts"'
)


def test_good_ones_pass():
    assert (lint_master(MASTER), lint_media(LIVE), lint_media(VOD), lint_update(LIVE, MOVED)) == ([], [], [], [])
    assert (lint_media(PARTED), lint_media(GROWN), lint_update(PARTED, GROWN)) == ([], [], [])


@pytest.mark.parametrize(
    ("good", "wrong", "told"),
    [
        ("#EXT-X-PART-INF:PART-TARGET=1.000\n", "", "no PART-TARGET"),
        ("PART-HOLD-BACK=3.000", "PART-HOLD-BACK=2.900", "PART-HOLD-BACK is under"),
        (",PART-HOLD-BACK=3.000", "", "PART-HOLD-BACK is under"),
        ("YES,CAN-SKIP-UNTIL=24.0,HOLD-BACK=12.0", "YES,CAN-SKIP-UNTIL=24.0,HOLD-BACK=11.9", "HOLD-BACK is under 3"),
        ("CAN-SKIP-UNTIL=24.0", "CAN-SKIP-UNTIL=23.9", "CAN-SKIP-UNTIL is under 6"),
        ('DURATION=1.000000,URI="17.0.ts"', 'DURATION=1.100000,URI="17.0.ts"', "longer than a part may be"),
        ('DURATION=1.000000,URI="17.0.ts"', 'DURATION=0.840000,URI="17.0.ts"', "too short"),
        ('DURATION=1.000000,URI="17.0.ts"', 'URI="17.0.ts"', "no DURATION"),
        ('DURATION=0.900000,URI="18.1.ts"', 'DURATION=0.000000,URI="18.1.ts"', "no time"),
        ('URI="18.1.ts"', 'URI="18.0.ts"', "twice"),
        ('PART,URI="18.2.ts"', 'PART,URI="18.1.ts"', "twice"),
        ('URI="17.0.ts",INDEPENDENT=YES', 'URI="17.0.ts"', "not independent"),
        ("#EXTINF:2.000000,\n17.ts", "#EXTINF:4.000000,\n17.ts", "as long as their segment"),
        ("TYPE=PART", "TYPE=SEGMENT", "one of a type"),
        ('#EXT-X-PART:DURATION=0.900000,URI="18.1.ts"\n', "", ""),
        (
            '#EXT-X-PRELOAD-HINT:TYPE=PART,URI="18.2.ts"\n',
            '#EXT-X-PRELOAD-HINT:TYPE=PART,URI="18.2.ts"\n#EXT-X-PART:DURATION=1.0,URI="18.3.ts"\n',
            "after a hint",
        ),
        ('#EXT-X-PRELOAD-HINT:TYPE=PART,URI="18.2.ts"\n', "#EXT-X-ENDLIST\n", "tells of more"),
        ("TARGETDURATION:4", "TARGETDURATION:1", "longer than a segment may be"),
        (
            "#EXTINF:2.000000,\n10.ts",
            (
                '#EXT-X-PART:DURATION=1.0,URI="10.0.ts",INDEPENDENT=YES\n'
                '#EXT-X-PART:DURATION=1.0,URI="10.1.ts"\n#EXTINF:2.000000,\n10.ts'
            ),
            "three target durations from the end",
        ),
    ],
)
def test_a_fault_of_parts_is_found(good, wrong, told):
    assert good in PARTED
    faults = lint_media(PARTED.replace(good, wrong, 1))
    assert any(told in fault for fault in faults) if told else not faults, faults


@pytest.mark.parametrize(
    ("good", "wrong", "told"),
    [
        ("PART-TARGET=1.000", "PART-TARGET=1.100", "PART-TARGET or SERVER-CONTROL changed"),
        ('DURATION=0.900000,URI="18.1.ts"', 'DURATION=0.950000,URI="18.1.ts"', "changed or went away"),
        (GROWN.partition("17.ts\n")[2], "", "before it was whole"),
    ],
)
def test_a_fault_of_parts_that_moved_is_found(good, wrong, told):
    assert good in GROWN
    assert any(told in fault for fault in lint_update(PARTED, GROWN.replace(good, wrong, 1)))


@pytest.mark.parametrize(
    ("good", "wrong", "told"),
    [
        ("#EXTM3U\n", "", "does not begin"),
        ("#EXT-X-ENDLIST\n", "", "no ENDLIST"),
        ("#EXT-X-ENDLIST\n", "#EXT-X-ENDLIST", "no end"),
        ("#EXT-X-INDEPENDENT-SEGMENTS", "#EXT-X-INDEPENDENT", "no tag of HLS"),
        ("#EXT-X-VERSION:8\n", "#EXT-X-VERSION:8\n#EXT-X-VERSION:8\n", "2 times"),
        ("#EXT-X-VERSION:8", "#EXT-X-VERSION:2", "needs 3"),
        ("#EXT-X-TARGETDURATION:4\n", "", "no TARGETDURATION"),
        ("TARGETDURATION:4", "TARGETDURATION:4.0", "no whole number"),
        ("TARGETDURATION:4", "TARGETDURATION:1", "over the target"),
        ("#EXTINF:2.000000,\n12.ts", "12.ts", "no EXTINF"),
        ("#EXTINF:2.000000,\n12.ts", "#EXTINF:2.000000\n12.ts", "no comma"),
        ("#EXTINF:2.000000,\n12.ts", "#EXTINF:0,\n12.ts", "no time"),
        ("#EXTINF:2.000000,\n12.ts", "#EXT-X-MEDIA-SEQUENCE:12\n#EXTINF:2.000000,\n12.ts", "after a segment"),
        ("13.ts", "12.ts", "twice"),
        ("PLAYLIST-TYPE:VOD", "PLAYLIST-TYPE:LIVE", "no playlist type"),
        ("#EXT-X-PROGRAM-DATE-TIME:2026-01-01T12:01:00.000Z\n", "", "has no PROGRAM-DATE-TIME"),
        ("#EXT-X-PROGRAM-DATE-TIME:2026-01-01T12:00:00.000Z\n", "", "first segment has no"),
        ("T12:01:00.000Z", "T11:01:00.000Z", "go back"),
        ("T12:01:00.000Z", "T12:01:00.000", "no zone"),
        ("#EXT-X-DISCONTINUITY\n", "#EXT-X-GAP\n#EXT-X-STREAM-INF:BANDWIDTH=1\n", "names a variant"),
    ],
)
def test_a_fault_of_a_media_playlist_is_found(good, wrong, told):
    assert good in VOD
    try:
        faults = lint_media(VOD.replace(good, wrong, 1))
    except TypeError:  # a date without a zone beside one with
        faults = lint_media(VOD.replace("Z\n", "\n"))
    assert any(told in fault for fault in faults), faults


@pytest.mark.parametrize(
    ("good", "wrong", "told"),
    [
        ("#EXT-X-MEDIA-SEQUENCE:10\n", "", "no EXT-X-MEDIA-SEQUENCE"),
        ("#EXT-X-DISCONTINUITY-SEQUENCE:3\n", "", "no EXT-X-DISCONTINUITY-SEQUENCE"),
        ("".join(f"#EXTINF:2.000000,\n{number}.ts\n" for number in (10, 11, 12)), "", "fewer than 6"),
        ("TARGETDURATION:4", "TARGETDURATION:6", "shorter than three"),
    ],
)
def test_a_fault_of_a_live_playlist_is_found(good, wrong, told):
    assert good in LIVE
    assert any(told in fault for fault in lint_media(LIVE.replace(good, wrong, 1)))


@pytest.mark.parametrize(
    ("good", "wrong", "told"),
    [
        ("TARGETDURATION:4", "TARGETDURATION:5", "went from 4 to 5"),
        ("SEQUENCE:11", "SEQUENCE:5", "went back"),
        ("\n15.ts", "\nother.ts", "was 15.ts"),
        ("DISCONTINUITY-SEQUENCE:3", "DISCONTINUITY-SEQUENCE:4", "had discontinuity"),
        ("".join(f"#EXTINF:2.000000,\n{number}.ts\n" for number in (16, 17, 18)), "", "went away"),
    ],
)
def test_a_fault_of_a_playlist_that_moved_is_found(good, wrong, told):
    assert good in MOVED
    assert any(told in fault for fault in lint_update(LIVE, MOVED.replace(good, wrong, 1)))


def test_what_has_an_end_or_is_only_added_to_may_not_change():
    assert lint_update(VOD, VOD) == []
    assert any("after its end" in fault for fault in lint_update(VOD, VOD.replace("2.000000", "3.000000")))
    event = VOD.replace("VOD", "EVENT").replace("#EXT-X-ENDLIST\n", "")
    assert lint_update(event, event.replace("EVENT", "VOD") + "#EXT-X-ENDLIST\n") == []
    assert any("only added" in fault for fault in lint_update(event, event.replace("10.ts", "9.ts")))


@pytest.mark.parametrize(
    ("good", "wrong", "told"),
    [
        ("#EXT-X-STREAM-INF:", "#EXT-X-STREAM:", "no variant"),
        ("BANDWIDTH=900000,", "", "no BANDWIDTH"),
        ("AVERAGE-BANDWIDTH=800000,", "", "no AVERAGE-BANDWIDTH"),
        ("AVERAGE-BANDWIDTH=800000", "AVERAGE-BANDWIDTH=900001", "over BANDWIDTH"),
        ('CODECS="avc1.64001f",', "", "no CODECS"),
        ("avc1.64001f", "h264", "no names of RFC 6381"),
        (",RESOLUTION=320x180", "", "no RESOLUTION"),
        ("320x180", "0x0", "RESOLUTION is none"),
        (",FRAME-RATE=10.000", "", "no FRAME-RATE"),
        ("#EXT-X-INDEPENDENT-SEGMENTS\n", "", "INDEPENDENT-SEGMENTS"),
        ("\nindex.m3u8", "", "no address"),
    ],
)
def test_a_fault_of_a_master_playlist_is_found(good, wrong, told):
    assert good in MASTER
    assert any(told in fault for fault in lint_master(MASTER.replace(good, wrong, 1)))


def segments(groups: int = 3) -> list[bytes]:
    """A moving test picture in files of one second, one muxer for all."""
    card = testcard.TestCard(name="T", time_code=lambda: "0", width=320, height=180, rate=Fraction(10))
    frames = [frame for _ in range(40) for frame in card.encode()]
    starts = [place for place, frame in enumerate(frames) if frame.keyframe][: groups + 1]

    class Switch(io.RawIOBase):
        files = [b""]  # noqa: RUF012

        def writable(self) -> bool:
            return True

        def write(self, data) -> int:
            self.files[-1] += bytes(data)
            return len(data)

    switch = Switch()
    switch.files = []
    options = {"mpegts_flags": "pat_pmt_at_frames", "flush_packets": "1"}
    with av.open(switch, "w", format="mpegts", options=options) as muxer:
        stream = muxer.add_stream("h264")
        stream.width, stream.height = 320, 180
        for place, frame in enumerate(frames[: starts[-1]]):
            if place in starts:
                switch.files.append(b"")
            packet = av.Packet(frame.data)
            packet.pts, packet.dts, packet.time_base, packet.stream = frame.pts, frame.dts, Fraction(1, 90_000), stream
            packet.is_keyframe = frame.keyframe
            muxer.mux(packet)
    return switch.files


def test_a_fault_of_a_segment_is_found():
    one, two, three = segments()
    assert (lint_segment(one), lint_pair(one, two), lint_pair(two, three)) == ([], [], [])
    seconds = 2.0 if not lint_segment(one, seconds=2.0) else 1.0
    assert lint_segment(one, seconds=seconds) == []
    spoilt = {
        "no whole number": one[:-1],
        "no sync byte": one[:188] + b"x" + one[189:],
        "not with PAT": one[376:],
        "jumps": one[: 188 * 8] + one[188 * 9 :],
        "keyframe": one.replace(b"\x00\x00\x01\x65", b"\x00\x00\x01\x61"),
    }
    for told, data in spoilt.items():
        assert any(told in fault for fault in lint_segment(data)), (told, lint_segment(data))
    assert any("last" in fault for fault in lint_segment(one, seconds=seconds + 1))
    assert any("counter" in fault for fault in lint_pair(one, three))
    assert any("timestamps" in fault for fault in lint_pair(two, one))
    slow = MASTER.replace("900000", "1000").replace("800000", "900")
    text = LIVE.replace("2.000000", f"{seconds:.6f}").replace("TARGETDURATION:4", "TARGETDURATION:1")
    assert any("over BANDWIDTH" in fault for fault in lint_all(slow, text, lambda _: one, steady=False))
    assert any("not its bytes" in fault for fault in lint_all(MASTER, PARTED, lambda _: one, steady=False))
