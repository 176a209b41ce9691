"""Clips of cameras whose pictures come in another order, or at no steady rate, judged by ffmpeg's decoder."""

from __future__ import annotations

import random
import subprocess
from dataclasses import replace
from itertools import pairwise

import pytest
from hostile_camera import film, on_time
from hypothesis import given
from hypothesis import strategies as st

from drivers.rtsp.timestamps import Timestamps
from gateway.camera_worker.clip import cut_clip
from gateway.camera_worker.clip_times import Footage, plan
from gateway.camera_worker.pre_roll import ToDisk
from gateway.camera_worker.segmenter import Segmenter
from gateway.domain.footage import CutClip, GapReason
from gateway.runtime.clock import Stamp

START = 1_800_000_000_000_000


def unsteady(frames, *, seed: int, reordering: int):
    """The film at times that nobody could guess, with the decoding times that a connection would find for them."""
    chance = random.Random(seed)
    at, times = 0, {}
    for pts in sorted(frame.pts for frame in frames):
        times[pts] = at
        at += chance.choice([1_800, 3_000, 3_600, 9_000, 27_000])
    clock = Timestamps(reordering=reordering)
    told = []
    for frame in frames:
        pts, dts = clock.times(times[frame.pts] + 900_000, times[frame.pts] / 90_000)
        told.append(replace(frame, pts=pts, dts=dts))
    assert not clock.repaired
    return told


def shown(judge, file) -> list[tuple[float, str]]:
    """Each picture that ffmpeg shows: when, in seconds, and its hash."""
    run = subprocess.run(
        [judge.ffmpeg, "-v", "error", "-i", str(file), "-an", "-fps_mode", "passthrough", "-enc_time_base", "1:90000",
         "-f", "framemd5", "-"], capture_output=True, timeout=20, check=True,
    )  # fmt: skip
    assert not run.stderr
    rows = [line.split(",") for line in run.stdout.decode().splitlines() if not line.startswith("#")]
    return [(int(row[2]) / 90_000, row[5].strip()) for row in rows]


@pytest.mark.long("ffmpeg")
@pytest.mark.parametrize("skip", [0, 730_000])
@pytest.mark.parametrize("b_frames", [0, 2])
@pytest.mark.parametrize("codec", ["h264", "h265"])
def test_each_picture_is_shown_when_the_camera_showed_it(tmp_path, judge, codec, b_frames, skip):
    seed = random.randrange(10**6)
    print("seed", seed)
    frames = unsteady(film(codec, frames=150, gop=25, b_frames=b_frames), seed=seed, reordering=b_frames)
    segments = []
    segmenter = Segmenter(
        camera_id=1, media=tmp_path, segment_seconds=1.0, shelf=ToDisk(media=tmp_path, finished=segments.append)
    )
    for frame in frames:
        segmenter.push(on_time(frame), Stamp(START + frame.pts * 100 // 9, trusted=True))
    segmenter.disconnect(GapReason.NONE)
    assert sum(segment.frames for segment in segments) == 150
    paths = tuple(segment.path for segment in segments)
    whole = cut_clip(tmp_path, CutClip(segments=paths, output="whole.mp4"))
    pictures = shown(judge, tmp_path / whole.output)
    times = sorted((frame.pts - 900_000) / 90_000 for frame in frames)
    assert len(pictures) == 150
    assert [at for at, _ in pictures] == pytest.approx(times, abs=0.001)
    leave_off = 1_110_000
    cut = cut_clip(tmp_path, CutClip(segments=paths, output="cut.mp4", skip=skip, leave_off=leave_off))
    begin = max(at for at in times if at <= skip / 1e6)
    end = (whole.duration - leave_off) / 1e6
    wanted = [(at - begin, hashed) for at, (_, hashed) in zip(times, pictures, strict=True) if begin <= at < end]
    seen = shown(judge, tmp_path / cut.output)
    assert [hashed for _, hashed in seen] == [hashed for _, hashed in wanted]
    assert [at for at, _ in seen] == pytest.approx([at for at, _ in wanted], abs=0.001)
    probed = judge.probe(tmp_path / cut.output)
    assert float(probed["format"]["duration"]) == pytest.approx(end - begin, abs=0.001)
    assert cut.duration / 1e6 == pytest.approx(end - begin, abs=0.001)


@given(
    st.lists(st.lists(st.integers(1, 9_000), min_size=1, max_size=12), min_size=1, max_size=5),
    st.randoms(use_true_random=False),
    st.integers(0, 3),
    st.floats(0, 0.9),
    st.floats(0, 0.9),
)
def test_whatever_the_times_decoding_goes_on_and_showing_is_kept(steps, chance, reorder, skip, leave_off):
    segments, at = [], 1_000
    for each in steps:
        times, begun = [], at
        for step in each:
            times.append(at)
            at += step
        coded = times[:1]
        rest = times[1:]
        while rest:
            coded.append(rest.pop(chance.randrange(min(len(rest), reorder + 1))))
        segments.append(Footage(duration=(at - begun) * 100 // 9, times=coded))
    whole = sum(segment.duration for segment in segments)
    begin, end = int(whole * skip), whole - int(whole * leave_off)
    if end <= begin:
        return
    planned = plan(segments, skip=begin, end=end)
    pictures = [picture for place in planned.places for picture in place.pictures]
    assert all(picture.dts <= picture.pts and picture.lasts > 0 for picture in pictures)
    assert all(one.dts < other.dts for one, other in pairwise(pictures))
    for place, segment in zip(planned.places, segments, strict=True):
        assert [picture.pts - place.shift for picture in place.pictures] == list(segment.times[: len(place.pictures)])
    assert -2 <= planned.lasts - (end - begin) * 9 / 100 <= 9_001
    source = [t + place.shift for place, segment in zip(planned.places, segments, strict=True) for t in segment.times]
    kept = [picture.pts for picture in pictures if 0 <= picture.pts < planned.lasts]
    assert sorted(kept) == sorted(time for time in source if 0 <= time < planned.lasts)
    assert min(kept) == 0, "it begins with a picture"
