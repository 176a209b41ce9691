import hashlib
from dataclasses import replace
from itertools import pairwise

import pytest

from drivers.rtsp import h264
from drivers.rtsp.frames import Entry
from gateway.camera_worker.pre_roll import ToDisk
from gateway.camera_worker.segment_file import DiskFailed
from gateway.camera_worker.segmenter import Segmenter
from gateway.domain.footage import GapReason, parse_segment_path
from gateway.runtime.clock import Stamp

START = 1_800_000_000_000_000
UPTIME = 50.0


class Recording:
    def __init__(self, media, **more):
        self.media = media
        self.segments = []
        self.segmenter = Segmenter(
            camera_id=3,
            media=media,
            segment_seconds=1.0,
            shelf=ToDisk(media=media, finished=self.segments.append),
            **more,
        )

    def push(self, frames, *, wall=START, uptime=UPTIME):
        """Push frames as they would arrive, from the given wall time and uptime on."""
        return [
            self.segmenter.push(replace(frame, arrived=uptime + at / 1e6), Stamp(micros=wall + at, trusted=True))
            for frame, at in ((frame, (frame.pts - frames[0].pts) * 100 // 9) for frame in frames)
        ]

    def files(self):
        return [self.media / segment.path for segment in self.segments]


@pytest.fixture
def recording(tmp_path):
    return Recording(tmp_path)


def test_begins_at_a_keyframe_and_names_its_files_by_what_they_hold(recording, encoded):
    frames = encoded(4.5)
    taken = recording.push(frames[3:])
    assert taken.index(True) == 7
    recording.segmenter.disconnect(GapReason.CAMERA)
    assert [s.duration for s in recording.segments] == [1_000_000, 1_000_000, 1_000_000, 500_000]
    assert [s.gap for s in recording.segments] == [GapReason.STARTED, *[GapReason.NONE] * 3]
    assert all(a.started_at + a.duration == b.started_at for a, b in pairwise(recording.segments))
    for segment in recording.segments:
        assert parse_segment_path(segment.path) == (3, segment.started_at, segment.duration)
        assert segment.clock_trusted
        assert segment.sha256 == hashlib.sha256((recording.media / segment.path).read_bytes()).hexdigest()
    assert [s.frames for s in recording.segments] == [10, 10, 10, 5]


def test_both_clocks_go_with_each_segment_and_a_set_one_moves_one_alone(tmp_path, encoded):
    recording = Recording(tmp_path, boot_id="run")
    frames = encoded(4)
    recording.push(frames[:20])
    recording.push(frames[20:], wall=START + 100_000_000, uptime=UPTIME + 2)
    recording.segmenter.disconnect(GapReason.NONE)
    assert [s.monotonic - UPTIME * 1e6 for s in recording.segments] == [0, 1_000_000, 2_000_000, 3_000_000]
    assert [s.started_at - START for s in recording.segments] == [0, 1_000_000, 100_000_000, 101_000_000]
    assert {s.boot_id for s in recording.segments} == {"run"}


def test_groups_that_get_longer_are_cut_below_what_a_playlist_promises(recording, encoded):
    """The playlist's target duration is 2 s, so each segment must be shorter than 2.5 s (RFC 8216, 4.3.3.1)."""
    frames = [replace(frame, keyframe=number % 80 == 0) for number, frame in enumerate(encoded(26))]
    recording.push(frames[:90])
    recording.segmenter.longest_ticks = 225_000
    recording.push(frames[90:170], wall=START + 9_000_000, uptime=UPTIME + 9)
    recording.segmenter.longest_ticks = 0
    recording.push(frames[170:], wall=START + 17_000_000, uptime=UPTIME + 17)
    recording.segmenter.disconnect(GapReason.NONE)
    assert [segment.duration // 100_000 for segment in recording.segments] == [80, 24, 24, 24, 8, 80, 20]
    entries = [segment.entry for segment in recording.segments]
    assert entries == [Entry.IDR, Entry.IDR, *[Entry.NONE] * 3, Entry.IDR, Entry.IDR]
    assert all(a.started_at + a.duration == b.started_at for a, b in pairwise(recording.segments))
    assert sum(segment.frames for segment in recording.segments) == 260


@pytest.mark.long("ffmpeg")
def test_parameter_sets_are_put_before_a_keyframe_that_lacks_them(recording, encoded, judge):
    frames = encoded(2)
    sps, pps = h264.parameter_sets(frames[0].data)
    bare = []
    for frame in frames:
        units = [u for u in h264.nal_units(frame.data) if h264.nal_type(u) not in (h264.SPS, h264.PPS)]
        bare.append(replace(frame, data=b"".join(h264.START_CODE + unit for unit in units)))
    recording.segmenter.connect(h264.video_format(sps, pps))
    recording.push(bare)
    recording.segmenter.disconnect(GapReason.CAMERA)
    assert [judge.decode(file) for file in recording.files()] == ["", ""]


@pytest.mark.long("ffmpeg")
def test_a_change_of_resolution_cuts_at_once(recording, encoded, judge):
    small, large = encoded(0.5), encoded(1, width=640, height=360)
    shift = small[-1].dts + 9_000
    recording.push([*small, *(replace(f, pts=f.pts + shift, dts=f.dts + shift) for f in large)])
    recording.segmenter.disconnect(GapReason.CAMERA)
    assert [(s.width, s.height, s.gap) for s in recording.segments] == [
        (320, 180, GapReason.STARTED),
        (640, 360, GapReason.NONE),
    ]
    assert [judge.decode(file) for file in recording.files()] == ["", ""]


def test_a_jump_of_the_timestamps_is_a_gap(recording, encoded):
    frames = encoded(2)
    recording.push(frames)
    recording.push(frames, wall=START + 5_000_000, uptime=UPTIME + 5)
    recording.segmenter.disconnect(GapReason.NONE)
    assert [s.gap for s in recording.segments] == [
        GapReason.STARTED, GapReason.NONE, GapReason.CAMERA, GapReason.NONE,
    ]  # fmt: skip
    assert recording.segments[2].started_at == START + 5_000_000


def test_pictures_that_come_rarely_are_no_gap(recording, encoded):
    (first, *_) = encoded(1)
    rare = [replace(first, pts=number * 2_000_000, dts=number * 2_000_000) for number in range(8)]
    recording.push(rare)
    recording.segmenter.disconnect(GapReason.NONE)
    assert [s.gap for s in recording.segments] == [GapReason.STARTED, *[GapReason.NONE] * 7]


def test_a_stepped_clock_is_a_gap_and_nothing_is_dropped(recording, encoded):
    frames = encoded(3)
    recording.push(frames[:10])
    recording.push(frames[10:], wall=START + 100_000_000, uptime=UPTIME + 1)
    recording.segmenter.disconnect(GapReason.NONE)
    assert [s.gap for s in recording.segments] == [GapReason.STARTED, GapReason.CLOCK, GapReason.NONE]
    assert recording.segments[1].started_at == START + 100_000_000
    assert sum(s.frames for s in recording.segments) == 30


def test_pictures_that_stay_late_by_both_clocks_are_no_clock_that_was_set(recording, encoded):
    frames = encoded(13)
    recording.push(frames[:20])
    recording.push(frames[20:], wall=START + 2_900_000, uptime=UPTIME + 2.9)
    recording.segmenter.disconnect(GapReason.NONE)
    assert {s.gap for s in recording.segments} == {GapReason.STARTED, GapReason.NONE, GapReason.TIMES}


def test_frames_held_up_for_a_whole_segment_leave_no_gap(recording, encoded):
    """A busy machine or network: frames are late by both clocks, and prompt again afterwards."""
    frames = encoded(6)
    recording.push(frames[:20])
    recording.push(frames[20:30], wall=START + 2_900_000, uptime=UPTIME + 2.9)
    recording.push(frames[30:], wall=START + 3_000_000, uptime=UPTIME + 3)
    recording.segmenter.disconnect(GapReason.NONE)
    assert [s.gap for s in recording.segments] == [GapReason.STARTED, *[GapReason.NONE] * 5]
    assert all(a.started_at + a.duration == b.started_at for a, b in pairwise(recording.segments))


def test_without_keyframes_segments_are_cut_by_time_and_marked(recording, encoded):
    frames = encoded(1)
    endless = [replace(frames[1], pts=n * 90_000, dts=n * 90_000) for n in range(1, 70)]
    taken = recording.push([frames[0], *endless])
    assert all(taken)
    recording.segmenter.disconnect(GapReason.NONE)
    assert [s.gap for s in recording.segments] == [GapReason.STARTED, *[GapReason.NONE] * 5]
    assert [s.entry for s in recording.segments] == [Entry.IDR, *[Entry.NONE] * 5]
    assert max(s.duration for s in recording.segments) == 12_000_000, "the segment's own length and the longest wait"
    for file in recording.files()[1:]:
        assert not file.read_bytes()[2 * 188 + 5] & 0x40, "it is not said to be a random access point"


def test_a_recovery_point_tells_when_its_pictures_are_whole(recording, encoded):
    frames = [replace(frame, keyframe=False) for frame in encoded(4)]
    frames[0] = replace(frames[0], keyframe=True, entry=Entry.RECOVERY, recovery=7)
    frames[20] = replace(frames[20], keyframe=True, entry=Entry.RECOVERY, recovery=25)
    recording.push(frames)
    recording.segmenter.disconnect(GapReason.NONE)
    assert [(s.entry, s.whole_after) for s in recording.segments] == [
        (Entry.RECOVERY, 700_000), (Entry.RECOVERY, 2_500_000),
    ]  # fmt: skip


def test_a_missing_media_folder_is_a_disk_fault_and_is_not_made(tmp_path, encoded):
    recording = Recording(tmp_path / "unmounted")
    frames = encoded(2)
    with pytest.raises(DiskFailed):
        recording.push(frames[:1])
    assert not (tmp_path / "unmounted").exists()
    (tmp_path / "unmounted").mkdir()
    recording.push(frames[1:])
    recording.segmenter.disconnect(GapReason.NONE)
    assert len(recording.segments) == 1


def test_a_keyframe_ends_a_segment_that_none_began_however_short(recording, encoded):
    """A camera whose keyframes are a little farther apart than the longest group: time cuts right before each."""
    frames = encoded(6)  # a keyframe each second
    for place, frame in enumerate(frames):
        if frame.keyframe and place % 20:
            frames[place] = replace(frame, keyframe=False)
        elif place and not frame.keyframe and place % 20 == 17:
            frames[place] = replace(frame, keyframe=True, entry=Entry.NONE)
    recording.push(frames)
    recording.segmenter.disconnect(GapReason.CAMERA)
    entries = [(segment.frames, segment.entry) for segment in recording.segments]
    assert entries == [(17, Entry.IDR), (3, Entry.NONE)] * 3
