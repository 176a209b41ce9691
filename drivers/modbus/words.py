"""Descriptions of a Modbus line's frames for people. Pure: bytes in, a sentence out."""

from __future__ import annotations

from contextlib import suppress

from drivers.bus.line_quality import Failure
from drivers.contract import ProtocolViolation
from drivers.modbus.frames import (
    READ_IDENTIFICATION,
    REPORT_SERVER_ID,
    Framing,
    FunctionCall,
    Read,
    Refusal,
    Reply,
    Request,
    Table,
    Values,
    Write,
    WriteMany,
    Written,
    decode_request,
    parse_reply,
)

_MOST_VALUES = 16
_COIL_ON = 0xFF00
_TABLES = {
    Table.COIL: "coil",
    Table.DISCRETE_INPUT: "input",
    Table.HOLDING_REGISTER: "register",
    Table.INPUT_REGISTER: "input register",
}


def request_words(framing: Framing, frame: bytes) -> str:
    """Describe a request, as in "read inputs 0-5"."""
    try:
        asked = decode_request(framing, frame)
    except ProtocolViolation:
        asked = None
    if asked is None:
        return f"{len(frame)} bytes that are no Modbus request"
    return f"function {asked.function}" if asked.request is None else _request(asked.request)


def reply_words(framing: Framing, frame: bytes, received: bytes, failure: Failure | None, *, took: float) -> str:
    """Describe what came after a request: the answer, or what is wrong with it.

    `frame` is the request, `received` all bytes that came after it, `took` the seconds until the answer or time-out.
    """
    match failure:
        case Failure.SILENT:
            return f"no answer within {took * 1000:.0f} ms"
        case Failure.ECHOED:
            return "only the request came back"
        case Failure.LATE:
            return "an answer that may be an earlier request's"
    told = _told(framing, frame, received, is_numbered=failure is not None)
    if failure is None:
        return told or f"{len(received)} bytes"
    return told or f"{len(received)} bytes that are no answer: {_fault(framing, frame, received)}"


def stray_words(framing: Framing, received: bytes, failure: Failure | None) -> str:
    """Describe bytes that no request asked for; `failure` is LATE when they are a late answer."""
    if failure is Failure.LATE:
        return "an answer that came too late"
    if framing == "rtu" and len(received) > 3:
        return f"{len(received)} bytes that nobody asked for, as from unit {received[0]}"
    return f"{len(received)} bytes that nobody asked for"


def _request(request: Request) -> str:
    match request:
        case Read(table, address, count):
            return f"read {_TABLES[table]}{_span(address, count)}"
        case Write(Table.COIL, address, value):
            shown = {0: "off", _COIL_ON: "on"}.get(value, f"to {value:#06x}")
            return f"switch coil {address} {shown}"
        case Write(_, address, value):
            return f"write {value} to register {address}"
        case WriteMany(address, values):
            return f"write {_listed(values)} to register{_span(address, len(values))}"
        case FunctionCall(pdu):
            names = {READ_IDENTIFICATION: "read device identification", REPORT_SERVER_ID: "report server id"}
            return names.get(pdu[0], f"function {pdu[0]}")


def _told(framing: Framing, frame: bytes, received: bytes, *, is_numbered: bool) -> str:
    """Describe the answer; "" when there is none among the bytes. `is_numbered`: it must bear the request's number."""
    with suppress(ProtocolViolation):
        match _reply(framing, frame, received, is_numbered=is_numbered):
            case Values(values):
                return _listed(values)
            case Written():
                return "done"
            case Refusal() as refusal:
                return f"refused: {refusal.words} (exception {refusal.code})"
    return ""


def _fault(framing: Framing, frame: bytes, received: bytes) -> str:
    try:
        _reply(framing, frame, received, is_numbered=True)
    except ProtocolViolation as violation:
        return str(violation)
    return "they are cut short, or another unit's"


def _reply(framing: Framing, frame: bytes, received: bytes, *, is_numbered: bool) -> Reply | None:
    """Parse the answer to a request. Raises ProtocolViolation."""
    asked = decode_request(framing, frame)
    if asked is None or asked.request is None:
        return None
    tag = asked.tag if is_numbered else None
    return parse_reply(framing, unit=asked.unit, tag=tag, request=asked.request, received=received)


def _span(address: int, count: int) -> str:
    return f" {address}" if count == 1 else f"s {address}-{address + count - 1}"


def _listed(values: tuple[int, ...]) -> str:
    shown = " ".join(map(str, values[:_MOST_VALUES]))
    return shown if len(values) <= _MOST_VALUES else f"{shown} … ({len(values)} values)"
