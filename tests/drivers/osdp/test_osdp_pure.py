"""The pure parts of OSDP: heads of replies, a reader's feedback, and messages of the line's process."""

from binascii import crc_hqx
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from osdp import Capability
from pydantic import ValidationError

from drivers.contract import Feedback, ProtocolViolation
from drivers.osdp.channel import CRYPTOGRAM, OsdpReply, ReplyFrames, reply_of, why_absent
from drivers.osdp.messages import CardRead, Connected, KeysTyped, ReaderSetup, Setup, happening_of
from drivers.osdp.panel import bit_card, orders, text_card, typed_keys


def framed(head: str, data: bytes = b"") -> bytes:
    body = bytes.fromhex(head) + data
    body = body[:2] + (len(body) + 2).to_bytes(2, "little") + body[4:]
    return body + crc_hqx(body, 0x1D0F).to_bytes(2, "little")


POLL = bytes.fromhex("ff") + framed("53 05 00 00 04 60")
ACK = framed("53 85 00 00 04 40")
CRYPTOGRAM_OF_5 = framed("53 85 00 00 0d 03 12 01 76", bytes(32))
IDENTITY = bytes.fromhex("538114000445bebafe0101afbeaddeaddead89fa")
"""As libosdp's own peripheral sent it."""


def test_heads_of_replies():
    assert reply_of(ACK) == OsdpReply(5, 0x40, ACK)
    assert reply_of(CRYPTOGRAM_OF_5) == OsdpReply(5, CRYPTOGRAM, CRYPTOGRAM_OF_5)
    assert reply_of(IDENTITY) == OsdpReply(1, 0x45, IDENTITY)
    assert reply_of(bytes.fromhex("53 85 07 00 00 40 e1")) == OsdpReply(5, 0x40, bytes.fromhex("53 85 07 00 00 40 e1"))
    assert reply_of(POLL[1:]) is None
    assert reply_of(b"") is None


@given(
    before=st.sampled_from([b"", b"\xff", POLL, b"\x53", b"noise", framed("53 84 00 00 04 40")]),
    reply=st.sampled_from([ACK, CRYPTOGRAM_OF_5]),
    after=st.sampled_from([b"", ACK, b"\xff\xff"]),
    cuts=st.lists(st.integers(0, 60), max_size=6),
)
def test_the_reply_is_found_once_however_the_bytes_come(before, reply, after, cuts):
    frames = ReplyFrames()
    frames.expect(POLL)
    data = before + reply + after
    edges = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    told = [frames.feed(data[start:end]) for start, end in pairwise(edges)]
    found = [answer.frame for answer in told if answer]
    # A start byte in noise may promise a frame that never ends: then the command is sent again.
    assert found == [reply] or (before == b"\x53" and found == [])
    frames.expect(POLL)
    assert frames.feed(reply) == reply_of(reply)


@given(st.integers(0, 8 * len(ACK) - 1))
def test_one_wrong_bit_is_silence(bit):
    wrong = bytearray(ACK)
    wrong[bit // 8] ^= 1 << bit % 8
    frames = ReplyFrames()
    frames.expect(POLL)
    assert frames.feed(bytes(wrong)) is None


@given(st.lists(st.binary(max_size=300), max_size=5))
def test_no_bytes_break_it(pieces):
    frames = ReplyFrames()
    frames.expect(POLL)
    for piece in pieces:
        frames.feed(piece)
        reply_of(piece)


def test_reasons_tell_the_silent_from_the_refused():
    assert why_absent(None) == "no reply comes from it"
    assert why_absent(CRYPTOGRAM) == "answers, but has another key"
    assert why_absent(0x40) == "answers, but opens no secure channel"


@pytest.mark.parametrize("feedback", Feedback)
def test_every_count_fits_its_eight_bits(feedback):
    for capability, order in orders(feedback):
        assert capability in (Capability.LEDControl, Capability.AudibleControl)
        assert all(0 <= value <= 255 for value in order.values())


def test_readings_that_cannot_be_read_are_refused_and_never_altered():
    assert list(text_card(1, b"CARD-1\r\n\0")) == [CardRead(address=1, bit_length=0, bits=0, text="CARD-1")]
    assert list(text_card(1, b"\0\r\n")) == []
    refused = (
        *text_card(1, b"CARD\xff1"),
        *text_card(1, b"7" * 129),
        bit_card(1, 0, b""),
        bit_card(1, 17, b"\1\2"),
        typed_keys(1, b"\1\2"),
    )
    assert {one.kind for one in refused} == {"refused"}
    assert [happening_of(one.to_line()) for one in refused] == list(refused)
    assert bytes.fromhex(refused[0].raw) == b"CARD\xff1"
    assert bit_card(1, 12, b"\xab\xc0") == CardRead(address=1, bit_length=12, bits=0xABC, text="")
    assert typed_keys(1, b"12\x0d") == KeysTyped(address=1, keys="12#")


@pytest.mark.parametrize("happening", [Connected(address=3), CardRead(address=0, bit_length=256, bits=1, text="")])
def test_happenings_are_understood(happening):
    assert happening_of(happening.to_line()) == happening


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}\n",
        b'{"kind":"open"}',
        b'{"kind":"connected","address":127}',
        b'{"kind":"connected","address":1,"more":2}',
        b'{"kind":"card","address":1,"bit_length":257,"bits":0,"text":""}',
        b'{"kind":"card","address":1,"bit_length":8,"bits":-1,"text":""}',
        b"\xff\xfe",
    ],
)
def test_anything_else_is_a_violation(line):
    with pytest.raises(ProtocolViolation):
        happening_of(line)


def test_an_error_shows_no_key():
    with pytest.raises(ValidationError) as caught:
        Setup.model_validate_json('{"url":"x","readers":[{"address":1,"key":"5ec1e75ec1e7"}]}')
    assert "5ec1e75ec1e7" not in str(caught.value)
    assert "0123" not in repr(ReaderSetup(address=1, key="0123" * 8))
