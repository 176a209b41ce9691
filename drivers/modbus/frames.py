"""Modbus frames of both framings, RTU and TCP (MBAP), for the gateway and for simulated devices. Pure.

pymodbus frames and checks the bytes. This module matches answers to requests: the unit, the function code and the
length (and over TCP the transaction id) must fit before an answer counts.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from pymodbus.framer import FramerRTU, FramerSocket
from pymodbus.pdu import DecodePDU

from drivers.contract import Cause, ProtocolViolation


class Table(StrEnum):
    """The four tables of a Modbus device."""

    COIL = "coil"
    DISCRETE_INPUT = "discrete_input"
    HOLDING_REGISTER = "holding_register"
    INPUT_REGISTER = "input_register"

    @property
    def holds_bits(self) -> bool:
        """True when its values are 0 or 1; otherwise 0 to 65535."""
        return self in {Table.COIL, Table.DISCRETE_INPUT}

    @property
    def longest_read(self) -> int:
        """The most values that one request may read."""
        return 2000 if self.holds_bits else 125


@dataclass(frozen=True, slots=True)
class Read:
    """A read of `count` values of a table from a 0-based address on."""

    table: Table
    address: int
    count: int


@dataclass(frozen=True, slots=True)
class Write:
    """A write of one coil (function 5) or one holding register (function 6) at a 0-based address.

    `value` is the raw 16-bit word. For a coil, 0xFF00 is on and 0 is off; some devices give other words a meaning.
    Normally the device must echo the write; with `any_answer` its answer may carry another value.
    """

    table: Literal[Table.COIL, Table.HOLDING_REGISTER]
    address: int
    value: int
    any_answer: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class WriteMany:
    """A write of neighbouring holding registers (function 16) from a 0-based address on."""

    address: int
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of any other function. `pdu` is the function code with its data."""

    pdu: bytes


Request = Read | Write | WriteMany | FunctionCall


@dataclass(frozen=True, slots=True)
class Values:
    """The answer to a read: as many values as were asked for."""

    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """The answer to a write: the device confirmed it."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The answer of a device that refuses, with its exception code."""

    code: int

    @property
    def words(self) -> str:
        """The meaning of the code (Modbus application protocol 1.1b3, section 7)."""
        return _REFUSALS.get(self.code, f"exception code {self.code}")


@dataclass(frozen=True, slots=True)
class FunctionResult:
    """The answer to a `FunctionCall`, from the function code on."""

    pdu: bytes


Reply = Values | Written | Refusal | FunctionResult

ACKNOWLEDGED = 5
BUSY = 6
UNREACHABLE = frozenset({10, 11})
"""Refusal codes by which a converter says that the device behind it does not answer."""

_REFUSALS = {
    1: "illegal function",
    2: "illegal data address",
    3: "illegal data value",
    4: "device failure",
    5: "acknowledged, still working",
    6: "device busy",
    8: "memory parity error",
    10: "gateway path unavailable",
    11: "gateway target did not respond",
}


def coil_word(*, on: bool) -> int:
    """Return the word that function 5 sends for on and off."""
    return 0xFF00 if on else 0


Framing = Literal["tcp", "rtu"]

_SOCKET = FramerSocket(DecodePDU(is_server=False))
_RTU = FramerRTU(DecodePDU(is_server=False))
_MBAP = struct.Struct(">HHHB")
_LONGEST_MBAP_LENGTH = 254
_PLAIN_REQUEST_BYTES = 5
_WRITE_MANY = 16
_LATE_NUMBERS = 16
"""So many requests back, a transaction number is that of an earlier request, whose answer comes late."""
REPORT_SERVER_ID = 17
READ_IDENTIFICATION = 43
_IDENTIFICATION_HEAD = 8


_READ_CODES = {Table.COIL: 1, Table.DISCRETE_INPUT: 2, Table.HOLDING_REGISTER: 3, Table.INPUT_REGISTER: 4}
_READ_TABLES = {code: table for table, code in _READ_CODES.items()}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as a device reads it.

    Attributes:
        unit: the address of the unit that is asked.
        tag: the transaction id; 0 with RTU framing.
        request: the request; None for a function or a form that this module does not know.
        function: the function code.
        length: how many bytes of the buffer the frame takes.
    """

    unit: int
    tag: int
    request: Request | None
    function: int
    length: int


def encode_request(framing: Framing, *, unit: int, tag: int, request: Request) -> bytes:
    """Encode the frame of a request. `tag` is the transaction id; RTU ignores it."""
    return _framed(framing, _request_pdu(request), unit, tag)


def parse_reply(framing: Framing, *, unit: int, tag: int | None, request: Request, received: bytes) -> Reply | None:
    """Find the answer to `request` in all bytes since it was sent; None while more are needed.

    Whole frames that answer other requests are skipped, since they are late answers: over TCP those with another
    transaction id; over RTU, or without a `tag`, those of another unit or function. Over RTU, noise before and between
    frames is skipped too. Raises ProtocolViolation when the bytes cannot become an answer.
    """
    parse = _parse_tcp if framing == "tcp" else _parse_rtu
    return parse(unit, tag, request, received)


def fault_of(framing: Framing, *, unit: int, tag: int | None, received: bytes) -> ProtocolViolation | None:
    """Return what is wrong with bytes that came instead of an answer; None where nothing is known for sure."""
    if framing == "rtu":
        return _rtu_fault(unit, received)
    rest = received
    try:
        while (frame := _first_mbap_frame(rest)) is not None:
            answered_tag, answered_unit, _, length = frame
            if tag is None and answered_unit != unit:
                return _other_unit(answered_unit, unit)
            if tag is not None and not 0 <= tag - answered_tag <= _LATE_NUMBERS:
                text = "the answer has another transaction number than its request"
                return ProtocolViolation(text, cause=Cause.OTHER_NUMBER)
            rest = rest[length:]
    except ProtocolViolation as violation:
        return violation
    if len(rest) < _MBAP.size:
        return None
    whole = _MBAP.unpack_from(rest)[2] + _MBAP.size - 1
    text = f"{len(rest)} bytes came of an answer that gives its length as {whole}"
    return ProtocolViolation(text, cause=Cause.OTHER_LENGTH)


def _rtu_fault(unit: int, received: bytes) -> ProtocolViolation | None:
    place = 0
    while (rest := received[place:])[2:]:
        length = _rtu_reply_length(rest)
        frame = rest[:length]
        if len(frame) == length and FramerRTU.check_CRC(frame[:-2], int.from_bytes(frame[-2:], "big")):
            if frame[0] != unit:
                return _other_unit(frame[0], unit)
            place += length
        else:
            place += 1
    return None


def _other_unit(answered: int, asked: int) -> ProtocolViolation:
    return ProtocolViolation(f"unit {answered} answered a request to unit {asked}", cause=Cause.OTHER_UNIT)


def decode_request(framing: Framing, received: bytes) -> Asked | None:
    """Parse the request at the start of the bytes, as a device reads it; None while more are needed.

    Raises ProtocolViolation for a broken frame; a device then drops all bytes that it has received.
    """
    if framing == "tcp":
        frame = _first_mbap_frame(received)
        if frame is None:
            return None
        tag, unit, pdu, length = frame
        return Asked(unit, tag, _asked(pdu), pdu[0], length)
    if len(received) < 2:
        return None
    expected = _rtu_request_length(received)
    if expected is None or len(received) < expected:
        return None
    _check_crc(received[:expected])
    pdu = received[1 : expected - 2]
    return Asked(received[0], 0, _asked(pdu), pdu[0], expected)


def encode_reply(framing: Framing, *, asked: Asked, reply: Reply, unit: int | None = None) -> bytes:
    """Encode a device's answer. `unit` replaces the address that was asked, for tests of wrong answers."""
    match reply:
        case Refusal(code):
            pdu = bytes((asked.function | 0x80, code))
        case Values(values):
            pdu = bytes((asked.function,)) + _values_body(asked, values)
        case Written():
            if asked.request is None or isinstance(asked.request, Read):
                raise ValueError("only a write is echoed")
            pdu = _request_pdu(asked.request)[:_PLAIN_REQUEST_BYTES]
        case FunctionResult(told):
            pdu = told
    return _framed(framing, pdu, asked.unit if unit is None else unit, asked.tag)


def _request_pdu(request: Request) -> bytes:
    match request:
        case Read(table, address, count):
            return struct.pack(">BHH", _READ_CODES[table], address, count)
        case Write(table, address, value):
            return struct.pack(">BHH", 5 if table is Table.COIL else 6, address, value)
        case WriteMany(address, words):
            size = 2 * len(words)
            return struct.pack(f">BHHB{len(words)}H", _WRITE_MANY, address, len(words), size, *words)
        case FunctionCall(pdu):
            return pdu


def _framed(framing: Framing, pdu: bytes, unit: int, tag: int) -> bytes:
    framer = _SOCKET if framing == "tcp" else _RTU
    return framer.encode(pdu, unit, tag)


def _parse_tcp(unit: int, tag: int | None, request: Request, received: bytes) -> Reply | None:
    """Find the frame with this request's transaction id. Skip the others: they are late answers to earlier requests.

    Without a `tag`, of a device that does not copy it, the first frame of this unit and function counts.

    MODBUS Messaging on TCP/IP Implementation Guide V1.0b, "Process MODBUS Confirmation": a response is discarded whose
    transaction identifier belongs to no pending request. The bus has one request pending at a time.
    """
    rest = received
    while (frame := _first_mbap_frame(rest)) is not None:
        answered_tag, answered_unit, pdu, length = frame
        if tag is None and answered_unit == unit and pdu[0] & 0x7F == _function(request):
            return _reply(request, pdu)
        if answered_tag == tag:
            if answered_unit != unit:
                raise _other_unit(answered_unit, unit)
            return _reply(request, pdu)
        rest = rest[length:]
    return None


def _first_mbap_frame(received: bytes) -> tuple[int, int, bytes, int] | None:
    """Return transaction id, unit, PDU and total length of the first frame; None while it is incomplete."""
    if len(received) < _MBAP.size:
        return None
    tag, protocol, length, unit = _MBAP.unpack_from(received)
    if protocol != 0:
        raise ProtocolViolation(f"MBAP protocol id {protocol}, which is not Modbus", cause=Cause.OTHER_SERVICE)
    if not 2 <= length <= _LONGEST_MBAP_LENGTH:
        raise ProtocolViolation(f"MBAP length {length}", cause=Cause.OTHER_SERVICE)
    whole = length + _MBAP.size - 1
    return (tag, unit, received[_MBAP.size : whole], whole) if len(received) >= whole else None


def _parse_rtu(unit: int, _tag: int | None, request: Request, received: bytes) -> Reply | None:
    """Search the bytes for the answer: skip whole frames, and single bytes where no frame begins."""
    spoilt = False
    place = 0
    while (rest := received[place:])[2:]:
        length = _rtu_reply_length(rest)
        if len(rest) >= length and FramerRTU.check_CRC(
            rest[: length - 2], int.from_bytes(rest[length - 2 : length], "big")
        ):
            if rest[0] == unit and rest[1] & 0x7F == _function(request):
                return _reply(request, rest[1 : length - 2])
            place += length
            continue
        if _may_begin_answer(unit, request, rest):
            if len(rest) < length:
                return None
            spoilt = True
        place += 1
    if spoilt and unit not in rest:
        raise ProtocolViolation("the check sum (CRC-16) does not fit")
    return None


def _may_begin_answer(unit: int, request: Request, rest: bytes) -> bool:
    """Return whether a frame that begins with these bytes would answer the request, if its check sum fitted."""
    function = _function(request)
    if rest[0] != unit or rest[1] & 0x7F != function:
        return False
    return rest[1] != function or not isinstance(request, Read) or rest[2] == _value_bytes(request)


def _value_bytes(read: Read) -> int:
    return (read.count + 7) // 8 if read.table.holds_bits else 2 * read.count


def _reply(request: Request, pdu: bytes) -> Reply:
    """Parse the PDU that answers `request`. Raises ProtocolViolation when it does not fit the request."""
    function = _function(request)
    if pdu[0] == function | 0x80:
        if len(pdu) != 2:
            raise ProtocolViolation(f"exception answer of {len(pdu)} bytes")
        return Refusal(pdu[1])
    if pdu[0] != function:
        raise ProtocolViolation(f"function {pdu[0]} answered function {function}")
    match request:
        case Write() | WriteMany():
            exact = not (isinstance(request, Write) and request.any_answer)
            if exact and pdu != _request_pdu(request)[:_PLAIN_REQUEST_BYTES]:
                raise ProtocolViolation("the write was not echoed as sent")
            return Written()
        case Read(table, _, count):
            expected = _value_bytes(request)
            if len(pdu) != expected + 2 or pdu[1] != expected:
                text = f"{len(pdu) - 2} bytes of values where {expected} were asked for"
                raise ProtocolViolation(text, cause=Cause.OTHER_LENGTH)
            if table.holds_bits:
                return Values(tuple(pdu[2 + place // 8] >> place % 8 & 1 for place in range(count)))
            return Values(struct.unpack(f">{count}H", pdu[2:]))
        case FunctionCall():
            return FunctionResult(pdu)


def _function(request: Request) -> int:
    match request:
        case Read(table):
            return _READ_CODES[table]
        case Write(table):
            return 5 if table is Table.COIL else 6
        case WriteMany():
            return _WRITE_MANY
        case FunctionCall(pdu):
            return pdu[0]


def _rtu_reply_length(frame: bytes) -> int:
    """Return the length of an answer by its first bytes; unknown functions get 5, the length of an exception."""
    function = frame[1]
    if function in _READ_TABLES or function == REPORT_SERVER_ID:
        return frame[2] + 5
    if function == READ_IDENTIFICATION:
        return _identification_length(frame)
    return 8 if function in {5, 6, 15, 16} else 5


def _identification_length(frame: bytes) -> int:
    """Return the length of an answer to function 43, or the least that it can be while the bytes are incomplete.

    Each object in the answer gives its own length.
    """
    end = _IDENTIFICATION_HEAD
    for _ in range(frame[end - 1] if len(frame) >= end else 0):
        end += 2 + (frame[end + 1] if len(frame) > end + 1 else 0)
    return end + 2


def _rtu_request_length(frame: bytes) -> int | None:
    function = frame[1]
    if function in {15, 16}:
        return frame[6] + 9 if len(frame) > 6 else None
    if 1 <= function <= 6:
        return 8
    if function in {REPORT_SERVER_ID, READ_IDENTIFICATION}:
        return 4 if function == REPORT_SERVER_ID else 7
    raise ProtocolViolation(f"request with function code {function}")


def _check_crc(frame: bytes) -> None:
    if not FramerRTU.check_CRC(frame[:-2], int.from_bytes(frame[-2:], "big")):
        raise ProtocolViolation("the check sum (CRC-16) does not fit")


def _asked(pdu: bytes) -> Request | None:
    if pdu[0] == _WRITE_MANY and len(pdu) > _PLAIN_REQUEST_BYTES:
        _, address, count, size = struct.unpack(">BHHB", pdu[:6])
        fits = count > 0 and size == 2 * count == len(pdu) - 6
        return WriteMany(address, struct.unpack(f">{count}H", pdu[6:])) if fits else None
    if (pdu[0], len(pdu)) in {(REPORT_SERVER_ID, 1), (READ_IDENTIFICATION, 4)}:
        return FunctionCall(pdu)
    if len(pdu) != _PLAIN_REQUEST_BYTES:
        return None
    function, address, value = struct.unpack(">BHH", pdu)
    if function in _READ_TABLES:
        return Read(_READ_TABLES[function], address, value)
    if function in {5, 6}:
        return Write(Table.COIL if function == 5 else Table.HOLDING_REGISTER, address, value)
    return None


def _values_body(asked: Asked, values: tuple[int, ...]) -> bytes:
    if not isinstance(asked.request, Read) or len(values) != asked.request.count:
        raise ValueError("the values do not fit the request")
    if asked.request.table.holds_bits:
        packed = sum(1 << place for place, value in enumerate(values) if value)
        size = (len(values) + 7) // 8
        return bytes((size,)) + packed.to_bytes(size, "little")
    return struct.pack(f">B{len(values)}H", 2 * len(values), *values)
