"""The differences between makes of plate cameras, as values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from drivers.plates.parts import Part
from drivers.plates.readings import PlateReading

ReadPart = Callable[[Part], tuple[PlateReading, ...]]
"""The readings in one part of a body: pure, and fit for any thread.

A part that is of its kind and no reading, as a heartbeat, gives none. One that is not raises ProtocolViolation.
"""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The form of one make's messages.

    Attributes:
        name: for people.
        read: how its parts are read.
        closing: what ends its texts whatever their length says; see `PartSplitter`.
        stream_path: path and query of its endless stream; "" for a make that only pushes.
        silence_seconds: how long its stream may be silent, heartbeats included, until it counts as lost.
    """

    name: str
    read: ReadPart
    closing: bytes = b""
    stream_path: str = ""
    silence_seconds: float = 30.0
