"""The site's polled lines for the page: the quality of each unit, the last frames, and scans for units."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from drivers.bus.line_quality import REPLY_BOUNDS, UnitQuality
from gateway.lines.judgement import line_sentence, unit_sentence
from gateway.lines.scans import HIGHEST_UNIT, LOWEST_UNIT
from gateway.lines.site_lines import SiteLines
from gateway.problems.found import SiteState
from gateway.problems.lines import SiteLine
from gateway.web.families import Family, operation
from gateway.web.http.bodies import Body, ById, Text
from gateway.web.http.errors import RequestRefused
from gateway.web.operation import CONTROL_DEVICES, VIEW_DEVICES
from gateway.web.status.line_answers import FramesAnswer, LinesAnswer, LineShown, ScanAnswer, UnitShown, ValuesAnswer


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
            raise RequestRefused(400, "last: must not be below first")
        units = range(wanted.first, wanted.last + 1)
        return ScanAnswer(
            scan=self.context.lines.scans.start(wanted.line, units, through_converter=wanted.through_converter)
        )

    @operation("POST", "/status/line/scan/stop", CONTROL_DEVICES, "scan")
    async def _stop_scan(self, wanted: LineNamed) -> ScanAnswer:
        return ScanAnswer(scan=self.context.lines.scans.stop(wanted.line))


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
            verdict=line_sentence(line.quality),
            units=tuple(_unit(unit, line, names) for unit in line.quality.units),
        )


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
        verdict=unit_sentence(unit, line.quality),
    )
