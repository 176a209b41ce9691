"""The site's polled lines for the page: the quality of each unit, the last frames, and scans for units.

A few words tell how each line and unit answers, the likely cause, and what to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from drivers.bus.line_quality import REPLY_BOUNDS, Counts, Failure, LineFault, LineQuality, UnitFault, UnitQuality
from gateway.lines.scans import HIGHEST_UNIT, LOWEST_UNIT
from gateway.lines.site_lines import SiteLines
from gateway.problems.found import SiteState
from gateway.problems.lines import SiteLine
from gateway.web.families import Family, operation
from gateway.web.http.bodies import Body, ById, Text
from gateway.web.http.errors import RequestRefused
from gateway.web.operation import CONTROL_DEVICES, VIEW_DEVICES
from gateway.web.status.line_answers import FramesAnswer, LinesAnswer, LineShown, ScanAnswer, UnitShown, ValuesAnswer

_WORTH_TELLING = 0.01
_FEWEST = 3

_LINE = {
    LineFault.DOWN: "Its port or its converter cannot be opened: check its plug, its supply and its address.",
    LineFault.SILENT: "No unit answers: check the supply of the units, whether A and B are swapped, and the speed.",
    LineFault.ECHOES: "Only what is sent comes back: the adapter hears itself; set `echoes` of the link, and check the"
    " wires behind it.",
    LineFault.DISTURBED: "Something comes that nobody asked for: another master asks on this line, or its shield is"
    " open.",
}
_FAILING = {
    UnitFault.SILENT: "It does not answer while others do: check its supply, its address switch and its wires.",
    UnitFault.GARBLED: "Its answers cannot be read while others' can: two devices have this address, or its wires are"
    " bad. Unplug it: if something still answers, change one address.",
    UnitFault.UNRELIABLE: "It falls silent again and again: a loose terminal, or a line without resistors at its ends.",
}
_OFTEN = {
    Failure.SILENT: "a loose wire, or a supply that drops",
    Failure.GARBLED: "disturbance on the cable, or another device at its address",
    Failure.ECHOED: "an adapter that hears itself",
    Failure.LATE: "a unit or a converter that is slower than its profile allows",
}


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


def line_sentence(line: LineQuality) -> str:
    """Describe the state of a line, with the likely cause of a fault and what to do."""
    fault = line.fault
    if fault is LineFault.DOWN:
        return f"{line.down_reason}. {_LINE[fault]}"
    if fault is LineFault.ECHOES and any(unit.failing is None for unit in line.units):
        return "What is sent comes back before each answer: set `echoes` of the link."
    if fault is not None:
        return _garbled(line) if fault is LineFault.GARBLED else _LINE[fault]
    worse = [str(unit.unit) for unit in line.units if unit.fault is not None or unit.unsecured]
    if worse:
        return f"Others answer, but not unit {', '.join(worse)} as it should."
    return "Every unit answers in time." if line.units else "No unit was asked yet."


def _garbled(line: LineQuality) -> str:
    if line.violation:
        return f"What comes cannot be read: {line.violation}."
    if line.is_serial:
        return "What comes cannot be read: speed, parity or stop bits differ from those of the units."
    return "What comes cannot be read: another service answers there, or `framing` differs."


def unit_sentence(unit: UnitQuality, line: LineQuality) -> str:
    """Describe the state of a unit on a line, with the likely cause of a fault and what to do."""
    housing = "Its housing is open. " if unit.is_tampered else ""
    return housing + _answering(unit, line)


def _answering(unit: UnitQuality, line: LineQuality) -> str:
    if line.fault not in {None, LineFault.DISTURBED} and (unit.failing is not None or line.fault is LineFault.DOWN):
        return "" if unit.failing is None else "See the line."
    if unit.fault is UnitFault.SLOW:
        return (
            f"It answers after {(unit.reply_seconds or 0) * 1000:.0f} ms, of {unit.allowed_seconds * 1000:.0f} ms that"
            " its profile allows: raise the speed of the line, put fewer units on it, or allow it more time."
        )
    if unit.fault is not None:
        return _FAILING[unit.fault]
    if unit.reply_seconds is None:
        return "It has not answered yet."
    if unit.unsecured:
        return (
            f"It {unit.unsecured}. Give it its key again with `edge-gateway osdp provision`, near it and alone on its"
            " line."
        )
    return _hour_sentence(unit.hour)


def _hour_sentence(hour: Counts) -> str:
    lost = sum(hour.failed.values())
    if lost < _FEWEST or hour.lost_share < _WORTH_TELLING:
        return "It answers in time."
    kind = max(hour.failed, key=lambda failure: hour.failed[failure])
    return f"{lost} of {lost + sum(hour.reply_times)} requests of the last hour failed, as by {_OFTEN[kind]}."


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
