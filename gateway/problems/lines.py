"""The problems of lines that devices share. Pure.

A line that fails as a whole is one problem, which replaces those of its devices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from drivers.bus.line_quality import LineFault, LineQuality, UnitFault, UnitQuality
from drivers.contract import Cause
from gateway.domain.problems import ProblemKind
from gateway.lanes.snapshots import DeviceSnapshot
from gateway.problems.advice import steps_of_line
from gateway.problems.problem import Problem, SitePart
from gateway.texts import Text, text

_SINGLE_TOO = {LineFault.GARBLED: ProblemKind.LINE_GARBLED, LineFault.ECHOES: ProblemKind.LINE_ECHOES}
_LINE_KINDS = {LineFault.DOWN: ProblemKind.LINE_DOWN, LineFault.SILENT: ProblemKind.LINE_SILENT, **_SINGLE_TOO}
_BESIDE_KINDS = {UnitFault.UNRELIABLE: ProblemKind.UNIT_UNRELIABLE, UnitFault.SLOW: ProblemKind.UNIT_SLOW}


@dataclass(frozen=True, slots=True)
class SiteLine:
    """A line of the site: the quality of its units' answers, and the device ids by unit."""

    quality: LineQuality
    devices: Mapping[int, tuple[int, ...]]

    @property
    def name(self) -> str:
        """The link's id."""
        return self.quality.name

    @property
    def device_ids(self) -> tuple[int, ...]:
        """The ids of all devices on the line."""
        return tuple(number for numbers in self.devices.values() for number in numbers)


def problem_of_line(
    line: SiteLine, devices: Mapping[int, DeviceSnapshot], hindered: Mapping[int, list[str]]
) -> Problem | None:
    """Return the problem of the line as a whole; None if it works for any of its devices.

    Args:
        line: the line.
        devices: the devices of the site by id.
        hindered: the names of lanes that cannot work, by the id of the device that causes it.
    """
    own = [devices[number] for number in line.device_ids]
    fault = line.quality.fault
    if fault is None or fault not in _LINE_KINDS or not all(device.online is False for device in own):
        return None
    if len(own) < 2 and fault not in _SINGLE_TOO:
        return None  # with one device it cannot be told from a fault of that device
    names = ", ".join(device.name for device in own)
    return Problem(
        kind=_LINE_KINDS[fault],
        part=SitePart.LINE,
        id=line.name,
        name=line.name,
        text=text("line.with_devices", said=_words(line.quality, fault), devices=names),
        lanes=tuple(dict.fromkeys(lane for device in own for lane in hindered.get(device.device_id, ()))),
        since=min(device.since for device in own),
        told_steps=steps_of_line(line.quality, fault),
    )


def _words(quality: LineQuality, fault: LineFault) -> Text:
    match fault:
        case LineFault.DOWN:
            return text("line.down", line=quality.name, why=quality.down_reason or "")
        case LineFault.GARBLED if quality.violation:
            return text("line.garbled_for", line=quality.name, why=quality.violation)
        case _:
            return text(f"line.fault.{fault}", line=quality.name)


def problems_beside(line: SiteLine, devices: Mapping[int, DeviceSnapshot]) -> Iterator[Problem]:
    """Yield the problems of a line that works, and of units that answer on it."""
    if line.quality.fault is LineFault.DISTURBED and not any(unit.fault for unit in line.quality.units):
        yield Problem(
            kind=ProblemKind.LINE_DISTURBED,
            part=SitePart.LINE,
            id=line.name,
            name=line.name,
            text=text("problem.line_disturbed.text", line=line.name),
        )
    if line.quality.fault is LineFault.ECHOES and any(devices[number].online for number in line.device_ids):
        yield Problem(
            kind=ProblemKind.LINE_ECHOES,
            part=SitePart.LINE,
            id=line.name,
            name=line.name,
            text=text("problem.line_echoes.before_answers", line=line.name),
        )
    for unit in line.quality.units:
        kind = None if unit.fault is None else _BESIDE_KINDS.get(unit.fault)
        for number in line.devices.get(unit.unit, ()) if kind else ():
            device = devices[number]
            if kind and device.online:
                yield Problem(
                    kind=kind,
                    part=SitePart.DEVICE,
                    id=str(number),
                    name=device.name,
                    text=_unit_words(device, unit),
                    line=line.name,
                )


def _unit_words(device: DeviceSnapshot, unit: UnitQuality) -> Text:
    if unit.fault is UnitFault.SLOW and unit.reply_seconds is not None:
        took, allowed = round(unit.reply_seconds * 1000), round(unit.allowed_seconds * 1000)
        return text("problem.unit_slow.text", device=device.name, took=took, allowed=allowed)
    return text("problem.unit_unreliable.text", device=device.name, count=unit.losses)


def cause_of(lines: tuple[SiteLine, ...], device_id: int) -> Cause | None:
    """Return why a device cannot be reached or understood, where that is known for sure."""
    for line in lines:
        if device_id in line.device_ids and line.quality.down_reason:
            return line.quality.down_cause
        for unit in line.quality.units:
            if device_id in line.devices.get(unit.unit, ()) and unit.failing is not None:
                return unit.cause
    return None


def is_garbled(lines: tuple[SiteLine, ...], device_id: int) -> bool:
    """Return whether the device's answers cannot be understood although its line as a whole has no fault."""
    return any(
        unit.fault is UnitFault.GARBLED and line.quality.fault is None
        for line in lines
        for unit in line.quality.units
        if device_id in line.devices.get(unit.unit, ())
    )
