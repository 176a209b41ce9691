"""Parts of segments: together they are the segment, at any frame rate, and they come only while somebody wants them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from drivers.rtsp.frames import TICKS_PER_SECOND, AudioCodec, AudioFormat, EncodedAudio, EncodedFrame
from gateway.camera_worker.pre_roll import ToDisk
from gateway.camera_worker.segmenter import Parts, Segmenter
from gateway.domain.footage import GapReason
from gateway.runtime.clock import Stamp

START = 1_800_000_000_000_000
PART_TICKS = 27_000


class Recording:
    """A segmenter whose frames come ten a second, each written at once."""

    def __init__(self, media):
        self.media = media
        self.segments = []
        self.parts = []
        self.segmenter = Segmenter(
            camera_id=3, media=media, segment_seconds=1.0,
            shelf=ToDisk(media=media, finished=self.segments.append), part_written=self.parts.append,
        )  # fmt: skip

    def push(self, frames):
        for frame in frames:
            at = frame.pts * 100 // 9
            self.segmenter.push(replace(frame, arrived=at / 1e6), Stamp(micros=START + at, trusted=True))
            self.segmenter.flush()

    def of(self, segment):
        return [part for part in self.parts if part.file == segment.grew_as]


@pytest.fixture
def recording(tmp_path):
    return Recording(tmp_path)


def test_the_parts_of_a_segment_are_its_bytes_and_last_as_long(recording, encoded):
    recording.segmenter.part_ticks = PART_TICKS
    recording.push(encoded(4.5))
    recording.segmenter.disconnect(GapReason.CAMERA)
    first, *others = recording.segments
    assert recording.of(first) == [], "it follows an interruption, so nobody knows its number before it is finished"
    assert len(others) == 4
    for before, segment in pairwise(recording.segments):
        parts = recording.of(segment)
        assert [part.index for part in parts] == list(range(len(parts)))
        assert [part.follows for part in parts] == [before.grew_as] * len(parts)
        assert parts[0].offset == 0
        assert all(one.offset + one.length == other.offset for one, other in pairwise(parts))
        assert parts[-1].offset + parts[-1].length == (recording.media / segment.path).stat().st_size
        assert sum(part.duration for part in parts) == segment.duration
        assert [part.independent for part in parts] == [True, *[False] * (len(parts) - 1)]
        assert all(part.duration == 300_000 for part in parts[:-1])


def test_whoever_begins_to_watch_in_the_middle_gets_the_parts_from_the_segments_start(recording, encoded):
    frames = encoded(3)
    recording.push(frames[:17])
    assert recording.parts == []
    recording.segmenter.part_ticks = PART_TICKS
    recording.segmenter.flush()
    assert [(part.index, part.duration) for part in recording.parts] == [(0, 300_000), (1, 300_000)]
    recording.push(frames[17:25])
    recording.segmenter.part_ticks = 0
    told = len(recording.parts)
    recording.push(frames[25:])
    assert len(recording.parts) == told


def test_a_segment_in_another_format_has_no_parts(recording, encoded):
    recording.segmenter.part_ticks = PART_TICKS
    small, large = encoded(2), encoded(2, width=640, height=360)
    shift = small[-1].dts + 9_000
    recording.push([*small, *(replace(each, pts=each.pts + shift, dts=each.dts + shift) for each in large)])
    recording.segmenter.disconnect(GapReason.NONE)
    assert [bool(recording.of(segment)) for segment in recording.segments] == [False, True, False, True]


def test_a_segment_after_a_loss_has_no_parts(recording, encoded):
    recording.segmenter.part_ticks = PART_TICKS
    frames = encoded(4)
    recording.push(frames[:25])
    recording.segmenter.lose(GapReason.PACKETS)
    recording.push(frames[26:])
    recording.segmenter.disconnect(GapReason.NONE)
    assert [bool(recording.of(segment)) for segment in recording.segments] == [False, True, True, False]


@pytest.mark.parametrize(("rate", "wanted", "lasts"), [(1, 1.0, 1.0), (5, 0.4, 0.4), (25, 0.4, 0.4), (60, 0.4, 0.4)])
def test_parts_are_as_long_as_is_wanted_at_any_frame_rate(rate, wanted, lasts):
    parts = Parts()
    step = TICKS_PER_SECOND // rate
    for number in range(rate * 4):
        parts.note(EncodedFrame(b"", number * step, number * step, keyframe=not number, arrived=0.0), at=number * 188)
    made = [*parts.ended(int(wanted * TICKS_PER_SECOND))]
    made.append(parts.rest(size=rate * 4 * 188, ticks=4 * TICKS_PER_SECOND))
    assert {part.ticks / TICKS_PER_SECOND for part in made} == {lasts}
    assert sum(part.length for part in made) == rate * 4 * 188


def test_sound_is_in_the_parts_too(recording, encoded):
    sound = AudioFormat(AudioCodec.AAC, 16_000, 1)
    recording.segmenter.connect(None, sound)
    recording.segmenter.part_ticks = PART_TICKS
    for frame in encoded(2.5):
        recording.push([frame])
        recording.segmenter.push_sound(EncodedAudio(b"\x21" * 300, frame.pts, frame.pts / TICKS_PER_SECOND, sound))
    recording.segmenter.disconnect(GapReason.NONE)
    _, second, third = recording.segments
    for segment in (second, third):
        parts = recording.of(segment)
        assert "mp4a" in segment.codec
        assert sum(part.length for part in parts) == (recording.media / segment.path).stat().st_size
