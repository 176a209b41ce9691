"""Dahua's snapshot stream: `snapManager.cgi?action=attachFileProc`, parts of `key=value` lines and pictures.

Rules (HTTP API 3.x, "Subscribe to Snapshot" and "TrafficJunction"):
- Keys are `Events[n].Field`; a part may hold several events. Only TrafficJunction events are readings.
- The heartbeat is a part with the word Heartbeat alone. The path asks for one every 5 s.
- Chinese cameras write GBK.
- Several pictures of one vehicle share a GroupID, and the event's text comes again with each.
- The confidence of an object is 0 to 255.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from drivers.contract import ProtocolViolation
from drivers.plate_text import camera_plate
from drivers.plates.dialect import Dialect
from drivers.plates.multipart import BodyPart
from drivers.plates.readings import Direction, Found, PlateReading, found_in, fraction, occurrence_of
from drivers.texts import BLANKS, decoded

_LINE = re.compile(r"Events\[([0-9]{1,2})\]\.([^=\s]{1,120})=(.{0,400})")
_PLATES = ("TrafficCar.PlateNumber", "Object.Text", "Plate.Text", "PlateNumber")
"""The places of the plate, the surest first; firmware leaves some out, or writes "unlicensed" there."""
_DIRECTIONS: dict[str, Direction] = {
    "Approach": "approaching",
    "Leave": "leaving",
    "Head": "approaching",
    "Tail": "leaving",
}


def read_part(part: BodyPart) -> tuple[Found, ...]:
    """Return the readings in a part; none for heartbeats. Raises ProtocolViolation for other parts."""
    text = decoded(part.body, declared=part.charset).strip(BLANKS + "\0")
    if text in {"", "Heartbeat"}:
        return ()
    events: dict[str, dict[str, str]] = {}
    for line in text.split("\n"):  # `splitlines` would end a plate at VT, FF, NEL and others
        if found := _LINE.fullmatch(line.strip(BLANKS)):
            number, field, value = found.groups()
            events.setdefault(number, {}).setdefault(field, value.strip(BLANKS))
    if not events:
        raise ProtocolViolation("a part without events")
    return found_in(events.values(), _reading)


def _reading(event: Mapping[str, str]) -> tuple[PlateReading, ...]:
    if (event.get("Code") or event.get("EventBaseInfo.Code")) != "TrafficJunction":
        return ()
    plates = (camera_plate(event.get(key, ""), usual="gb18030") for key in _PLATES)
    if not (plate := next(filter(None, plates), "")):
        return ()
    group = event.get("GroupID", "")
    direction = event.get("TrafficCar.DrivingDirection[0]") or event.get("VehicleDirection", "")
    reading = PlateReading(
        plate=plate,
        confidence=fraction(event.get("Object.Confidence"), of=255.0),
        vehicle="" if group == "0" else group,
        direction=_DIRECTIONS.get(direction, ""),
        occurrence=occurrence_of(*(event.get(field, "") for field in ("GroupID", "EventID", "UTC", "UTCMS"))),
    )
    return (reading,)


DAHUA = Dialect(
    name="Dahua",
    read=read_part,
    stream_path=(
        "/cgi-bin/snapManager.cgi?action=attachFileProc&channel=1&heartbeat=5&Flags[0]=Event&Events=[TrafficJunction]"
    ),
    silence_seconds=12.0,
)
