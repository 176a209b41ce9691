"""Answers about polled lines, for the page and for commands."""

from __future__ import annotations

from drivers.bus.line_quality import Failure
from drivers.modbus.survey import UnitValues
from gateway.domain.writes import JsonObject
from gateway.lines.frames import Frame
from gateway.lines.scans import Scan
from gateway.web.answers import Answer, AnswerPart


class UnitShown(AnswerPart):
    """A unit on a line. Times are in milliseconds, counts those of the last hour.

    Attributes:
        reply: the median time of its answers; None before the first.
        allowed: how long its answers may take.
        failing: how its requests fail now, None while it answers.
        device_ids: the devices of the site at this unit; `devices` has their names.
    """

    unit: int
    devices: tuple[str, ...]
    reply_times: tuple[int, ...]
    failed: dict[Failure, int]
    fault: str | None
    reply: float | None
    allowed: float
    failing: Failure | None
    losses: int
    unsecured: str | None
    tampered: bool
    device_ids: tuple[int, ...]
    verdict: str
    said: JsonObject | None


class LineShown(AnswerPart):
    """A polled line. `framed` and `scannable`: whether its frames are kept, and whether it can be scanned."""

    name: str
    down: str
    strays: int
    url: str
    baud: int
    framing: str
    framed: bool
    scannable: bool
    scan: Scan | None
    verdict: str
    said: JsonObject | None
    units: tuple[UnitShown, ...]


class LinesAnswer(Answer):
    """The polled lines, and the bounds of the counts of reply times."""

    lines: tuple[LineShown, ...]
    bounds: tuple[float, ...]


class FramesAnswer(Answer):
    """The last frames of a line, oldest first."""

    frames: tuple[Frame, ...]


class ValuesAnswer(Answer):
    """Every value that the device's profile names."""

    values: UnitValues


class ScanAnswer(Answer):
    """A scan, under way or ended."""

    scan: Scan
