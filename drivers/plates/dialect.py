"""The differences between makes of plate cameras, as values, and the parsing of the JSON that several makes push."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs

from drivers.contract import ProtocolViolation
from drivers.plates.multipart import Part
from drivers.plates.readings import PlateReading

ReadPart = Callable[[Part], tuple[PlateReading, ...]]
"""A pure function that returns the readings in one part of a body. It may be called from any thread.

A valid part without a reading, such as a heartbeat, gives none. An invalid one raises ProtocolViolation.
"""
Fields = Mapping[str, object]
_FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Dialect:
    """The form of one make's messages.

    Attributes:
        name: the make's name, for people.
        read: the function that parses its parts.
        closing: the text that ends its text parts, even where their Content-Length differs; see `PartSplitter`.
        stream_path: path and query of its endless stream; "" for a make that only pushes.
        silence_seconds: the stream counts as lost when nothing came for so long, not even a heartbeat.
    """

    name: str
    read: ReadPart
    closing: bytes = b""
    stream_path: str = ""
    silence_seconds: float = 30.0


def read_object(part: Part) -> Fields:
    """Parse the JSON object of a part, or of a form's field `json`. Raises ProtocolViolation when there is none."""
    try:
        text = part.body.decode("utf-8-sig")
        if part.content_type == _FORM and not text.lstrip().startswith("{"):  # some makes declare plain JSON as a form
            text = parse_qs(text, strict_parsing=True, max_num_fields=16)["json"][0]
        return as_object(json.loads(text))
    except (ValueError, KeyError, RecursionError) as error:
        raise ProtocolViolation("no readable JSON") from error


def as_object(value: object) -> Fields:
    """Return the value. Raises ProtocolViolation when it is not an object."""
    if not isinstance(value, dict):
        raise ProtocolViolation("JSON of another form than this camera's")
    return value


def word(fields: Fields, name: str) -> str:
    """Return a field as text, at most 120 characters; "" unless it is a text or a number."""
    value = fields.get(name)
    return str(value).strip()[:120] if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
