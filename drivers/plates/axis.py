"""Axis License Plate Verifier, which pushes one JSON object per change of a car in view.

Rules:
- A car is first `new`, then `update` or `updated` any number of times, then `lost`, all under one carID. In `new` the
  direction is not known yet, and the plate may change within 150 ms. So each of these messages is a reading of its own.
- `lost` comes when the car is gone. It is no reading, even with a plate: the next car may stand there already.
- Numbers come as texts. Pictures come as Base64 inside the object, and are ignored.
"""

from __future__ import annotations

from drivers.contract import ProtocolViolation
from drivers.plate_text import camera_plate, plain_plate
from drivers.plates.dialect import Dialect, Fields, read_objects, word
from drivers.plates.multipart import BodyPart
from drivers.plates.readings import Direction, Found, PlateReading, found_in, fraction, occurrence_of

_STATES = frozenset({"new", "update", "updated", "lost"})
_DIRECTIONS: dict[str, Direction] = {"in": "approaching", "out": "leaving"}


def read_part(part: BodyPart) -> tuple[Found, ...]:
    """Return the reading in a message, or one with `left` when its car is gone; none for a message without a plate."""
    return found_in(read_objects(part), _reading)


def _reading(said: Fields) -> tuple[PlateReading, ...]:
    state, car = word(said, "carState").lower(), word(said, "carID")
    if state not in _STATES or not car:
        raise ProtocolViolation("no carState and carID")
    text = word(said, "plateUTF8") or word(said, "plateText") or word(said, "plateASCII")
    if state == "lost":
        return (PlateReading(plate=plain_plate(text), vehicle=car, left=True),)
    plate = camera_plate(text)
    if not plate:
        return ()
    packet = word(said, "packetCounter")
    return (
        PlateReading(
            plate=plate,
            confidence=fraction(word(said, "plateConfidence")),
            vehicle=car,
            direction=_DIRECTIONS.get(word(said, "carMoveDirection").lower(), ""),
            occurrence=occurrence_of(packet, car, state) if packet else "",
        ),
    )


AXIS = Dialect(name="Axis", read=read_part)
