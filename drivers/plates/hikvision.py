"""Hikvision's EventNotificationAlert, by push or by its alert stream, as XML or, of newer firmware, as JSON.

Rules:
- Only ANPR events are readings; all other parts only show that the camera is there. The stream's heartbeat is an
  inactive videoloss event.
- Where an element occurs twice, its first occurrence wins. A repeated message has the same UUID. It stands for the
  vehicle too, though the camera may read a standing vehicle again under another one.
- Readings that the camera kept while its connection was down are dropped, because their vehicles are gone.
- `forward` means that the vehicle drives towards the camera.
- Chinese cameras write GBK, also where they declare UTF-8.
"""

from __future__ import annotations

from collections.abc import Mapping

from drivers.contract import ProtocolViolation
from drivers.plate_text import camera_plate
from drivers.plates.dialect import Dialect, Fields, read_objects, word
from drivers.plates.multipart import BodyPart
from drivers.plates.readings import Direction, Found, PlateReading, found_in, fraction, occurrence_of
from drivers.xml_texts import read_xml

_ROOT = "EventNotificationAlert"
_DIRECTIONS: dict[str, Direction] = {"forward": "approaching", "reverse": "leaving"}
_DEEPEST = 8


def read_part(part: BodyPart) -> tuple[Found, ...]:
    """Return the readings in an alert; none when it is no plate's. Raises ProtocolViolation for other documents."""
    text = part.body.strip()
    if not text:
        return ()
    if text.startswith((b"{", b"[")):
        return found_in(read_objects(part), _reading_of_object)
    if part.field and b"<" not in text:
        return ()  # another field of the form
    alert = read_xml(part.body, declared=part.charset, keeps_bytes=True)
    if alert.root != _ROOT:
        raise ProtocolViolation(f"a {alert.root[:40]} instead of an alert")
    return found_in((alert.first,), _reading)


def _reading_of_object(alert: Fields) -> tuple[PlateReading, ...]:
    said: dict[str, str] = {}
    _collect(alert, said, depth=0)
    if "eventType" not in said:
        raise ProtocolViolation("JSON of another form than this camera's")
    return _reading(said)


def _collect(fields: Fields, said: dict[str, str], *, depth: int) -> None:
    """Collect the first text of each name in an object and in those inside it, as `read_xml` does."""
    for name, value in fields.items():
        inner = value if isinstance(value, list) else [value]
        for one in inner:
            if isinstance(one, dict) and depth < _DEEPEST:
                _collect(one, said, depth=depth + 1)
        if text := "true" if value is True else word(fields, name):
            said.setdefault(name, text)


def _reading(said: Mapping[str, str]) -> tuple[PlateReading, ...]:
    if said.get("eventType", "").upper() != "ANPR" or _is_kept_back(said):
        return ()
    plate, uuid = camera_plate(said.get("licensePlate", ""), usual="gb18030"), said.get("UUID", "")
    if not plate:
        return ()
    return (
        PlateReading(
            plate=plate,
            confidence=_confidence(said.get("confidenceLevel")),
            vehicle=uuid or said.get("index", ""),
            direction=_DIRECTIONS.get(said.get("direction", ""), ""),
            occurrence=occurrence_of(uuid, said.get("dateTime", "")),
        ),
    )


def _is_kept_back(said: Mapping[str, str]) -> bool:
    return said.get("isDataRetransmission") == "true" or said.get("alarmDataType") == "1"


def _confidence(text: str | None) -> float:
    """Return the confidence, 0.0 to 1.0. The interface gives percent, but some firmware a fraction.

    A camera reports no plate of which it is 1 % sure, so a number up to 1 is a fraction.
    """
    share = fraction(text, of=100.0)
    return share if share > 0.01 else fraction(text)


HIKVISION = Dialect(
    name="Hikvision",
    read=read_part,
    element=_ROOT.encode(),
    stream_path="/ISAPI/Event/notification/alertStream",
    silence_seconds=30.0,
)
