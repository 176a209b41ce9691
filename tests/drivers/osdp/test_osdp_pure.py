"""What is pure of OSDP: heads of replies, what a reader shows, and what the line's process may say."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from osdp import Capability
from pydantic import ValidationError

from drivers.contract import Feedback, ProtocolViolation
from drivers.osdp.messages import CardRead, Connected, ReaderSetup, Setup, happening_of
from drivers.osdp.replies import CRYPTOGRAM, Reply, ReplyHead, head_of, why_absent
from drivers.osdp.showing import orders

PLAIN_ACK = bytes.fromhex("ff 53 85 08 00 04 40 00 00")
CRYPTOGRAM_OF_5 = bytes.fromhex("53 85 2b 00 0d 03 12 01 76") + bytes(32)
A_POLL = bytes.fromhex("53 05 08 00 04 60 00 00")


def test_heads_of_replies():
    assert head_of(PLAIN_ACK) == Reply(5, 0x40)
    assert head_of(CRYPTOGRAM_OF_5) == Reply(5, CRYPTOGRAM)
    assert head_of(A_POLL) is None
    assert head_of(b"") is None


@given(st.sampled_from([PLAIN_ACK, CRYPTOGRAM_OF_5]), st.lists(st.integers(0, 40), max_size=5))
def test_a_head_is_told_once_however_the_bytes_come(frame, cuts):
    head = ReplyHead()
    edges = sorted({0, len(frame), *(min(cut, len(frame)) for cut in cuts)})
    told = [head.feed(frame[start:end]) for start, end in pairwise(edges)]
    assert [reply for reply in told if reply] == [head_of(frame)]
    head.expect()
    assert head.feed(frame) == head_of(frame)


@given(st.binary(max_size=300))
def test_no_bytes_break_the_head(data):
    reply = head_of(data)
    assert reply is None or (0 <= reply.address < 128 and 0 <= reply.code < 256)


def test_reasons_tell_the_silent_from_the_refused():
    assert why_absent(None) == "does not answer"
    assert why_absent(CRYPTOGRAM) == "answers, but has another key"
    assert why_absent(0x40) == "answers, but opens no secure channel"


@pytest.mark.parametrize("feedback", Feedback)
def test_every_count_fits_its_eight_bits(feedback):
    for capability, order in orders(feedback):
        assert capability in (Capability.LEDControl, Capability.AudibleControl)
        assert all(0 <= value <= 255 for value in order.values())


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
