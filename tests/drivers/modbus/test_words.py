"""Frames in words, by bytes of the Modbus document and of what goes wrong with them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymodbus.framer import FramerRTU

from drivers.bus.line_quality import Failure
from drivers.modbus.words import reply_words, request_words, stray_words


def rtu(text):
    data = bytes.fromhex(text)
    return data + FramerRTU.compute_CRC(data).to_bytes(2, "big")


READ = rtu("01 02 0000 0006")


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ("01 02 0000 0006", "read inputs 0-5"),
        ("01 03 0064 0001", "read register 100"),
        ("01 04 0000 0002", "read input registers 0-1"),
        ("03 05 0002 FF00", "switch coil 2 on"),
        ("03 05 0002 0000", "switch coil 2 off"),
        ("03 06 0007 0011", "write 17 to register 7"),
        ("03 10 0007 0002 04 0001 0002", "write 1 2 to registers 7-8"),
        ("03 2B 0E01 00", "read device identification"),
        ("03 11", "report server id"),
        ("03 63 00", "5 bytes that are no Modbus request"),
    ],
)
def test_requests(frame, words):
    assert request_words("rtu", rtu(frame)) == words


@pytest.mark.parametrize(
    ("received", "failure", "words"),
    [
        (rtu("01 02 01 29"), None, "1 0 0 1 0 1"),
        (rtu("01 82 02"), None, "refused: illegal data address (exception 2)"),
        (b"", Failure.SILENT, "no answer within 300 ms"),
        (READ, Failure.ECHOED, "only the request came back"),
        (rtu("01 02 01 29")[:-1] + b"\0", Failure.GARBLED,
         "6 bytes that are no answer: the check sum (CRC-16) does not fit"),
        (b"\xf8\x00", Failure.GARBLED, "2 bytes that are no answer: they are cut short, or another unit's"),
        (rtu("01 02 01 29"), Failure.LATE, "an answer that may be an earlier request's"),
    ],
)  # fmt: skip
def test_answers(received, failure, words):
    assert reply_words("rtu", READ, received, failure, took=0.3) == words


def test_strays():
    assert stray_words("rtu", rtu("07 02 01 29"), None) == "6 bytes that nobody asked for, as from unit 7"
    assert stray_words("tcp", b"12", None) == "2 bytes that nobody asked for"
    assert stray_words("rtu", rtu("07 02 01 29"), Failure.LATE) == "an answer that came too late"


@given(st.binary(max_size=60), st.binary(max_size=60), st.sampled_from([None, *Failure]))
def test_any_bytes_have_words(sent, received, failure):
    for framing in ("rtu", "tcp"):
        assert request_words(framing, sent)
        assert reply_words(framing, sent, received, failure, took=0.1)
        assert stray_words(framing, received, failure)
