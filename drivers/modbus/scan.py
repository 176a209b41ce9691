"""A scan of one address on a line in use, in its pauses: whether a unit is there, and what it is.

Callers scan only addresses that the site does not use.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from drivers.bus.bus import Bus
from drivers.contract import DeviceFault, DriverError, LineDown, LinkError, MonotonicSeconds, ProtocolViolation
from drivers.modbus.frames import READ_IDENTIFICATION, REPORT_SERVER_ID, Framing, FunctionCall, Read, Table
from drivers.modbus.unit_requests import ModbusRequests

_FIRST_REGISTER = Read(Table.HOLDING_REGISTER, 0, 1)
_PRESENCE_BYTES = 8 + 7
_IDENTITY_BYTES = 7 + 50
_TURNAROUND = 0.03
_SLOWER_THAN_OTHERS = 1.5
_WANTED = 3.0
_IDENTITY_ASKS = 2
_MEI_IDENTIFICATION = 14
_BASIC = 1
_HEAD = 7
_LONGEST_WORDS = 120

IDENTIFICATION = FunctionCall(bytes((READ_IDENTIFICATION, _MEI_IDENTIFICATION, _BASIC, 0)))
"""The request for vendor, product and revision, the basic objects that every unit with function 43/14 has."""
SERVER_ID = FunctionCall(bytes((REPORT_SERVER_ID,)))


@dataclass(frozen=True, slots=True)
class Sighting:
    """A unit that answered a scan.

    Attributes:
        unit: its address.
        answer: its answer to the read of its first holding register, in words.
        identity: its vendor, product and revision, or its server id; "" when it gives none.
        is_clear: False when the answer was garbled, as with two units at one address.
    """

    unit: int
    answer: str
    identity: str
    is_clear: bool


async def sight(
    bus: Bus,
    unit: int,
    *,
    framing: Framing,
    within: float,
    monotonic: Callable[[], float] = time.monotonic,
) -> Sighting | None:
    """Scan one address in the pauses of the line; None when no unit answers.

    Raises DeadlinePassed when the line had no pause long enough within `within` seconds, LineDown when it is down.
    """
    shortest = answer_seconds(bus, _PRESENCE_BYTES)
    requests = ModbusRequests(bus=bus, unit=unit, framing=framing, timeout=_WANTED * shortest, scan_shortest=shortest)
    try:
        values, _ = await requests.read(_FIRST_REGISTER, deadline=monotonic() + within)
    except LineDown:
        raise
    except LinkError:
        return None
    except ProtocolViolation as violation:
        return Sighting(unit, str(violation), "", is_clear=False)
    except DeviceFault as refusal:
        answer = refusal.said
    else:
        answer = f"register 0 holds {values[0]}"
    longest = answer_seconds(bus, _IDENTITY_BYTES)
    asking = ModbusRequests(bus=bus, unit=unit, framing=framing, timeout=_WANTED * longest, scan_shortest=longest)
    identity = await _identity(asking, IDENTIFICATION, identification_words, deadline=monotonic() + within)
    if not identity:
        identity = await _identity(asking, SERVER_ID, server_id_words, deadline=monotonic() + within)
    return Sighting(unit, answer, identity, is_clear=True)


async def _identity(
    requests: ModbusRequests, call: FunctionCall, words: Callable[[bytes], str], *, deadline: MonotonicSeconds
) -> str:
    """Return the unit's identity in words; "" when it gives none, or the line had no pause for the question.

    A time-out is tried once more, because the unit is known to be there and one lost frame would hide its name.
    """
    for _ in range(_IDENTITY_ASKS):
        try:
            return words(await requests.call(call, deadline=deadline))
        except LineDown:
            raise
        except LinkError:
            continue
        except DriverError:
            return ""
    return ""


def answer_seconds(bus: Bus, count: int) -> float:
    """Return how many seconds a request and its answer of together `count` bytes may take.

    It follows from the line's speed, and from how fast the other units on it answer.
    """
    others = max((unit.reply_seconds or 0.0 for unit in bus.quality().units), default=0.0)
    return max(bus.spec.seconds_for(count) + _TURNAROUND, _SLOWER_THAN_OTHERS * others)


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
