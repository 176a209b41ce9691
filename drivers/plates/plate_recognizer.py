"""Messages of Plate Recognizer Stream's webhook: JSON, alone or in a form with a picture.

Rules:
- `data.results` holds one object for each plate in the picture. `plate` is the best of its `candidates`; the others
  are guesses at the same plate, not readings of their own.
- Other hook events than recognition, such as its heartbeat, only show that the camera is there.
- Its direction is an angle in the picture, which says nothing about the lane, and is ignored.
"""

from __future__ import annotations

from drivers.contract import ProtocolViolation
from drivers.plate_text import camera_plate
from drivers.plates.dialect import Dialect, Fields, as_object, read_objects, word
from drivers.plates.multipart import BodyPart
from drivers.plates.readings import Found, PlateReading, found_in, fraction

_MOST_RESULTS = 16


def plate_recognizer(*, camera: str = "") -> Dialect:
    """Make the dialect. `camera` limits it to that camera_id, where several cameras post to one address; "" for all."""

    def read_part(part: BodyPart) -> tuple[Found, ...]:
        return tuple(found for said in read_objects(part) for found in _read(said, camera))

    return Dialect(name="Plate Recognizer", read=read_part)


def _read(said: Fields, camera: str) -> tuple[Found, ...]:
    event = word(as_object(said.get("hook", {})), "event")
    if event not in {"", "recognition"}:
        return ()
    data = said if "results" in said else as_object(said.get("data"))
    results = data.get("results")
    if not isinstance(results, list):
        raise ProtocolViolation("no results")
    if camera and word(data, "camera_id") != camera:
        return ()
    stamp = word(data, "timestamp")
    occurrence = f"{word(data, 'camera_id')} {stamp}" if stamp else ""
    return found_in(results[:_MOST_RESULTS], lambda result: _reading(as_object(result), occurrence))


def _reading(result: Fields, occurrence: str) -> tuple[PlateReading, ...]:
    plate, score = word(result, "plate"), word(result, "score")
    if isinstance(result.get("plate"), dict):  # the form of vehicle detection: values with a score each, the best first
        plate, score = _best(as_object(result["plate"]))
    plate = camera_plate(plate)
    return (PlateReading(plate=plate, confidence=fraction(score), occurrence=occurrence),) if plate else ()


def _best(plate: Fields) -> tuple[str, str]:
    values = as_object(plate.get("props", {})).get("plate")
    if not isinstance(values, list) or not values:
        return "", ""
    best = as_object(values[0])
    return word(best, "value"), word(best, "score")
