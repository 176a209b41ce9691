"""Hikvision's EventNotificationAlert, by push or by its alert stream.

Rules:
- Only ANPR events are readings; all other parts only show that the camera is there. The stream's heartbeat is an
  inactive videoloss event.
- Where an element occurs twice, its first occurrence wins. A repeated message has the same UUID.
- Readings that the camera kept while its connection was down are dropped, because their vehicles are gone.
- `forward` means that the vehicle drives towards the camera.
"""

from __future__ import annotations

from collections.abc import Mapping

from drivers.contract import ProtocolViolation
from drivers.plates.dialect import Dialect
from drivers.plates.multipart import Part
from drivers.plates.readings import Direction, PlateReading, fraction, normalised, told_apart
from drivers.xml_texts import read_xml

_DIRECTIONS: dict[str, Direction] = {"forward": "approaching", "reverse": "leaving"}


def read_part(part: Part) -> tuple[PlateReading, ...]:
    """Return the reading in an alert; none when it is no plate's. Raises ProtocolViolation for other documents."""
    if part.is_picture or not part.body.strip():
        return ()
    alert = read_xml(part.body)
    if alert.root != "EventNotificationAlert":
        raise ProtocolViolation(f"a {alert.root[:40]} instead of an alert")
    said = alert.first
    if said.get("eventType", "").upper() != "ANPR" or _is_kept_back(said):
        return ()
    plate = normalised(said.get("licensePlate", ""))
    if not plate:
        return ()
    uuid = said.get("UUID", "")
    return (
        PlateReading(
            plate=plate,
            confidence=_confidence(said.get("confidenceLevel")),
            vehicle=uuid or said.get("index", ""),
            direction=_DIRECTIONS.get(said.get("direction", ""), ""),
            occurrence=told_apart(plate, uuid, said.get("dateTime", "")),
        ),
    )


def _is_kept_back(said: Mapping[str, str]) -> bool:
    return said.get("isDataRetransmission") == "true" or said.get("alarmDataType") == "1"


def _confidence(text: str | None) -> float:
    """Return the confidence, 0.0 to 1.0. The interface gives percent, but some firmware a fraction."""
    return fraction(text) if text and "." in text and text[:1] in "01" else fraction(text, of=100.0)


HIKVISION = Dialect(
    name="Hikvision",
    read=read_part,
    closing=b"</EventNotificationAlert>",
    stream_path="/ISAPI/Event/notification/alertStream",
    silence_seconds=30.0,
)
