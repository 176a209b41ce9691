"""The differences between makes of plate cameras, as values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from drivers.plates.parts import Part
from drivers.plates.readings import PlateReading

ReadPart = Callable[[Part], tuple[PlateReading, ...]]
"""A pure function that returns the readings in one part of a body. It may be called from any thread.

A valid part without a reading, such as a heartbeat, gives none. An invalid one raises ProtocolViolation.
"""


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
