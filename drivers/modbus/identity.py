"""Identification of a Modbus unit: function 43/14 (device identification) and function 17 (server id). Pure."""

from __future__ import annotations

from drivers.contract import ProtocolViolation
from drivers.modbus.frames import READ_IDENTIFICATION, REPORT_SERVER_ID
from drivers.modbus.messages import FunctionCall

_MEI_IDENTIFICATION = 14
_BASIC = 1
_HEAD = 7
_LONGEST_WORDS = 120

IDENTIFICATION = FunctionCall(bytes((READ_IDENTIFICATION, _MEI_IDENTIFICATION, _BASIC, 0)))
"""The request for vendor, product and revision, the basic objects that every unit with function 43/14 has."""
SERVER_ID = FunctionCall(bytes((REPORT_SERVER_ID,)))


def identification_words(pdu: bytes) -> str:
    """Return vendor, product and revision, up to 120 characters, from an answer to `IDENTIFICATION`.

    Raises ProtocolViolation when the bytes are no such answer.
    """
    if len(pdu) < _HEAD or pdu[1] != _MEI_IDENTIFICATION:
        raise ProtocolViolation("the answer is no device identification")
    words = []
    place = _HEAD
    for _ in range(pdu[_HEAD - 1]):
        if len(pdu) < place + 2 or len(pdu) < place + 2 + pdu[place + 1]:
            raise ProtocolViolation("the device identification is cut short")
        end = place + 2 + pdu[place + 1]
        words.append(_printable(pdu[place + 2 : end]))
        place = end
    return " ".join(word for word in words if word)[:_LONGEST_WORDS]


def server_id_words(pdu: bytes) -> str:
    """Return the text in an answer to `SERVER_ID`, or its bytes in hexadecimal where it has none.

    Raises ProtocolViolation when the bytes are no such answer.
    """
    if len(pdu) < 2 or len(pdu) != 2 + pdu[1]:
        raise ProtocolViolation("the server id is cut short")
    words = _printable(pdu[2:])
    return words[:_LONGEST_WORDS] if len(words) >= 3 else f"server id {pdu[2:].hex(' ')}"[:_LONGEST_WORDS]


def _printable(data: bytes) -> str:
    return "".join(chr(byte) for byte in data if 0x20 <= byte < 0x7F).strip()
