"""Sound in segments and clips: what ffmpeg hears, and how far it is from the pictures."""

from __future__ import annotations

import subprocess
from contextlib import AsyncExitStack
from itertools import pairwise

import pytest
from hostile_camera import HostileCamera, Script, film, sound

from drivers.rtsp.frames import AudioCodec, AudioFormat, EncodedAudio, VideoCodec
from gateway.camera_worker.aac import AacEncoder
from gateway.camera_worker.salvage import whole_frames
from gateway.camera_worker.transport_stream import TransportMuxer, announces_sound, sound_name
from gateway.domain.footage import GapReason, WorkerCamera

AAC, MU, A, NONE, REFUSED = range(1, 6)
TONE, EDGE = 0.05, 0.08


def microphones():
    """Each camera's script, and whether its sound is asked for. Encoded here: every process of a run imports."""
    return {
        AAC: (Script(film=film(), sound=sound("aac"), reports=True), True),
        MU: (Script(film=film(), sound=sound("pcmu"), sound_late=0.3, reports=True), True),
        A: (Script(film=film(codec="h265", b_frames=2), sound=sound("pcma")), True),
        NONE: (Script(film=film(), sound=sound("aac")), False),
        REFUSED: (Script(film=film(), sound=sound("aac"), sound_status=461), True),
    }


def loudness(judge, file) -> list[float]:
    """The mean of each 10 ms of the file's sound, from its very beginning; the gaps are silent."""
    run = subprocess.run(
        [judge.ffmpeg, "-v", "error", "-i", str(file), "-vn", "-af", "aresample=8000:async=1:first_pts=0",
         "-ac", "1", "-f", "s16le", "-"], capture_output=True, timeout=20, check=True,
    )  # fmt: skip
    assert not run.stderr
    samples = memoryview(run.stdout).cast("h")
    return [sum(map(abs, samples[at : at + 80])) / 80 / 32_768 for at in range(0, len(samples) - 79, 80)]


@pytest.mark.long("ffmpeg")
async def test_sound_is_recorded_where_it_is_asked_for_and_stays_in_step(start_worker, judge):
    cameras = microphones()
    async with AsyncExitStack() as stack:
        served = {number: await stack.enter_async_context(HostileCamera(told)) for number, (told, _) in cameras.items()}
        worker = await start_worker()
        await worker.assign(
            *(
                WorkerCamera(camera_id=number, url=served[number].url(), segment_seconds=0.5, audio=audio)
                for number, (_, audio) in cameras.items()
            )
        )
        await worker.until(lambda: all(len(worker.segments(number)) >= 4 for number in cameras), 25.0)
        for number in cameras:
            segments = worker.segments(number)
            files = [worker.media / segment.path for segment in segments]
            assert [segment.gap for segment in segments[1:]] == [GapReason.NONE] * (len(segments) - 1), number
            assert judge.decode(*files) == "", number
            names = {segment.codec.partition(",")[2] for segment in segments}
            streams = {stream["codec_name"] for stream in judge.probe(files[1])["streams"]}
            if number in (AAC, MU, A):
                assert names == {"mp4a.40.2"}
                assert streams == {"aac", "hevc" if number == A else "h264"}
                assert_sounds_run_on(judge, files, number)
            else:
                assert names == {""}
                assert streams == {"h264"}
            assert judge.decode(files[1]) == "", number
        await assert_clips_sound(worker, judge)
        reports = [report for report in worker.reports if report.kind == "camera" and report.condition == "recording"]
        told = {number: {one.detail for one in reports if one.camera_id == number} for number in cameras}
        silent = "its sound is not recorded: the camera refused to send its audio"
        assert told == {number: {silent if number == REFUSED else ""} for number in cameras}


def assert_sounds_run_on(judge, files, number):
    """From one segment to the next no unit is missing or twice."""
    times = []
    for file in files:
        packets = [packet for packet in judge.probe(file)["packets"] if packet["codec_type"] == "audio"]
        times += [float(packet["pts_time"]) for packet in packets]
    step = 1024 / (44_100 if number == AAC else 32_000)
    steps = [after - before for before, after in pairwise(times)]
    assert len(steps) > 12
    # a clock that is set right once, by the first reports, is not heard again
    assert sum(abs(one - step) > 0.002 for one in steps) <= 1


async def assert_clips_sound(worker, judge):
    for number in (AAC, MU, A, NONE):
        segments = worker.segments(number)[1:4]
        body = {"segments": [each.path for each in segments], "output": f"{number}.mp4", "skip": 240_000}
        status, told = await worker.ask("POST", "/clips", body)
        assert status == 200, told
        clip = worker.media / told["output"]
        assert judge.decode(clip) == "", number
        kinds = [stream["codec_type"] for stream in judge.probe(clip)["streams"]]
        assert kinds == (["video"] if number == NONE else ["video", "audio"])
        if number == NONE:
            continue
        heard = loudness(judge, clip)
        held = sound_of(judge, segments, [worker.media / each.path for each in segments], skip=0.24)
        assert held > 1.0, number
        assert held - 0.03 < len(heard) / 100 < held + 0.2, f"camera {number}: the clip sounds as long as its segments"
        assert_in_step(heard, (worker.segments(number)[0].duration + 240_000) / 1e6, number)


def assert_in_step(heard, begin, number):
    """The tone sounds in the first half of each second that the pictures show; what came late may miss at the end."""
    wrong = [
        at
        for at, level in enumerate(heard[: -60 if number == MU else -20])
        if EDGE < (begin + at / 100) % 0.5 < 0.5 - EDGE and (level > TONE) != ((begin + at / 100) % 1 < 0.5)
    ]
    assert wrong == [], number


def sound_of(judge, segments, files, *, skip) -> float:
    """Seconds from the clip's first picture to the end of the sound that its segments hold, or of its pictures."""
    packets = [packet for file in files for packet in judge.probe(file)["packets"]]
    first = min(float(packet["pts_time"]) for packet in packets if packet["codec_type"] == "video")
    end = max(
        float(packet["pts_time"]) + float(packet["duration_time"])
        for packet in packets
        if packet["codec_type"] == "audio"
    )
    return min(end - first, sum(segment.duration for segment in segments) / 1e6) - skip


def units(codec: str, *, count: int, begin: int = 90_000):
    """Sound of a camera without a network."""
    what = sound(codec)
    format_ = AudioFormat(AudioCodec(codec), what.rate, 2 if codec == "aac" else 1)
    return [
        EncodedAudio(unit, begin + at * what.size * 90_000 // what.rate, 0.0, format_)
        for at, unit in enumerate(what.units[:count])
    ]


@pytest.mark.parametrize("codec", ["pcmu", "pcma"])
def test_telephone_sound_keeps_its_time_through_the_encoder(codec):
    pieces = units(codec, count=150)
    encoder = AacEncoder(pieces[0].format)
    made = [unit for piece in pieces for unit in encoder.encode(piece)]
    assert {after.pts - before.pts for before, after in pairwise(made)} == {2_880}
    # the encoder's first unit is its start-up, before the sound
    assert made[0].pts == pieces[0].pts - 2_880
    later = [EncodedAudio(piece.data, piece.pts + 900_000, 0.0, piece.format) for piece in pieces]
    made = [unit for piece in later for unit in encoder.encode(piece)]
    assert any(unit.pts == later[0].pts for unit in made)


@pytest.mark.parametrize("codec", ["pcmu", "pcma"])
def test_telephone_sound_of_two_channels_lasts_as_long_as_that_of_one(codec):
    one = units(codec, count=150)
    stereo = AudioFormat(AudioCodec(codec), 8_000, 2)
    two = [EncodedAudio(bytes(byte for byte in piece.data for _ in range(2)), piece.pts, 0.0, stereo) for piece in one]
    made = [
        [unit.pts for piece in pieces for unit in encoder.encode(piece)]
        for pieces, encoder in ((one, AacEncoder(one[0].format)), (two, AacEncoder(stereo)))
    ]
    assert made[0] == made[1]


def test_sound_is_announced_and_named_and_a_torn_file_keeps_its_pictures():
    muxer = TransportMuxer(codec=VideoCodec.H264, sound=AudioFormat(AudioCodec.AAC, 44_100, 2))
    pieces = units("aac", count=60)
    assert muxer.mux_sound(pieces[0]) == b""
    written = b""
    for frame, piece in zip(film()[:20], pieces, strict=False):
        written += muxer.mux(frame, frame.data) + muxer.mux_sound(piece)
    assert announces_sound(written)
    assert sound_name(written) == "mp4a.40.2"
    whole = whole_frames(written)
    assert (whole.frames, whole.ticks) == (19, 19 * 3_600)
    for cut in range(len(written) // 2, len(written), 5_003):
        torn = whole_frames(written[:cut])
        assert torn.size <= cut
        assert torn.first == whole.first
    silent = TransportMuxer(codec=VideoCodec.H264)
    assert not announces_sound(silent.mux(film()[0], film()[0].data))
