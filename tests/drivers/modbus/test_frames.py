"""Frames: golden bytes, both ends joined, and everything that a line can do to bytes."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivers.contract import Cause, ProtocolViolation
from drivers.modbus.frames import (
    Read,
    Refusal,
    Table,
    Values,
    Write,
    WriteMany,
    Written,
    decode_request,
    encode_reply,
    encode_request,
    fault_of,
    parse_reply,
)

FRAMINGS = st.sampled_from(["tcp", "rtu"])
UNITS = st.integers(1, 247)
TAGS = st.integers(1, 0xFFFF)
READS = st.builds(Read, st.sampled_from(Table), st.integers(0, 0xFF00), st.integers(1, 120))
WRITES = st.builds(
    Write, st.sampled_from([Table.COIL, Table.HOLDING_REGISTER]), st.integers(0, 0xFFFF), st.integers(0, 0xFFFF)
)


@st.composite
def exchanges(draw):
    """A framing, a unit, a tag, a request and an answer that fits it."""
    request = draw(st.one_of(READS, WRITES))
    if isinstance(request, Read):
        value = st.integers(0, 1 if request.table.holds_bits else 0xFFFF)
        reply = Values(tuple(draw(st.lists(value, min_size=request.count, max_size=request.count))))
    else:
        reply = Written()
    if draw(st.integers(0, 4)) == 0:
        reply = Refusal(draw(st.integers(1, 11)))
    return draw(FRAMINGS), draw(UNITS), draw(TAGS), request, reply


def answer(framing, unit, tag, request, reply, answered_by=None):
    asked = decode_request(framing, encode_request(framing, unit=unit, tag=tag, request=request))
    return encode_reply(framing, asked=asked, reply=reply, unit=answered_by)


def test_golden_a_relay_flashed_for_700_ms():
    """Waveshare: function 5 at 0x0200 + n, the value is the time in tenths of a second."""
    frame = encode_request("rtu", unit=1, tag=0, request=Write(Table.COIL, 0x0200, 7))
    assert frame == bytes.fromhex("01 05 02 00 00 07 8D B0")
    assert parse_reply("rtu", unit=1, tag=0, request=Write(Table.COIL, 0x0200, 7), received=frame) == Written()


def test_golden_mbap():
    frame = encode_request("tcp", unit=0x0A, tag=0x1234, request=Read(Table.HOLDING_REGISTER, 0x157C, 6))
    assert frame == bytes.fromhex("1234 0000 0006 0A 03 157C 0006")


def test_golden_position_of_a_came_barrier():
    """Holding register 40101 says 17: closed."""
    read = Read(Table.HOLDING_REGISTER, 100, 1)
    received = answer("rtu", 1, 0, read, Values((17,)))
    assert received[:5] == bytes.fromhex("01 03 02 00 11")
    assert parse_reply("rtu", unit=1, tag=0, request=read, received=received) == Values((17,))


@given(exchanges())
def test_both_ends_understand_each_other(exchange):
    framing, unit, tag, request, reply = exchange
    frame = encode_request(framing, unit=unit, tag=tag, request=request)
    asked = decode_request(framing, frame)
    assert (asked.unit, asked.request, asked.length) == (unit, request, len(frame))
    received = encode_reply(framing, asked=asked, reply=reply)
    assert parse_reply(framing, unit=unit, tag=tag, request=request, received=received) == reply


@given(exchanges(), st.data())
def test_pieces_ask_for_more(exchange, data):
    framing, unit, tag, request, reply = exchange
    frame = encode_request(framing, unit=unit, tag=tag, request=request)
    assert decode_request(framing, frame[: data.draw(st.integers(0, len(frame) - 1))]) is None
    received = answer(framing, unit, tag, request, reply)
    piece = received[: data.draw(st.integers(0, len(received) - 1))]
    assert parse_reply(framing, unit=unit, tag=tag, request=request, received=piece) is None


@given(exchanges(), st.data())
def test_a_spoilt_rtu_answer_never_counts(exchange, data):
    _, unit, tag, request, reply = exchange
    received = bytearray(answer("rtu", unit, tag, request, reply))
    received[data.draw(st.integers(0, len(received) - 1))] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(ProtocolViolation):
        assert parse_reply("rtu", unit=unit, tag=tag, request=request, received=bytes(received)) is None


@given(exchanges(), UNITS)
def test_another_units_answer_never_counts(exchange, other):
    framing, unit, tag, request, reply = exchange
    if other == unit:
        other = unit % 247 + 1
    received = answer(framing, unit, tag, request, reply, answered_by=other)
    if framing == "tcp":
        with pytest.raises(ProtocolViolation, match=f"unit {other} answered"):
            parse_reply(framing, unit=unit, tag=tag, request=request, received=received)
    else:
        assert parse_reply(framing, unit=unit, tag=tag, request=request, received=received) is None


@given(exchanges(), exchanges(), TAGS)
def test_a_late_numbered_answer_is_passed_over(late, exchange, late_tag):
    _, unit, tag, request, reply = exchange
    if late_tag == tag:
        late_tag = tag % 0xFFFF + 1
    received = answer("tcp", late[1], late_tag, *late[3:]) + answer("tcp", unit, tag, request, reply)
    assert parse_reply("tcp", unit=unit, tag=tag, request=request, received=received) == reply


def test_a_late_answer_of_another_kind_is_passed_over_on_rtu():
    late = answer("rtu", 1, 0, Read(Table.DISCRETE_INPUT, 0, 6), Values((1, 0, 0, 0, 0, 0)))
    write = Write(Table.COIL, 0, 0xFF00)
    assert parse_reply("rtu", unit=1, tag=0, request=write, received=late) is None
    assert parse_reply("rtu", unit=1, tag=0, request=write, received=late + answer("rtu", 1, 0, write, Written()))


@pytest.mark.parametrize(
    ("sent", "answered", "reply"),
    [
        (Read(Table.HOLDING_REGISTER, 10, 1), Read(Table.COIL, 0, 8), Values((1,) * 8)),
        (Read(Table.DISCRETE_INPUT, 0, 6), Read(Table.DISCRETE_INPUT, 0, 9), Values((1,) * 9)),
        (Read(Table.HOLDING_REGISTER, 10, 1), Read(Table.HOLDING_REGISTER, 10, 2), Values((1, 2))),
        (Write(Table.COIL, 0, 0xFF00), Write(Table.COIL, 1, 0xFF00), Written()),
        (Write(Table.COIL, 0, 0xFF00), Write(Table.COIL, 0, 0), Written()),
    ],
    ids=str,
)
def test_an_answer_of_another_shape_is_a_violation(sent, answered, reply):
    with pytest.raises(ProtocolViolation):
        parse_reply("tcp", unit=1, tag=9, request=sent, received=answer("tcp", 1, 9, answered, reply))


@given(exchanges(), st.binary(max_size=300))
def test_noise_never_breaks_a_parser(exchange, noise):
    framing, unit, tag, request, _ = exchange
    with contextlib.suppress(ProtocolViolation):
        parse_reply(framing, unit=unit, tag=tag, request=request, received=noise)
    with contextlib.suppress(ProtocolViolation):
        decode_request(framing, noise)


def test_a_foreign_protocol_is_a_violation():
    with pytest.raises(ProtocolViolation, match="protocol id"):
        parse_reply("tcp", unit=1, tag=1, request=Read(Table.COIL, 0, 1), received=b"HTTP/1.1 400")


def test_refusals_have_words():
    assert Refusal(2).words == "illegal data address"
    assert Refusal(99).words == "exception code 99"


def test_functions_that_are_not_spoken_are_still_read():
    asked = decode_request("tcp", bytes.fromhex("0001 0000 0003 01 2B 0E"))
    assert asked.request is None
    assert asked.function == 0x2B
    assert encode_reply("tcp", asked=asked, reply=Refusal(1)) == bytes.fromhex("0001 0000 0003 01 AB 01")


@given(exchanges(), st.binary(min_size=1, max_size=4))
def test_noise_before_an_rtu_answer_is_passed_over(exchange, noise):
    """A line driver that switches on gives a byte or two of noise."""
    _, unit, tag, request, reply = exchange
    noise = bytes(byte for byte in noise if byte != unit) or b"\x00"
    received = noise + answer("rtu", unit, tag, request, reply)
    assert parse_reply("rtu", unit=unit, tag=tag, request=request, received=received) == reply


def test_noise_that_looks_like_the_units_address_is_passed_over():
    read = Read(Table.DISCRETE_INPUT, 0, 6)
    received = b"\x01" + answer("rtu", 1, 0, read, Values((1, 0, 0, 0, 0, 1)))
    assert parse_reply("rtu", unit=1, tag=0, request=read, received=received) == Values((1, 0, 0, 0, 0, 1))


def test_an_echo_before_an_answer_to_a_read_is_passed_over():
    read = Read(Table.HOLDING_REGISTER, 100, 2)
    received = encode_request("rtu", unit=1, tag=0, request=read) + answer("rtu", 1, 0, read, Values((17, 3)))
    assert parse_reply("rtu", unit=1, tag=0, request=read, received=received) == Values((17, 3))


def test_golden_write_of_many_registers():
    """Modbus application protocol 1.1b3, section 6.12: two registers from 2 on to 000A and 0102."""
    write = WriteMany(1, (0x000A, 0x0102))
    frame = encode_request("rtu", unit=0x11, tag=0, request=write)
    assert frame[:-2] == bytes.fromhex("11 10 0001 0002 04 000A 0102")
    assert decode_request("rtu", frame).request == write
    received = answer("rtu", 0x11, 0, write, Written())
    assert received[:-2] == bytes.fromhex("11 10 0001 0002")
    assert parse_reply("rtu", unit=0x11, tag=0, request=write, received=received) == Written()
    assert parse_reply("rtu", unit=0x11, tag=0, request=write, received=received[:-1]) is None


@pytest.mark.parametrize(
    ("framing", "tag", "received", "cause"),
    [
        ("tcp", 40, "00 00 00 00 00 04 01 02 01 15", Cause.OTHER_NUMBER),
        ("tcp", 40, "00 27 00 00 00 04 01 02 01 15", None),  # the answer to the request before, late
        ("tcp", 40, "00 28 00 00 00 06 01 02 01 15", Cause.OTHER_LENGTH),
        ("tcp", 40, "00 28 00", None),
        ("tcp", 40, "48 54 54 50 2f 31 2e 31 20 34", Cause.OTHER_SERVICE),
        ("tcp", None, "00 00 00 00 00 04 09 02 01 15", Cause.OTHER_UNIT),
        ("rtu", None, "09 02 01 15 65 c9", None),
        ("rtu", None, "00 00 00", None),
    ],
)
def test_the_cause_is_told_only_where_it_is_sure(framing, tag, received, cause):
    violation = fault_of(framing, unit=1, tag=tag, received=bytes.fromhex(received))
    assert (violation.cause if violation else None) is cause
