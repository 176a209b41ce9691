"""The site's polled lines for the page: the quality of each unit, the last frames, and scans for units.

A few words tell how each line and unit answers, the likely cause, and what to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from drivers.bus.line_quality import REPLY_BOUNDS, Counts, LineFault, LineQuality, UnitFault, UnitQuality
from gateway.lines.scans import HIGHEST_UNIT, LOWEST_UNIT
from gateway.lines.site_lines import SiteLines
from gateway.problems.found import SiteState
from gateway.problems.lines import SiteLine
from gateway.texts import Words, keyed, text
from gateway.web.families import Family, operation
from gateway.web.http.bodies import Body, ById, Text
from gateway.web.http.errors import RequestRefused
from gateway.web.operation import CONTROL_DEVICES, VIEW_DEVICES
from gateway.web.status.line_answers import FramesAnswer, LinesAnswer, LineShown, ScanAnswer, UnitShown, ValuesAnswer

_WORTH_TELLING = 0.01
_FEWEST = 3


class FramesQuery(BaseModel):
    """The line whose frames are wanted, and the number of the last frame that the client has."""

    model_config = ConfigDict(frozen=True)

    line: Annotated[str, Field(max_length=120)] = ""
    after: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0


_Unit = Annotated[int, Field(strict=True, ge=LOWEST_UNIT, le=HIGHEST_UNIT)]


class LineNamed(Body):
    """A line, by the id of its link."""

    line: Text


class ScanWanted(LineNamed):
    """The line and the first and last address to scan.

    `through_converter`: scan even through a converter, which waits for each absent unit, so that the site's own units
    wait too.
    """

    first: _Unit = LOWEST_UNIT
    last: _Unit = HIGHEST_UNIT
    through_converter: bool = False


class StatusLines(Family):
    """The handlers of `/status/line/…`: lines with their units, the last frames, and scans.

    Times are in milliseconds. A unit's counts are those of the last hour.
    """

    @operation("GET", "/status/line/list", VIEW_DEVICES, "lines")
    async def _list(self) -> LinesAnswer:
        bounds = tuple(bound * 1000 for bound in REPLY_BOUNDS)
        return LinesAnswer(lines=tuple(_lines(self.context.site_state(), self.context.lines)), bounds=bounds)

    @operation("GET", "/status/line/frames", VIEW_DEVICES, "frames")
    async def _frames(self, asked: FramesQuery) -> FramesAnswer:
        return FramesAnswer(frames=tuple(self.context.lines.frames.since(asked.line, asked.after)))

    @operation("POST", "/status/line/values", VIEW_DEVICES, "values", reads=True)
    async def _values(self, wanted: ById) -> ValuesAnswer:
        """Read every value that the device's profile names, while its line is idle."""
        return ValuesAnswer(values=await self.context.lines.values.read(wanted.id))

    @operation("POST", "/status/line/scan", CONTROL_DEVICES, "scan")
    async def _scan(self, wanted: ScanWanted) -> ScanAnswer:
        """Start a scan; `/status/line/list` shows its progress."""
        if wanted.last < wanted.first:
            raise RequestRefused(400, text("refused.last_below_first"))
        units = range(wanted.first, wanted.last + 1)
        return ScanAnswer(
            scan=self.context.lines.scans.start(wanted.line, units, through_converter=wanted.through_converter)
        )

    @operation("POST", "/status/line/scan/stop", CONTROL_DEVICES, "scan")
    async def _stop_scan(self, wanted: LineNamed) -> ScanAnswer:
        return ScanAnswer(scan=self.context.lines.scans.stop(wanted.line))


def line_words(line: LineQuality) -> Words:
    """Describe the state of a line, with the likely cause of a fault and what to do."""
    fault = line.fault
    if fault is LineFault.DOWN:
        return text("line_verdict.down", why=line.down_reason)
    if fault is LineFault.ECHOES and any(unit.failing is None for unit in line.units):
        return text("line_verdict.echoes_before_answers")
    if fault is LineFault.GARBLED:
        return _garbled(line)
    if fault is not None:
        return text(f"line_verdict.fault.{fault}")
    worse = [str(unit.unit) for unit in line.units if unit.fault is not None or unit.unsecured]
    if worse:
        return text("line_verdict.others_answer", units=", ".join(worse))
    return text("line_verdict.good") if line.units else text("line_verdict.nobody_asked")


def _garbled(line: LineQuality) -> Words:
    if line.violation:
        return text("line_verdict.garbled", why=line.violation)
    return text("line_verdict.garbled_serial") if line.is_serial else text("line_verdict.garbled_tcp")


def unit_words(unit: UnitQuality, line: LineQuality) -> Words:
    """Describe the state of a unit on a line, with the likely cause of a fault and what to do."""
    said = _answering(unit, line)
    return text("unit_verdict.housing_open", said=said) if unit.is_tampered else said


def _answering(unit: UnitQuality, line: LineQuality) -> Words:
    if line.fault not in {None, LineFault.DISTURBED} and (unit.failing is not None or line.fault is LineFault.DOWN):
        return "" if unit.failing is None else text("unit_verdict.see_line")
    if unit.fault is UnitFault.SLOW:
        taken, allowed = f"{(unit.reply_seconds or 0) * 1000:.0f}", f"{unit.allowed_seconds * 1000:.0f}"
        return text("unit_verdict.slow", taken=taken, allowed=allowed)
    if unit.fault is not None:
        return text(f"unit_verdict.fault.{unit.fault}")
    if unit.reply_seconds is None:
        return text("unit_verdict.not_answered")
    if unit.unsecured:
        return text("unit_verdict.unsecured", why=unit.unsecured)
    return _hour_words(unit.hour)


def _hour_words(hour: Counts) -> Words:
    lost = sum(hour.failed.values())
    if lost < _FEWEST or hour.lost_share < _WORTH_TELLING:
        return text("unit_verdict.good")
    kind = max(hour.failed, key=lambda failure: hour.failed[failure])
    asked = lost + sum(hour.reply_times)
    return text("unit_verdict.hour", lost=str(lost), count=str(asked), cause=text(f"unit_verdict.often.{kind}"))


def _lines(site: SiteState, known: SiteLines) -> Iterator[LineShown]:
    names = {device.device_id: device.name for device in site.devices}
    for line in site.lines:
        polled = known.polled.get(line.name)
        yield LineShown(
            name=line.name,
            down=line.quality.down_reason,
            strays=line.quality.strays,
            url=polled.bus.spec.url if polled else "",
            baud=polled.bus.spec.baud if polled else 0,
            framing=(polled.framing or "") if polled else "",
            framed=polled is not None,
            scannable=polled is not None and polled.framing == "rtu",
            scan=known.scans.of(line.name),
            **_verdict(line_words(line.quality)),
            units=tuple(_unit(unit, line, names) for unit in line.quality.units),
        )


def _verdict(words: Words) -> dict[str, Any]:
    return {"verdict": str(words), "said": {"verdict": keyed(words)} if words else None}


def _unit(unit: UnitQuality, line: SiteLine, names: Mapping[int, str]) -> UnitShown:
    device_ids = tuple(line.devices.get(unit.unit, ()))
    return UnitShown(
        unit=unit.unit,
        devices=tuple(names[number] for number in device_ids),
        reply_times=unit.hour.reply_times,
        failed=dict(unit.hour.failed),
        fault=None if unit.fault is None else unit.fault.value,
        reply=None if unit.reply_seconds is None else round(unit.reply_seconds * 1000, 2),
        allowed=unit.allowed_seconds * 1000,
        failing=unit.failing,
        losses=unit.losses,
        unsecured=unit.unsecured,
        tampered=unit.is_tampered,
        device_ids=device_ids,
        **_verdict(unit_words(unit, line.quality)),
    )
