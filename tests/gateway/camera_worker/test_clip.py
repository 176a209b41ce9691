from dataclasses import replace
from itertools import pairwise

import av
import pytest
from hostile_camera import film, joined, on_time

from drivers.rtsp.formats import entry_of
from drivers.rtsp.frames import Entry
from gateway.camera_worker.clip import cut_clip
from gateway.camera_worker.cut_orders import BadRequest, MediaMissing
from gateway.camera_worker.pre_roll import ToDisk
from gateway.camera_worker.segmenter import Segmenter
from gateway.camera_worker.thumbnail import take_thumbnail
from gateway.camera_worker.transport_stream import access_units, picture_times
from gateway.domain.footage import CutClip, GapReason, TakeThumbnail
from gateway.runtime.clock import Stamp

START = 1_800_000_000_000_000


@pytest.fixture
def record(tmp_path, encoded):
    """`record(seconds, wall)`: segments of one connection."""
    segments = []

    def run(seconds, wall=START):
        segmenter = Segmenter(
            camera_id=1, media=tmp_path, segment_seconds=1.0, shelf=ToDisk(media=tmp_path, finished=segments.append)
        )
        for frame in encoded(seconds):
            segmenter.push(on_time(frame), Stamp(wall + frame.pts * 100 // 9, trusted=True))
        segmenter.disconnect(GapReason.NONE)
        return tuple(segment.path for segment in segments)

    return run


@pytest.fixture
def record_film(tmp_path):
    """`record_film(frames)`: their segments."""

    def run(frames):
        segments = []
        segmenter = Segmenter(
            camera_id=1, media=tmp_path, segment_seconds=1.0, shelf=ToDisk(media=tmp_path, finished=segments.append)
        )
        for frame in frames:
            segmenter.push(on_time(frame), Stamp(START + frame.pts * 100 // 9, trusted=True))
        segmenter.disconnect(GapReason.NONE)
        return tuple(segment.path for segment in segments)

    return run


@pytest.mark.long("ffmpeg")
def test_is_faststart_and_as_long_as_its_segments(tmp_path, record, judge):
    cut = cut_clip(tmp_path, CutClip(segments=record(3), output="c/x.mp4"))
    file = tmp_path / cut.output
    probed = judge.probe(file)
    assert cut.duration == 3_000_000
    assert float(probed["format"]["duration"]) == pytest.approx(3.0, abs=0.001)
    assert probed["streams"][0]["codec_tag_string"] == "avc1"
    assert len(probed["packets"]) == 30
    assert judge.decode(file) == ""
    data = file.read_bytes()
    assert data.index(b"moov") < data.index(b"mdat")
    assert cut.size == len(data)
    assert [path.name for path in file.parent.iterdir()] == ["x.mp4"]


@pytest.mark.long("ffmpeg")
def test_h265_is_tagged_as_all_players_take_it(tmp_path, record_film, judge):
    cut = cut_clip(tmp_path, CutClip(segments=record_film(film("h265", frames=50)), output="x.mp4"))
    probed = judge.probe(tmp_path / cut.output)
    assert probed["streams"][0]["codec_tag_string"] == "hvc1"
    assert judge.decode(tmp_path / cut.output) == ""
    assert len(judge.frames(tmp_path / cut.output)) == 50


@pytest.mark.long("ffmpeg")
def test_goes_on_over_a_gap_with_timestamps_that_only_grow(tmp_path, record, judge):
    record(1.5)
    cut = cut_clip(tmp_path, CutClip(segments=record(1.5, START + 60_000_000), output="x.mp4"))
    probed = judge.probe(tmp_path / cut.output)
    times = [float(packet["dts_time"]) for packet in probed["packets"]]
    steps = [round(after - before, 3) for before, after in pairwise(times)]
    assert set(steps) == {0.1}
    assert float(probed["format"]["duration"]) == pytest.approx(cut.duration / 1e6, abs=0.001) == 3.0
    assert judge.decode(tmp_path / cut.output) == ""


@pytest.mark.long("ffmpeg")
@pytest.mark.parametrize("leave_off", [800_000, 840_000])
@pytest.mark.parametrize("b_frames", [0, 2])
def test_begins_and_ends_at_the_frame_that_was_asked_for(tmp_path, record_film, judge, b_frames, leave_off):
    paths = record_film(film(frames=100, gop=25, b_frames=b_frames))
    whole = cut_clip(tmp_path, CutClip(segments=paths, output="whole.mp4"))
    cut = cut_clip(tmp_path, CutClip(segments=paths[1:], output="cut.mp4", skip=320_000, leave_off=leave_off))
    assert cut.duration == whole.duration - 1_320_000 - leave_off
    shown, wanted = judge.frames(tmp_path / cut.output), judge.frames(tmp_path / whole.output)
    assert len(wanted) == 100
    assert shown[0] == wanted[33], "the very frame that was asked for is the first"
    before_end = 67 - leave_off // 40_000
    assert shown[:before_end] == wanted[33 : 33 + before_end], "none before the end is missing"
    assert len(shown) - before_end <= b_frames, "others are decoded from what is after the end"
    assert judge.decode(tmp_path / cut.output) == ""
    data = (tmp_path / cut.output).read_bytes()
    assert b"elst" in data
    assert data.index(b"moov") < data.index(b"mdat")


@pytest.mark.long("ffmpeg")
@pytest.mark.parametrize("later", [0, 200_000, 600_000, 1_000_000])
def test_begins_on_time_within_an_intra_refresh(tmp_path, record_film, judge, later):
    """The lead-in holds all that the first pictures are decoded from; a player must not begin after it."""
    frames = []
    for frame in film(frames=150, gop=30, options="intra-refresh=1"):
        entry, recovery = entry_of(frame.codec, frame.data)
        frames.append(replace(frame, keyframe=entry is not Entry.NONE, entry=entry, recovery=recovery))
    paths = record_film(frames)
    assert len(paths) == 5
    cut = cut_clip(tmp_path, CutClip(segments=paths[:4], output="cut.mp4", skip=2_400_000 + later))
    assert len(judge.frames(tmp_path / cut.output)) == 60 - later // 40_000
    assert judge.decode(tmp_path / cut.output) == ""


@pytest.mark.long("ffmpeg")
def test_h264_and_h265_are_never_in_one_clip(tmp_path, record_film, judge):
    paths = record_film(joined(film("h264", frames=75, b_frames=2), film("h265", frames=75, b_frames=0)))
    first, second = paths[:3], paths[3:]
    for held, skip, leave_off in ((second, 320_000, 0), (first, 0, 0), (first, 320_000, 400_000)):
        cut = cut_clip(tmp_path, CutClip(segments=paths, output="cut.mp4", skip=skip, leave_off=leave_off))
        assert judge.decode(tmp_path / "cut.mp4") == ""
        alone = CutClip(segments=held, output="alone.mp4", skip=skip if held is first else 0)
        assert cut.duration == cut_clip(tmp_path, alone).duration == 3_000_000 - alone.skip
        assert judge.frames(tmp_path / "cut.mp4") == judge.frames(tmp_path / "alone.mp4")


@pytest.mark.long("ffmpeg")
@pytest.mark.parametrize("b_frames", [(0, 2), (2, 0)])
def test_where_reordering_begins_or_ends_the_pictures_follow_without_a_pause(tmp_path, record_film, judge, b_frames):
    paths = record_film(joined(*(film("h264", frames=75, b_frames=number) for number in b_frames)))
    cut = cut_clip(tmp_path, CutClip(segments=paths, output="x.mp4"))
    probed = judge.probe(tmp_path / "x.mp4")
    shown = sorted(float(packet["pts_time"]) for packet in probed["packets"])
    assert shown == pytest.approx([0.04 * number for number in range(150)], abs=0.001)
    assert float(probed["format"]["duration"]) == pytest.approx(cut.duration / 1e6, abs=0.001) == 6.0
    assert judge.decode(tmp_path / "x.mp4") == ""


@pytest.mark.long("ffmpeg")
def test_pictures_of_another_size_are_in_the_same_clip(tmp_path, record_film, judge):
    paths = record_film(joined(film(frames=50), film(frames=50, width=320, height=192)))
    cut = cut_clip(tmp_path, CutClip(segments=paths, output="x.mp4"))
    assert cut.duration == 4_000_000
    assert judge.decode(tmp_path / "x.mp4") == ""
    assert len(judge.frames(tmp_path / "x.mp4")) == 100


def changes_of_description(file):
    """The numbers of the pictures at which an MP4 names another sample description, as libav reads it."""
    with av.open(str(file)) as opened:
        packets = [packet for packet in opened.demux(video=0) if packet.size]
        kinds = [[side.data_type for side in packet.iter_sidedata()] for packet in packets]
    return [number for number, found in enumerate(kinds) if "new_extradata" in found]


@pytest.mark.parametrize("codec", ["h264", "h265"])
@pytest.mark.parametrize("turns", [2, 5])
def test_each_size_of_the_pictures_has_a_sample_description(tmp_path, record_film, codec, turns):
    """Players set up their decoder by it. Only the first one's would show the other pictures green, or not at all."""
    small, large = film(codec, frames=50), film(codec, frames=50, width=320, height=192)
    paths = record_film(joined(*(large if turn % 2 else small for turn in range(turns))))
    cut_clip(tmp_path, CutClip(segments=paths, output="x.mp4"))
    data = (tmp_path / "x.mp4").read_bytes()
    movie = data[data.index(b"moov") - 4 :]
    assert movie.count(b"avcC" if codec == "h264" else b"hvcC") == 2
    assert [path.name for path in tmp_path.glob("*.mp4*")] == ["x.mp4"]
    with av.open(str(tmp_path / "x.mp4")) as opened:
        shown = [(frame.width, frame.height) for frame in opened.decode(video=0)]
    assert shown == [(320, 192) if turn % 2 else (160, 96) for turn in range(turns) for _ in range(50)]
    assert changes_of_description(tmp_path / "x.mp4") == [50 * turn for turn in range(1, turns)]


@pytest.mark.parametrize("b_frames", [0, 2])
@pytest.mark.parametrize("codec", ["h264", "h265"])
def test_the_description_changes_with_the_pictures_also_behind_hidden_ones(tmp_path, record_film, codec, b_frames):
    """The clip begins within a segment, so that its first pictures are only decoded."""
    small, large = (film(codec, frames=50, b_frames=b_frames, **size) for size in ({}, {"width": 320, "height": 192}))
    paths = record_film(joined(small, large, small))
    cut_clip(tmp_path, CutClip(segments=paths, output="x.mp4", skip=720_000))
    with av.open(str(tmp_path / "x.mp4")) as opened:
        packets = [packet for packet in opened.demux(video=0) if packet.size]
        changes = [
            packet for packet in packets if any(side.data_type == "new_extradata" for side in packet.iter_sidedata())
        ]
        assert [round(float(packet.pts * packet.time_base), 2) for packet in changes] == [1.28, 3.28]
        assert all(packet.is_keyframe for packet in changes)


@pytest.mark.parametrize(("codec", "b_frames"), [("h264", 0), ("h264", 2), ("h265", 0), ("h265", 2)])
def test_pictures_are_read_as_libav_reads_them(tmp_path, record_film, codec, b_frames):
    paths = record_film(film(codec, frames=75, b_frames=b_frames))
    assert len(paths) > 2
    for path in paths:
        with av.open(str(tmp_path / path), "r", format="mpegts") as source:
            packets = [packet for packet in source.demux(source.streams.video[0]) if packet.size]
        wanted = [(packet.pts, packet.is_keyframe, bytes(packet)) for packet in packets]
        data = (tmp_path / path).read_bytes()
        assert [(unit.pts, unit.is_entry, unit.data) for unit in access_units(data)] == wanted
        assert picture_times(data) == [pts for pts, _, _ in wanted]


def test_faults_are_told_and_leave_nothing(tmp_path, record):
    paths = record(1)
    with pytest.raises(BadRequest):
        cut_clip(tmp_path, CutClip(segments=paths, output="/etc/x.mp4"))
    with pytest.raises(MediaMissing):
        cut_clip(tmp_path, CutClip(segments=("1/2026010100/5_5.ts",), output="x.mp4"))
    (tmp_path / paths[0]).write_bytes(b"no transport stream")
    with pytest.raises(MediaMissing):
        cut_clip(tmp_path, CutClip(segments=paths, output="x.mp4"))
    with pytest.raises(MediaMissing):
        take_thumbnail(tmp_path, TakeThumbnail(segments=paths[:1], output="x.jpg"))
    assert not list(tmp_path.glob("*x.*"))


@pytest.mark.long("ffmpeg")
def test_a_thumbnail_keeps_proportions_and_is_not_blown_up(tmp_path, record, judge):
    paths = record(1)
    for width, size in ((160, (160, 90)), (1920, (320, 180))):
        taken = take_thumbnail(tmp_path, TakeThumbnail(segments=paths[:1], output="x.jpg", width=width))
        stream = judge.probe(tmp_path / "x.jpg")["streams"][0]
        assert (stream["width"], stream["height"]) == size
        assert taken.size == (tmp_path / "x.jpg").stat().st_size
