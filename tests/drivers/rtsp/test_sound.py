"""A camera's sound: each unit as it was encoded, on the time line of the pictures."""

from __future__ import annotations

import asyncio
from contextlib import closing
from itertools import chain, pairwise

import pytest
from hostile_camera import HostileCamera, Script, film, sound
from hypothesis import given
from hypothesis import strategies as st

from drivers.contract import ProtocolViolation
from drivers.rtsp.audio_clock import AudioClock, PictureTime, SenderReport
from drivers.rtsp.audio_track import AacPackets, audible, packets_of
from drivers.rtsp.client.source import RtspSource
from drivers.rtsp.frames import AudioCodec, AudioFormat, EncodedAudio, EncodedFrame
from drivers.rtsp.sdp import Encoding, Media, parse_description

IN_STEP = 90_000 * 5 // 100


def read(url, seconds, **more):
    """Read `seconds` of pictures; return the source, its frames, its sound."""
    with closing(RtspSource(url=url, audio=True, stall_seconds=2.0, **more)) as source:
        source.open()
        frames, sounds = [], []
        for each in chain.from_iterable(source.batches()):
            (sounds if isinstance(each, EncodedAudio) else frames).append(each)
            if isinstance(each, EncodedFrame) and each.pts - frames[0].pts >= seconds * 90_000:
                return source, frames, sounds
    raise AssertionError


async def heard(told: Script, seconds=0.8, **more):
    async with HostileCamera(told) as camera:
        return await asyncio.to_thread(read, camera.url(), seconds, **more)


def offsets(frames, sounds, what) -> list[int]:
    """Return how far each unit is from where it belongs, in ticks."""
    at = {unit: number for number, unit in reversed(list(enumerate(what.units)))}
    numbers = [at[each.data] for each in sounds]
    found = []
    for each, number in zip(sounds, numbers, strict=True):
        found.append(each.pts - frames[0].pts - number * what.size * 90_000 // what.rate)
    return found


def told_apart(what):
    """Units that occur once, so that each tells its number."""
    return {unit for unit in what.units if what.units.count(unit) == 1}


VIDEO = "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n"
SPEAKER, MIC = (f"m=audio 0 RTP/AVP 0\r\na=control:{name}\r\n" for name in ("speaker", "mic"))


@pytest.mark.parametrize(
    "sections",
    [
        VIDEO + SPEAKER + "a=sendonly\r\n" + MIC + "a=recvonly\r\n",
        VIDEO + "a=recvonly\r\n" + SPEAKER + "a=sendonly\r\n" + MIC + "a=recvonly\r\n",
        VIDEO + "a=sendonly\r\n" + SPEAKER + "a=recvonly\r\n" + MIC + "a=sendonly\r\n",
        "a=sendonly\r\n" + VIDEO + SPEAKER + "a=recvonly\r\n" + MIC,
        SPEAKER + "a=sendonly\r\n" + MIC + VIDEO,
        VIDEO + SPEAKER + "a=inactive\r\n" + MIC + "a=sendonly\r\n",
        VIDEO + MIC + "a=sendrecv\r\n" + SPEAKER + "a=sendonly\r\n",
        VIDEO + MIC + "a=sendonly\r\n",
        VIDEO + MIC,
    ],
)
def test_the_microphone_is_told_from_the_loudspeaker(sections):
    (chosen, *_), _ = audible(parse_description(sections.encode(), base="rtsp://x"))
    assert chosen.media.control == "rtsp://x/mic"


def test_the_number_of_channels_is_as_announced():
    def format_of(rtpmap):
        told = f"m=audio 0 RTP/AVP 97\r\na=rtpmap:97 {rtpmap}\r\n"
        chosen, why = audible(parse_description(told.encode(), base="rtsp://x"))
        return chosen[0].packets.format.channels if chosen else why

    assert [format_of(f"PCMU/8000{end}") for end in ("", "/1", "/2", "/2 ", "/", "/0", "/x")] == [1, 1, 2, 2, 1, 1, 1]
    assert format_of("PCMA/16000/6") == "the camera's audio has 6 channels"
    assert format_of("opus/48000/2") == 1


@pytest.mark.parametrize("transport", ["tcp", "udp"])
@pytest.mark.parametrize("codec", ["aac", "pcmu", "pcma"])
async def test_each_codec_comes_through_as_it_is(codec, transport):
    what = sound(codec)
    script = Script(film=film(), sound=what, largest_sound=120 if codec == "aac" else 999, names_start=True)
    source, frames, sounds = await heard(script, transport=transport)
    assert source.sound == AudioFormat(AudioCodec(codec), what.rate, 2 if codec == "aac" else 1)
    assert source.why_silent == ""
    assert len(frames) >= 20
    joined = b"".join(what.units * 2)
    assert b"".join(each.data for each in sounds) in joined
    step = what.size * 90_000 // what.rate
    assert {after.pts - before.pts - step for before, after in pairwise(sounds)} <= {0, 1}
    covered = sounds[-1].pts - sounds[0].pts
    assert covered > 0.4 * 90_000


async def test_sender_reports_bring_late_sound_back_into_step():
    what = sound("pcmu")
    known = told_apart(what)
    late = {"film": film(), "sound": what, "sound_late": 0.4}
    told, untold = await asyncio.gather(
        heard(Script(**late, reports=True), seconds=1.6), heard(Script(**late), seconds=1.2)
    )
    _, frames, sounds = told
    with_reports = offsets(frames, [each for each in sounds if each.data in known][5:], what)
    assert max(map(abs, with_reports)) < IN_STEP
    _, frames, sounds = untold
    without = offsets(frames, [each for each in sounds if each.data in known], what)
    assert min(without) > 90_000 * 3 // 10


async def test_a_count_that_jumps_or_wraps_does_not_move_the_sound():
    what = sound("pcmu")
    scripts = [Script(film=film(), sound=what, sound_jumps=jump, pace=1.5) for jump in (5_000_000, -700_000)]
    for _, _, sounds in await asyncio.gather(*(heard(script, seconds=1.5) for script in scripts)):
        assert all(0 < after.pts - before.pts < 90_000 // 2 for before, after in pairwise(sounds))


async def test_pictures_come_though_their_sound_is_refused_or_of_another_kind():
    for status in (403, 461):
        source, frames, sounds = await heard(Script(film=film(), sound=sound("aac"), sound_status=status, pace=4.0))
        assert source.sound is None
        assert source.why_silent == "the camera refused to send its audio"
        assert len(frames) >= 20
        assert not sounds
    source, _, _ = await heard(Script(film=film(), pace=4.0))
    assert source.why_silent == "the camera offers no audio"


def test_why_there_is_none():
    other = Media("audio", "", {111: Encoding("G726-32", 8_000)})
    odd = Media("audio", "", {97: Encoding("MPEG4-GENERIC", 44_100, {"config": "zz"})})
    assert audible([other]) == ([], "the camera's audio is G726-32, neither AAC nor G.711 nor Opus")
    assert audible([odd]) == ([], "the camera's AAC configuration makes no sense")
    (told,), _ = audible([other, odd, *parse_description(sound("aac").description(), base="rtsp://x/")])
    assert told.payload_type == 97


def aac(**parameters) -> AacPackets:
    return AacPackets(Encoding("MPEG4-GENERIC", 48_000, {"config": "1190", **parameters}))


def packet(sequence: int, payload: bytes, timestamp: int = 0) -> bytes:
    return b"\x80\xe1" + sequence.to_bytes(2, "big") + timestamp.to_bytes(4, "big") + bytes(4) + payload


def test_several_units_in_one_packet():
    taken = aac().push(packet(1, b"\x00\x20" + b"\x00\x18\x00\x10" + b"abcde", 0xFFFFFF00))
    assert taken == [(0xFFFFFF00, b"abc"), (0xFFFFFF00 + 1024 & 0xFFFFFFFF, b"de")]
    assert aac().format == AudioFormat(AudioCodec.AAC, 48_000, 2)


def test_a_fragment_lost_is_a_unit_lost_and_no_more():
    packets = aac()
    head = b"\x00\x10\x00\x48"
    assert packets.push(packet(1, head + b"abc")) == []
    assert packets.push(packet(3, head + b"ghi")) == []
    assert packets.push(packet(4, b"\x00\x10\x00\x18xyz")) == [(0, b"xyz")]
    assert packets.push(packet(4, b"\x00\x10\x00\x18xyz")) == []
    for number, part in enumerate((b"abc", b"def", b"ghi")):
        taken = packets.push(packet(5 + number, head + part))
    assert taken == [(0, b"abcdefghi")]


@given(st.lists(st.binary(max_size=60), max_size=6))
def test_rubbish_is_no_sound_and_no_error(payloads):
    packets = aac()
    for number, payload in enumerate(payloads):
        for _, unit in packets.push(packet(number, payload)):
            assert unit in payload or len(payload) < len(unit)


@given(
    st.text(alphabet="0123456789abcdefx", max_size=12),
    st.dictionaries(st.sampled_from(["sizelength", "indexlength", "indexdeltalength"]), st.text(max_size=4)),
)
def test_any_description_is_read_or_refused(config, lengths):
    try:
        packets_of(Encoding("MPEG4-GENERIC", 44_100, {"config": config, **lengths}))
    except ProtocolViolation:
        return


def test_reports_that_cannot_be_true_are_passed_over():
    clock = AudioClock(rate=8_000)
    picture = PictureTime(timestamp=1_000, rate=90_000, pts=500_000, arrived=10.0)
    clock.picture_reported(SenderReport(1 << 32, 1_000))
    clock.sound_reported(SenderReport(900 << 32, 0))
    assert clock.pts(0, 10.0, picture) == 500_000
    clock.sound_reported(SenderReport((1 << 32) + (1 << 31), 160))
    assert clock.pts(160, 10.02, picture) == 545_000


def test_reports_on_both_sides_of_a_pause_are_no_pair():
    """The pictures' report is from before the camera paused for a second, the sound's from after it."""
    clock = AudioClock(rate=8_000)
    clock.begun(picture=90_000, sound=8_000)
    at = PictureTime(timestamp=90_000 * 6, rate=90_000, pts=90_000 * 6, arrived=6.0)
    clock.picture_reported(SenderReport(104 << 32, 90_000 * 5))
    clock.sound_reported(SenderReport(106 << 32, 8_000 * 6))
    assert clock.pts(8_000 * 6, 6.0, at) == 90_000 * 6
    clock.picture_reported(SenderReport(110 << 32, 90_000 * 10))
    clock.sound_reported(SenderReport(111 << 32, 8_000 * 11))
    assert clock.pts(8_000 * 6 + 160, 6.02, at) == 90_000 * 6 + 1_800
    clock.picture_reported(SenderReport(115 << 32, 90_000 * 15))
    clock.sound_reported(SenderReport(116 << 32, 8_000 * 16 - 800))
    assert clock.pts(8_000 * 6 + 320, 6.04, at) == 90_000 * 6 + 3_600, "alone it is not believed"
    clock.picture_reported(SenderReport(120 << 32, 90_000 * 20))
    clock.sound_reported(SenderReport(121 << 32, 8_000 * 21 - 800))
    assert clock.pts(8_000 * 6 + 480, 6.06, at) == 90_000 * 6 + 5_400 + 9_000, "confirmed it is"


def agreed(seconds: int) -> AudioClock:
    """A clock whose two pairs of reports agree: sound and pictures are in step, up to this second."""
    clock = AudioClock(rate=8_000)
    for second in (seconds - 5, seconds):
        clock.picture_reported(SenderReport(100 + second << 32, 90_000 * second))
        clock.sound_reported(SenderReport(100 + second << 32, 8_000 * second))
        at = PictureTime(timestamp=90_000 * second, rate=90_000, pts=90_000 * second, arrived=float(second))
        assert clock.pts(8_000 * second, float(second), at) == at.pts
    return clock


def mixed_reports(clock: AudioClock) -> None:
    """Report the pictures as before a pause of 177 ms, and the sound as after it."""
    clock.picture_reported(SenderReport(111 << 32, 90_000 * 11))
    clock.sound_reported(SenderReport((112 << 32) + int(0.177 * 2**32), 8_000 * 12))


@pytest.mark.parametrize("stall", [3.1, 8.0])
def test_mixed_reports_after_a_stall_do_not_move_the_sound(stall):
    """Packets wait for `stall` seconds and come at once, sound first. Two reports disagree about a pause."""
    clock = agreed(10)
    before = PictureTime(timestamp=90_000 * 10, rate=90_000, pts=90_000 * 10, arrived=10.0)
    assert clock.pts(8_000 * 10 + 160, 10 + stall, before) == 90_000 * 10 + 1_800, "the sound goes on from where it was"
    mixed_reports(clock)
    assert clock.pts(8_000 * 10 + 320, 10 + stall, before) == 90_000 * 10 + 3_600
    after = PictureTime(timestamp=90_000 * 13, rate=90_000, pts=90_000 * 13, arrived=10.02 + stall)
    assert clock.pts(8_000 * 13, 10.02 + stall, after) == after.pts


def test_sound_that_counts_anew_goes_by_its_arrival_and_then_by_agreed_reports():
    clock = agreed(10)
    at = PictureTime(timestamp=90_000 * 12, rate=90_000, pts=90_000 * 12, arrived=12.0)
    assert clock.pts(8_000 * 900, 12.0, at) == at.pts
    mixed_reports(clock)
    assert clock.pts(8_000 * 900 + 160, 12.02, at) == at.pts + 1_800
    for second in (15, 20):
        clock.picture_reported(SenderReport(100 + second << 32, 90_000 * second))
        clock.sound_reported(SenderReport(100 + second << 32, 8_000 * (888 + second) - 800))
        at = PictureTime(timestamp=90_000 * second, rate=90_000, pts=90_000 * second, arrived=float(second))
        clock.pts(8_000 * (888 + second), float(second), at)
    at = PictureTime(timestamp=90_000 * 21, rate=90_000, pts=90_000 * 21, arrived=21.0)
    assert clock.pts(8_000 * 909, 21.0, at) == at.pts + 9_000, "the reports agree on a tenth of a second"
