"""Answers that nobody waited for, told out of a line's trace."""

from __future__ import annotations

import pytest

from drivers.bus.wire import Direction
from drivers.modbus.frames import Read, Refusal, Table, Values, decode_request, encode_reply, encode_request
from drivers.modbus.survey import AnswerTrace, TracedAnswer

READ = Read(Table.HOLDING_REGISTER, 0, 1)


def asked(framing, unit):
    return encode_request(framing, unit=unit, tag=7, request=READ)


def answer(framing, unit, reply=None):
    request = decode_request(framing, asked(framing, unit))
    assert request is not None
    return encode_reply(framing, asked=request, reply=reply or Values((5,)))


@pytest.mark.parametrize("framing", ["rtu", "tcp"])
def test_a_late_answer_in_pieces_after_noise(framing):
    traced = AnswerTrace(framing=framing)
    traced(Direction.SENT, asked(framing, 3), 10.0)
    traced(Direction.SENT, asked(framing, 4), 10.2)
    data = b"\xff" + answer(framing, 3)
    traced(Direction.DROPPED, data[:4], 10.4)
    assert not traced.answers()
    traced(Direction.DROPPED, data[4:], 10.5)
    assert traced.answers() == (TracedAnswer(3, pytest.approx(0.5)),)


@pytest.mark.parametrize("framing", ["rtu", "tcp"])
def test_who_was_not_asked_and_who_refuses(framing):
    traced = AnswerTrace(framing=framing)
    traced(Direction.SENT, asked(framing, 3), 1.0)
    traced(Direction.RECEIVED, answer(framing, 9) + answer(framing, 3, Refusal(2)), 1.1)
    assert traced.answers() == (TracedAnswer(3, pytest.approx(0.1)), TracedAnswer(9, None))


def test_what_is_garbled_is_nobody():
    traced = AnswerTrace(framing="rtu")
    data = answer("rtu", 3)
    traced(Direction.RECEIVED, data[:-1] + bytes([data[-1] ^ 1]), 1.0)
    assert not traced.answers()
    traced(Direction.RECEIVED, asked("rtu", 3), 1.1)  # the echo of a question
    assert not traced.answers()
