"""The differences between makes of plate cameras, as values, and the parsing of the JSON that several makes push."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs

from drivers.contract import MessageRefused, MonotonicSeconds, PlateSeen, ProtocolViolation
from drivers.plates.multipart import BodyPart
from drivers.plates.readings import Found, PlateReading, Sightings, UnreadPlate
from drivers.texts import BLANKS, decoded

ReadPart = Callable[[BodyPart], tuple[Found, ...]]
"""A pure function that returns the readings in one text of a body. It may be called from any thread.

A valid text without a reading, such as a heartbeat, gives none. An invalid one raises ProtocolViolation.
"""
Fields = Mapping[str, object]
_FORM = "application/x-www-form-urlencoded"
_BEGINS = ("{", "[")
_AROUND = BLANKS + "\0\ufeff,"
_LONGEST_WORD = 120
_CUT = "\ufffd"
_MOST_OBJECTS = 64
_DECODER = json.JSONDecoder(strict=False)  # texts of cameras have control characters


@dataclass(frozen=True, slots=True)
class Dialect:
    """The form of one make's messages.

    Attributes:
        name: the make's name, for people.
        read: the function that parses its parts.
        element: the root element of its documents; see `PartSplitter`.
        stream_path: path and query of its endless stream; "" for a make that only pushes.
        silence_seconds: the stream counts as lost when nothing came for so long, not even a heartbeat.
    """

    name: str
    read: ReadPart
    element: bytes = b""
    stream_path: str = ""
    silence_seconds: float = 30.0


def read_objects(part: BodyPart) -> tuple[Fields, ...]:
    """Parse the JSON objects of a part, or of a form's field `json`: one, several in a row, or a list of them.

    A form's field of other text gives none. Raises ProtocolViolation when there is no whole object.
    """
    text = decoded(part.body, declared=part.charset).strip(_AROUND)
    try:
        if part.content_type == _FORM and not text.startswith(_BEGINS):  # some makes declare plain JSON as a form
            text = parse_qs(text, strict_parsing=True, max_num_fields=16)["json"][0].strip(_AROUND)
        if part.field and not text.startswith(_BEGINS):
            return ()
        found: list[object] = []
        while text.startswith(_BEGINS) and len(found) < _MOST_OBJECTS:
            value, end = _DECODER.raw_decode(text)
            found += value if isinstance(value, list) else (value,)
            text = text[end:].lstrip(_AROUND)
    except (ValueError, KeyError, RecursionError) as error:
        raise ProtocolViolation("no readable JSON") from error
    if not found:
        raise ProtocolViolation("no readable JSON")
    return tuple(map(as_object, found[:_MOST_OBJECTS]))


def as_object(value: object) -> Fields:
    """Return the value. Raises ProtocolViolation when it is not an object."""
    if not isinstance(value, dict):
        raise ProtocolViolation("JSON of another form than this camera's")
    return value


def word(fields: Fields, name: str) -> str:
    """Return a field as text; "" unless it is a text or a number.

    One of more than 120 characters is cut, and then ends with a replacement mark, so that no plate is read from it.
    """
    value = fields.get(name)
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return ""
    text = str(value).strip(BLANKS)
    return text if len(text) <= _LONGEST_WORD else text[: _LONGEST_WORD - 1] + _CUT


class PartReports:
    """The maker of one camera's reports.

    Args:
        device_id: the id that the reports carry.
        dialect: the camera's make.
    """

    def __init__(self, *, device_id: int, dialect: Dialect) -> None:
        self._device_id = device_id
        self._dialect = dialect
        self._sightings = Sightings()

    def read(self, part: BodyPart) -> tuple[Found, ...]:
        """Return the readings in a part, and what cannot be read in it. It may be called from any thread."""
        if part.is_picture:
            return ()
        try:
            return self._dialect.read(part)
        except ProtocolViolation as violation:
            return (UnreadPlate(str(violation)),)

    def of(
        self, found: tuple[Found, ...], part: BodyPart, *, at: MonotonicSeconds
    ) -> Iterator[PlateSeen | MessageRefused]:
        """Yield the reports of what was found in a part, without readings that are repeated."""
        for one in found:
            if isinstance(one, UnreadPlate):
                yield MessageRefused(self._device_id, one.reason, part.body, at)
        readings = [one for one in found if isinstance(one, PlateReading)]
        for seen in self._sightings.fresh(readings, at=at):
            yield PlateSeen(self._device_id, seen.plate, seen.confidence, seen.vehicle, seen.direction, at)
