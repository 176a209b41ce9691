"""A scan of one address on a line in use, in its pauses: whether a unit is there, and what it is.

Callers scan only addresses that the site does not use.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from drivers.bus.bus import Bus
from drivers.contract import (
    DeviceFault,
    DriverError,
    LineDown,
    LinkError,
    MonotonicSeconds,
    ProtocolViolation,
)
from drivers.modbus.frames import Framing
from drivers.modbus.identity import IDENTIFICATION, SERVER_ID, identification_words, server_id_words
from drivers.modbus.messages import FunctionCall, Read, Table
from drivers.modbus.session import Session

_FIRST_REGISTER = Read(Table.HOLDING_REGISTER, 0, 1)
_PRESENCE_BYTES = 8 + 7
_IDENTITY_BYTES = 7 + 50
_TURNAROUND = 0.03
_SLOWER_THAN_OTHERS = 1.5
_WANTED = 3.0
_IDENTITY_ASKS = 2


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
    session = Session(bus=bus, unit=unit, framing=framing, timeout=_WANTED * shortest, scan_shortest=shortest)
    try:
        values, _ = await session.read(_FIRST_REGISTER, deadline=monotonic() + within)
    except LineDown:
        raise
    except LinkError:
        return None
    except ProtocolViolation as violation:
        return Sighting(unit, str(violation), "", is_clear=False)
    except DeviceFault as refusal:
        answer = str(refusal).rsplit(": ", 1)[-1]
    else:
        answer = f"register 0 holds {values[0]}"
    longest = answer_seconds(bus, _IDENTITY_BYTES)
    asking = Session(bus=bus, unit=unit, framing=framing, timeout=_WANTED * longest, scan_shortest=longest)
    identity = await _told(asking, IDENTIFICATION, identification_words, deadline=monotonic() + within)
    if not identity:
        identity = await _told(asking, SERVER_ID, server_id_words, deadline=monotonic() + within)
    return Sighting(unit, answer, identity, is_clear=True)


async def _told(
    session: Session, call: FunctionCall, words: Callable[[bytes], str], *, deadline: MonotonicSeconds
) -> str:
    """Return the unit's identity in words; "" when it gives none, or the line had no pause for the question.

    A time-out is tried once more, because the unit is known to be there and one lost frame would hide its name.
    """
    for _ in range(_IDENTITY_ASKS):
        try:
            return words(await session.call(call, deadline=deadline))
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
