"""Collection of unexpected answers in a Modbus line's trace: those from other addresses, and late ones."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from pymodbus.framer import FramerRTU

from drivers.bus.wire import Direction
from drivers.modbus.frames import Framing

LATE_SECONDS = 0.7
"""Seconds during which late answers are still collected."""

_MBAP = struct.Struct(">HHHB")
_READS = frozenset({1, 2, 3, 4})
_WRITES = frozenset({5, 6, 15, 16})
_REFUSAL = 0x80


@dataclass(frozen=True, slots=True)
class TracedAnswer:
    """A whole answer of a unit. `after` is the seconds since that unit was asked; None when it never was."""

    unit: int
    after: float | None


class AnswerTrace:
    """A receiver of a line's trace that finds the answers in it."""

    def __init__(self, *, framing: Framing) -> None:
        self._framing = framing
        self._asked: dict[int, float] = {}
        self._received: dict[Direction, bytearray] = {Direction.RECEIVED: bytearray(), Direction.DROPPED: bytearray()}
        self._answers: dict[int, TracedAnswer] = {}

    def __call__(self, direction: Direction, data: bytes, at: float) -> None:
        """Take one piece of the line's bytes, with its direction and instant."""
        if direction is Direction.SENT:
            place = 0 if self._framing == "rtu" else _MBAP.size - 1
            if len(data) > place:
                self._asked[data[place]] = at
            return
        received = self._received[direction]
        received += data
        taken = 0
        for end, unit in _whole_answers(self._framing, bytes(received)):
            taken = end
            asked = self._asked.get(unit)
            self._answers.setdefault(unit, TracedAnswer(unit, None if asked is None else at - asked))
        del received[:taken]

    def answers(self) -> tuple[TracedAnswer, ...]:
        """Return the first answer of each unit that was heard, by address."""
        return tuple(self._answers[unit] for unit in sorted(self._answers))


def _whole_answers(framing: Framing, received: bytes) -> Iterator[tuple[int, int]]:
    """Iterate over whole answers: where each ends, and the unit that gave it. Bytes between them are skipped."""
    start = 0
    while start < len(received):
        length = _rtu_length(received[start:]) if framing == "rtu" else _tcp_length(received[start:])
        if length:
            start += length
            yield start, received[start - length] if framing == "rtu" else received[start - length + _MBAP.size - 1]
        else:
            start += 1


def _rtu_length(frame: bytes) -> int:
    """Return the length of the answer at the start of these bytes; 0 when there is none, or not all of it."""
    if len(frame) < 5:
        return 0
    function = frame[1]
    if function & _REFUSAL:
        length = 5
    elif function in _READS:
        length = 5 + frame[2]
    elif function in _WRITES:
        length = 8
    else:
        return 0
    if len(frame) < length:
        return 0
    body, checksum = frame[: length - 2], frame[length - 2 : length]
    return length if FramerRTU.compute_CRC(body).to_bytes(2, "big") == checksum else 0


def _tcp_length(frame: bytes) -> int:
    if len(frame) < _MBAP.size + 1:
        return 0
    _, protocol, length, _ = _MBAP.unpack_from(frame)
    whole = _MBAP.size - 1 + length
    return whole if protocol == 0 and 2 < length <= 254 and len(frame) >= whole else 0
