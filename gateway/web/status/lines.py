"""The site's polled lines for the page: the quality of each unit, the last frames, and scans for units."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Annotated

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from drivers.bus.line_quality import REPLY_BOUNDS, UnitQuality
from gateway.domain.writes import JsonObject
from gateway.lines.judgement import line_sentence, unit_sentence
from gateway.lines.scans import HIGHEST_UNIT, LOWEST_UNIT
from gateway.lines.site_lines import SiteLines
from gateway.problems.found import SiteState
from gateway.web.families import Family, operation
from gateway.web.http.bodies import Body, ById, Text
from gateway.web.http.envelope import success
from gateway.web.http.errors import RequestRefused
from gateway.web.operation import CONTROL_DEVICES, VIEW_DEVICES


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


@dataclass(frozen=True, kw_only=True)
class StatusLines(Family):
    """The handlers of `/status/line/…`: lines with their units, the last frames, and scans.

    Times are in milliseconds. A unit's counts are those of the last hour.
    """

    state: Callable[[], SiteState]
    lines: SiteLines

    @operation("GET", "/status/line/list", VIEW_DEVICES, "lines")
    async def _list(self) -> web.StreamResponse:
        lines = list(_lines(self.state(), self.lines))
        return success(lines=lines, bounds=[bound * 1000 for bound in REPLY_BOUNDS])

    @operation("GET", "/status/line/frames", VIEW_DEVICES, "frames")
    async def _frames(self, asked: FramesQuery) -> web.StreamResponse:
        return success(frames=[asdict(frame) for frame in self.lines.frames.since(asked.line, asked.after)])

    @operation("POST", "/status/line/values", VIEW_DEVICES, "values", reads=True)
    async def _values(self, wanted: ById) -> web.StreamResponse:
        """Read every value that the device's profile names, while its line is idle."""
        return success(values=asdict(await self.lines.values.read(wanted.id)))

    @operation("POST", "/status/line/scan", CONTROL_DEVICES, "scan")
    async def _scan(self, wanted: ScanWanted) -> web.StreamResponse:
        """Start a scan; `/status/line/list` shows its progress."""
        if wanted.last < wanted.first:
            raise RequestRefused(400, "last: must not be below first")
        units = range(wanted.first, wanted.last + 1)
        scan = self.lines.scans.start(wanted.line, units, through_converter=wanted.through_converter)
        return success(scan=asdict(scan))

    @operation("POST", "/status/line/scan/stop", CONTROL_DEVICES, "scan")
    async def _stop_scan(self, wanted: LineNamed) -> web.StreamResponse:
        return success(scan=asdict(self.lines.scans.stop(wanted.line)))


def _lines(site: SiteState, known: SiteLines) -> Iterator[JsonObject]:
    names = {device.device_id: device.name for device in site.devices}
    for line in site.lines:
        devices = {unit: [names[number] for number in numbers] for unit, numbers in line.devices.items()}
        yield {
            "name": line.name,
            "down": line.quality.down_reason,
            "strays": line.quality.strays,
            "url": polled.bus.spec.url if (polled := known.polled.get(line.name)) else "",
            "baud": polled.bus.spec.baud if polled else 0,
            "framing": (polled.framing or "") if polled else "",
            "framed": polled is not None,
            "scannable": polled is not None and polled.framing == "rtu",
            "scan": None if (scan := known.scans.of(line.name)) is None else asdict(scan),
            "verdict": line_sentence(line.quality),
            "units": [
                {
                    **_unit(unit, devices.get(unit.unit, [])),
                    "device_ids": list(line.devices.get(unit.unit, ())),
                    "verdict": unit_sentence(unit, line.quality),
                }
                for unit in line.quality.units
            ],
        }


def _unit(unit: UnitQuality, devices: list[str]) -> JsonObject:
    return {
        "unit": unit.unit,
        "devices": list(devices),
        "reply_times": list(unit.hour.reply_times),
        "failed": {failure.value: count for failure, count in unit.hour.failed.items()},
        "fault": None if unit.fault is None else unit.fault.value,
        "reply": None if unit.reply_seconds is None else round(unit.reply_seconds * 1000, 2),
        "allowed": unit.allowed_seconds * 1000,
        "failing": None if unit.failing is None else unit.failing.value,
        "losses": unit.losses,
        "unsecured": unit.unsecured,
        "tampered": unit.is_tampered,
    }
