"""Requests to a barrier and its answers (ISAPI, vehicle access control). Pure."""

from __future__ import annotations

from enum import StrEnum

from drivers.contract import DeviceFault, GatePosition, ProtocolViolation
from drivers.xml_texts import read_xml

XML_TYPE = "application/xml; charset=UTF-8"
_OK_CODES = frozenset({"0", "1"})
_POSITIONS = {"0": GatePosition.UNKNOWN, "1": GatePosition.CLOSED, "2": GatePosition.OPEN}


class BarrierControl(StrEnum):
    """A command (`ctrlMode`). A locked barrier answers OK to open and close but does not move."""

    OPEN = "open"
    CLOSE = "close"
    LOCK = "lock"
    UNLOCK = "unlock"


def control_path(channel: int) -> str:
    """Return the path to which a command is sent by PUT."""
    return f"/ISAPI/Parking/channels/{channel}/barrierGate"


def status_path(channel: int) -> str:
    """Return the path from which the position is read."""
    return f"/ISAPI/Parking/channels/{channel}/barrierGate/barrierGateStatus"


def control_body(control: BarrierControl) -> bytes:
    """Return the XML document of a command."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<BarrierGate version="2.0" xmlns="http://www.isapi.org/ver20/XMLSchema">'
        f"<ctrlMode>{control}</ctrlMode></BarrierGate>"
    ).encode()


def read_position(body: bytes) -> GatePosition:
    """Return the position in a status document: 0 no signal, 1 closed, 2 open; there is no value for movement.

    Raises ProtocolViolation when there is none.
    """
    said = read_xml(body).first.get("barrierGateStatus")
    if said not in _POSITIONS:
        raise ProtocolViolation("a status without a known position")
    return _POSITIONS[said]


def check_answer(body: bytes) -> None:
    """Raise DeviceFault for an answer to a command that is not OK, ProtocolViolation for an unreadable one."""
    answer = read_xml(body)
    if answer.root != "ResponseStatus":
        raise ProtocolViolation(f"a {answer.root[:40]} instead of an answer")
    if answer.first.get("statusCode") not in _OK_CODES:
        said = answer.first.get("subStatusCode") or answer.first.get("statusString") or "no reason"
        raise DeviceFault(f"the barrier refuses: {said[:80]}")
