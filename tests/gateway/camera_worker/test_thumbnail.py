"""Thumbnails show the moment that was asked for: each picture carries its number, in bars of luma."""

from __future__ import annotations

from fractions import Fraction
from itertools import compress

import av
import pytest
from hostile_camera import on_time

from drivers.rtsp.frames import EncodedFrame, Entry, VideoCodec
from gateway.camera_worker.pre_roll import ToDisk
from gateway.camera_worker.segmenter import Segmenter
from gateway.camera_worker.thumbnail import take_thumbnail
from gateway.domain.footage import GapReason, TakeThumbnail
from gateway.runtime.clock import Stamp

START = 1_800_000_000_000_000
RATE, BITS, BAR = 25, 10, 16
WIDTH, HEIGHT = BITS * BAR, 64


def numbered(number: int) -> av.VideoFrame:
    row = b"".join((b"\xeb" if number >> bit & 1 else b"\x10") * BAR for bit in range(BITS))
    picture = av.VideoFrame(WIDTH, HEIGHT, "yuv420p")
    for plane, line in zip(picture.planes, (row, b"\x80" * (WIDTH // 2), b"\x80" * (WIDTH // 2)), strict=True):
        plane.update((line + bytes(plane.line_size - len(line))) * plane.height)
    picture.pts, picture.time_base = number, Fraction(1, RATE)
    return picture


def number_in(file) -> int:
    with av.open(str(file)) as source:
        (picture,) = source.decode(video=0)
        plane = picture.planes[0]
        row = bytes(plane)[plane.line_size * (HEIGHT // 2) :]
        return sum((row[bit * BAR + BAR // 2] > 128) << bit for bit in range(BITS))


def film(codec: str, *, b_frames: int, gop: int, seconds: int, options: str = "") -> list[EncodedFrame]:
    encoder = av.CodecContext.create("libx264" if codec == "h264" else "libx265", "w")
    encoder.width, encoder.height, encoder.pix_fmt = WIDTH, HEIGHT, "yuv420p"
    encoder.time_base, encoder.framerate = Fraction(1, RATE), Fraction(RATE)
    encoder.gop_size, encoder.max_b_frames, encoder.thread_count = gop, b_frames, 1
    params = f"keyint={gop}:min-keyint={gop}:scenecut=0:repeat-headers=1:bframes={b_frames}"
    quiet = ":log-level=none:pools=none:frame-threads=1:open-gop=0" if codec == "h265" else ""
    encoder.options = {"preset": "ultrafast", f"x{codec[1:]}-params": params + quiet + options}
    packets = [packet for number in range(seconds * RATE) for packet in encoder.encode(numbered(number))]
    packets += encoder.encode(None)
    ticks = 90_000 // RATE
    return [
        EncodedFrame(bytes(p), p.pts * ticks, p.dts * ticks, p.is_keyframe, 0.0, VideoCodec(codec)) for p in packets
    ]


def recorded(media, frames):
    segments = []
    segmenter = Segmenter(
        camera_id=1, media=media, segment_seconds=2.0, shelf=ToDisk(media=media, finished=segments.append)
    )
    for frame in frames:
        segmenter.push(on_time(frame), Stamp(START + frame.pts * 100 // 9, trusted=True))
    segmenter.disconnect(GapReason.NONE)
    return segments


@pytest.mark.parametrize("codec", ["h264", "h265"])
@pytest.mark.parametrize("b_frames", [0, 2])
def test_the_picture_of_the_moment_in_a_group_of_ten_seconds(tmp_path, codec, b_frames):
    (segment,) = recorded(tmp_path, film(codec, b_frames=b_frames, gop=250, seconds=10))
    for at in (0, 15_000, 1_230_000, 4_999_000, 8_500_000, 9_999_999):
        take_thumbnail(tmp_path, TakeThumbnail(segments=(segment.path,), at=at, output="t.jpg"))
        assert number_in(tmp_path / "t.jpg") == min(249, round(at / 40_000)), at


def test_a_moment_after_a_cut_by_time_is_decoded_from_the_entry_point_before(tmp_path):
    frames = film("h264", b_frames=0, gop=250, seconds=6)
    cut = [number in (75, 100) for number in range(len(frames))]
    marked = [
        EncodedFrame(f.data, f.pts, f.dts, f.keyframe or is_cut, 0.0, f.codec, Entry.NONE if is_cut else Entry.IDR)
        for f, is_cut in zip(frames, cut, strict=True)
    ]
    segments = recorded(tmp_path, marked)
    assert [segment.entry for segment in segments] == [Entry.IDR, Entry.NONE]
    assert list(compress(range(len(cut)), cut)) == [75, 100]
    paths = tuple(segment.path for segment in segments)
    take_thumbnail(tmp_path, TakeThumbnail(segments=paths, at=5_010_000, output="t.jpg"))
    assert number_in(tmp_path / "t.jpg") == 125
