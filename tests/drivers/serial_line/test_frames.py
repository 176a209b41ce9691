"""Frames: sealed, found in any pieces and among noise, and refused when they are not what they say."""

from __future__ import annotations

import itertools

import pytest
from held_memory import held_bytes
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from drivers.serial_line.frames import Algorithm, Check, FrameSplitter, Framing, Sealing, Size, plain_bytes, template_of

XOR_AT_END = (Check(algorithm=Algorithm.XOR, at=-1),)
FIXED = Framing(start="7F", length=18, checks=(Check(algorithm=Algorithm.SUM_COMPLEMENT, at=-1),))
SIZED = Framing(size=Size(at=0, adds=1), checks=(Check(algorithm=Algorithm.CRC16_MCRF4XX, at=-2),), longest=256)
BUST4 = Framing(
    start="55",
    size=Size(at=1, adds=3, again_at=-1),
    checks=(
        Check(algorithm=Algorithm.XOR, first=2, end=8, at=8),
        Check(algorithm=Algorithm.XOR, first=9, end=-2, at=-2),
    ),
    longest=80,
)
STX_ETX = Framing(start="02", terminator="03", longest=40)
LINES = Framing(terminator={"text": "\r\n"}, longest=40)


def bodies(framing: Framing):
    """Frames of a framing, sealed; printable inside where ends are marked by bytes."""
    if framing.terminator is not None:
        text = st.binary(min_size=1, max_size=20).map(lambda data: bytes(0x20 + byte % 0x5F for byte in data))
        return text.map(lambda body: framing.start + body + framing.terminator)
    if framing.length is not None:
        length = framing.length - len(framing.start)
        return st.binary(min_size=length, max_size=length).map(lambda body: framing.sealed(framing.start + body))
    return st.binary(min_size=14, max_size=60).map(lambda body: framing.sealed(framing.start + body))


def pieces_of(data, cuts):
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[begin:end] for begin, end in itertools.pairwise(edges)]


FRAMINGS = st.sampled_from([FIXED, SIZED, BUST4, STX_ETX, LINES])


@given(FRAMINGS, st.data())
def test_frames_come_out_as_they_went_in_whatever_the_pieces(framing, data):
    frames = data.draw(st.lists(bodies(framing), max_size=5))
    stream = b"".join(frames)
    splitter = FrameSplitter(framing)
    got = [
        frame
        for piece in pieces_of(stream, data.draw(st.lists(st.integers(0, 400), max_size=12)))
        for frame in splitter.feed(piece)
    ]
    assert got == frames
    assert splitter.dropped == 0
    assert not splitter.is_pending


@given(st.sampled_from([FIXED, BUST4, STX_ETX]), st.data(), st.binary(max_size=60))
def test_noise_before_a_frame_costs_the_noise_alone(framing, data, noise):
    noise = noise.replace(framing.start, b"")
    frame = data.draw(bodies(framing))
    splitter = FrameSplitter(framing)
    got = [*splitter.feed(noise), *splitter.feed(frame)]
    assert got == [frame]
    assert splitter.dropped == len(noise)


@pytest.mark.parametrize("framing", [FIXED, SIZED, BUST4], ids=["fixed", "sized", "sized twice"])
def test_a_torn_frame_does_not_hide_the_next_once_the_line_falls_silent(framing):
    frame, torn = (
        framing.sealed(framing.start + bytes(first + 7 * place for place in range(18 - len(framing.start))))
        for first in (11, 60)
    )
    for cut in range(1, len(torn)):
        splitter = FrameSplitter(framing)
        frames, told = [*splitter.feed(torn[:cut] + frame)], splitter.last_dropped
        frames += splitter.end_of_silence()
        assert frames == [frame]
        assert splitter.dropped == cut
        assert torn[:cut] in {told, told + splitter.last_dropped}, "people are shown all of it"
        assert not splitter.is_pending


@given(FRAMINGS, st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=12))
def test_nothing_but_sound_frames_come_out_of_noise(framing, noise, cuts):
    splitter = FrameSplitter(framing)
    frames = [frame for piece in pieces_of(noise, cuts) for frame in splitter.feed(piece)]
    frames += splitter.end_of_silence()
    for frame in frames:
        assert frame.startswith(framing.start)
        assert framing.is_sealed(frame)
        assert len(frame) <= framing.longest
    assert splitter.dropped + sum(map(len, frames)) == len(noise)


@pytest.mark.parametrize("framing", [FIXED, SIZED, BUST4])
@given(data=st.data())
def test_one_spoilt_byte_spoils_the_frame(framing, data):
    frame = data.draw(bodies(framing))
    place = data.draw(st.integers(0, len(frame) - 1))
    spoilt = frame[:place] + bytes((frame[place] ^ data.draw(st.integers(1, 255)),)) + frame[place + 1 :]
    splitter = FrameSplitter(framing)
    assert spoilt not in splitter.feed(spoilt)


def test_a_missing_byte_costs_one_frame_and_not_the_next():
    frame = FIXED.sealed(bytes.fromhex("7F") + bytes(17))
    splitter = FrameSplitter(FIXED)
    assert splitter.feed(frame[:4] + frame[5:] + frame) == (frame,)


def test_the_break_before_a_frame_may_be_read_as_a_zero():
    frame = bytes.fromhex("55 0C 00 FF 00 66 01 05 9D 01 82 02 64 E5 0C")
    assert FrameSplitter(BUST4).feed(b"\x00" + frame + b"\x00" + frame) == (frame, frame)


def test_the_size_at_the_end_must_agree():
    frame = bytearray.fromhex("55 0C 00 FF 00 66 01 05 9D 01 82 02 64 E5 0C")
    frame[-1] = 0x0D
    assert FrameSplitter(BUST4).feed(bytes(frame)) == ()


def test_a_line_that_is_too_long_is_dropped_whole():
    splitter = FrameSplitter(LINES)
    before = held_bytes(splitter)
    for _ in range(200):
        assert splitter.feed(b"x" * 30) == ()
        assert held_bytes(splitter) < before + 200
    assert splitter.feed(b"tail\r\nOK\r\n") == (b"OK\r\n",)


def test_the_last_start_before_the_end_begins_the_frame():
    assert FrameSplitter(STX_ETX).feed(b"\x02torn\x02whole\x03") == (b"\x02whole\x03",)


def test_a_check_in_digits():
    framing = Framing(
        terminator={"text": "\r"}, checks=(Check(algorithm=Algorithm.SUM, at=-3, digits=True),), longest=20
    )
    frame = framing.sealed(b"$336..\r")
    assert frame == b"$336C0\r"
    assert FrameSplitter(framing).feed(frame) == (frame,)
    assert FrameSplitter(framing).feed(b"$336C1\r" + frame) == (frame,)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "exactly one"),
        ({"length": 8, "terminator": "0D"}, "exactly one"),
        ({"terminator": {"text": ""}}, "empty terminator"),
        ({"length": 8}, "need a start or a check"),
        ({"length": 4, "start": "7E", "checks": [{"algorithm": "xor", "at": 4}]}, "no room"),
        ({"start": "7E unit", "length": 4}, "fixed bytes"),
    ],
)
def test_a_framing_that_finds_nothing_is_refused(settings, words):
    with pytest.raises(ValidationError, match=words):
        Framing.model_validate(settings)


def test_a_frame_that_cannot_be_sealed():
    with pytest.raises(ValueError, match="no room"):
        Sealing(checks=XOR_AT_END).sealed(b"")
    with pytest.raises(ValueError, match="cannot say its size"):
        Sealing(size=Size(at=0, adds=1)).sealed(bytes(300))


def test_templates():
    template = template_of("7E 00 unit .. check")
    assert template.filled(unit=0x1F) == bytes.fromhex("7E 00 1F 00 00")
    assert template.matches(bytes.fromhex("7E 00 1F 55 12 34"), unit=0x1F)
    assert not template.matches(bytes.fromhex("7E 00 1E 55 12"), unit=0x1F)
    assert not template.matches(bytes.fromhex("7E 00 1F 55"), unit=0x1F)
    text = template_of({"text": "#{unit}1201\r"})
    assert text.filled(unit=0x15) == b"#151201\r"
    assert plain_bytes("0D 0A") == b"\r\n"


@pytest.mark.parametrize("written", ["7", "7E xx", {"text": "{port}"}, {"words": "a"}, 7, {"text": 7}])
def test_what_is_no_template(written):
    with pytest.raises(ValueError, match=r"."):
        template_of(written)


def test_where_only_ends_are_marked_a_torn_frame_is_dropped_up_to_its_end():
    marked = FrameSplitter(Framing(terminator=b"\r\n"), torn=True)
    assert marked.is_mid_message
    assert [frame for piece in (b"57", b"2\r", b"\n11572\r\n") for frame in marked.feed(piece)] == [b"11572\r\n"]
    assert not marked.is_mid_message


def test_a_frame_that_proves_itself_needs_no_end_before_it():
    proven = FrameSplitter(Framing(start=b"\x02", terminator=b"\r\n"), torn=True)
    assert proven.feed(b"572\r\n\x0211572\r\n") == (b"\x0211572\r\n",)


def test_where_only_ends_are_marked_the_rest_of_a_frame_is_no_frame_however_late_it_comes():
    splitter = FrameSplitter(Framing(terminator=b"\r\n"))
    splitter.feed(b"115")
    splitter.end_of_silence()
    splitter.end_of_silence()
    assert splitter.awaits_rest
    assert splitter.feed(b"72\r\n11572\r\n") == (b"11572\r\n",)
    assert not splitter.awaits_rest
