"""Checks of devices and lanes against device profiles, on Modbus and on serial lines."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from drivers.gates.profile_parts import LimitPosition
from drivers.modbus.profile import GateProfile as ModbusGateProfile
from drivers.modbus.profile import Point as ModbusPoint
from drivers.modbus.profile import load_profile, load_unit_profile
from drivers.profile_file import ProfileError
from gateway.site.addresses import Endpoint
from gateway.site.fault import Fault
from gateway.site.faults import faults_of
from gateway.site.models import LaneSection, Link, ModbusDevice, ModbusGateDevice, ModbusIoDevice, PointRef, Site
from gateway.site.serial_devices import SerialDevice, SerialTagReaderDevice

if TYPE_CHECKING:
    from drivers.serial_line.profile import DeviceProfile, GateProfile
    from drivers.serial_line.profile import GateProfile as SerialGateProfile
    from drivers.serial_line.status import Point as SerialPoint


@dataclass(frozen=True, slots=True)
class ProfiledDevice:
    """A device's points and commands by its profile.

    Attributes:
        profile: the profile's name.
        points: the device's named inputs; two names of one input have equal values.
        limits: the points that are limit switches, each with its role ("closed limit", "open limit").
        closes: whether the gate has a command to close; True if the device is no gate.
        has_position: whether the gate's position can be known; True if the device is no gate.
    """

    profile: str
    points: Mapping[str, Hashable]
    limits: Mapping[str, str]
    closes: bool = True
    has_position: bool = True


def profile_faults(site: Site, folders: Iterable[Path], find: Callable[[str], Path | None]) -> Iterator[Fault]:
    """Yield the faults of profiles, of devices with profiles, and of lanes that need something a profile lacks.

    `find` returns a profile's file by its name; `folders` are the folders that it searches.
    """
    known: dict[int, ProfiledDevice] = {}
    unfit = set()
    for index, device in enumerate(site.devices):
        if isinstance(device, ModbusGateDevice | ModbusIoDevice | SerialDevice):
            fault = _fault_of_choice(device, folders, find(device.profile))
            if fault:
                unfit.add(index)
                yield Fault(f"devices[{index}].profile", fault)
    for index, device in enumerate(site.devices):
        found = find(device.profile) if isinstance(device, ModbusDevice) and index not in unfit else None
        if found is None or not isinstance(device, ModbusDevice):
            continue
        try:
            profile = load_profile(found) if isinstance(device, ModbusGateDevice) else load_unit_profile(found)
        except ProfileError as error:
            yield from _faults_in_file(f"devices[{index}].profile", found, error)
            continue
        gate = profile if isinstance(device, ModbusGateDevice) and isinstance(profile, ModbusGateProfile) else None
        known[device.id] = _profiled(device.profile, profile.points, gate)
    gates: dict[int, SerialGateProfile] = {}
    yield from serial_faults(site, find, gates, unfit)
    for device in site.devices:
        if device.id in gates and isinstance(device, SerialDevice):
            gate_profile = gates[device.id]
            known[device.id] = _profiled(device.profile, gate_profile.points, gate_profile)
    for index, lane in enumerate(site.lanes):
        yield from _lane_faults(f"lanes[{index}]", lane, known)


def _faults_in_file(place: str, file: Path, error: ProfileError) -> Iterator[Fault]:
    """Yield the faults in a profile's file, in the words of faults of the site file."""
    if not isinstance(error.__cause__, ValidationError):
        yield Fault(place, f"{error.faults[0]} (in the profile's file {file})")
        return
    for fault in faults_of(error.__cause__):
        if fault.place:
            yield Fault(place, f"{fault.message} (at {fault.place} in the profile's file {file})")
        else:
            yield Fault(place, f"{fault.message} (in the profile's file {file})")


def _profiled(
    name: str,
    points: Mapping[str, ModbusPoint | SerialPoint],
    gate: ModbusGateProfile | SerialGateProfile | None,
) -> ProfiledDevice:
    inputs = {point: what.model_copy(update={"stale_ms": None}) for point, what in points.items()}
    if gate is None:
        return ProfiledDevice(name, inputs, {})
    limits: dict[str, str] = {}
    if isinstance(gate.position, LimitPosition):
        limits = {gate.position.closed_point: "closed limit", gate.position.open_point: "open limit"}
    return ProfiledDevice(name, inputs, limits, gate.commands.close is not None, gate.position is not None)


def _fault_of_choice(
    device: ModbusGateDevice | ModbusIoDevice | SerialDevice, folders: Iterable[Path], found: Path | None
) -> str:
    """Return why this device cannot use its profile at all, "" if it can."""
    if found is None:
        names = sorted({path.stem for folder in folders for path in folder.glob("*.toml")})
        near = difflib.get_close_matches(device.profile, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "'edge-gateway drivers' lists all profiles"
        return f"no profile {device.profile!r}; {hint}"
    try:
        fitting = _fitting_drivers(tomllib.loads(found.read_text("utf-8")))
    except (OSError, ValueError):  # loading it reports the fault in full
        return ""
    if not fitting or device.driver in fitting:
        return ""
    if fitting == ("modbus-io",):
        return (
            f"profile {device.profile!r} has no commands, so it moves no gate;"
            f' it is for driver = "modbus-io", not for "{device.driver}"'
        )
    wanted = " or ".join(f'driver = "{name}"' for name in fitting)
    return f'profile {device.profile!r} is for {wanted}, not for "{device.driver}"'


def _fitting_drivers(raw: Mapping[str, object]) -> tuple[str, ...]:
    """Return the drivers that can use a profile, judged by its keys; empty if it is not a profile."""
    if raw.get("family") == "serial-line":
        return {"gate": ("serial-gate",), "tag-reader": ("serial-tag-reader",)}.get(str(raw.get("kind")), ())
    if "family" in raw:
        return ()
    if "commands" in raw:
        return ("modbus-gate", "modbus-io")
    return ("modbus-io",) if "points" in raw else ()


def _lane_faults(place: str, lane: LaneSection, known: Mapping[int, ProfiledDevice]) -> Iterator[Fault]:
    for field, ref, role in _named_points(lane):
        device = known.get(ref.device)
        if device is None:
            continue
        if ref.point not in device.points:
            names = ", ".join(sorted(device.points)) or "none"
            yield Fault(f"{place}.{field}.point", f"device {ref.device} has no point {ref.point!r} (it has {names})")
        elif ref.point in device.limits:
            limit = device.limits[ref.point]
            yield Fault(f"{place}.{field}.point", f"{ref.point!r} is the gate's {limit} in its profile, not {role}")
    yield from _inputs_named_twice(place, lane, known)
    gate = known.get(lane.gate)
    if gate is None or lane.closes != "gateway":
        return
    if not gate.closes:
        yield Fault(f"{place}.closes", f"'gateway' needs a command to close, and profile {gate.profile!r} has none")
    elif not gate.has_position and lane.closed_limit is None:
        message = f"'gateway' needs to know where the gate is, and profile {gate.profile!r} has no position"
        yield Fault(f"{place}.closes", message)


def _inputs_named_twice(place: str, lane: LaneSection, known: Mapping[int, ProfiledDevice]) -> Iterator[Fault]:
    """Yield faults for points of a lane that are the same input of a device under two names."""
    seen: dict[tuple[int, Hashable], tuple[str, str]] = {}
    for field, ref, _ in _named_points(lane):
        device = known.get(ref.device)
        if device is None or ref.point not in device.points:
            continue
        other, name = seen.setdefault((ref.device, device.points[ref.point]), (field, ref.point))
        if name != ref.point:
            message = (
                f"{ref.point!r} is the same input of device {ref.device} as {name!r} ({other});"
                " name the input that is meant"
            )
            yield Fault(f"{place}.{field}.point", message)


def _named_points(lane: LaneSection) -> Iterator[tuple[str, PointRef, str]]:
    yield "arming", lane.arming, "an arming loop"
    yield "closing", lane.closing, "a closing loop"
    for number, ref in enumerate(lane.safety):
        yield f"safety[{number}]", ref, "a safety point"
    yield from (
        (field, ref, "a limit switch")
        for field, ref in (("closed_limit", lane.closed_limit), ("open_limit", lane.open_limit))
        if ref is not None
    )
    others = (("far", lane.far, "an arming loop"), ("fire", lane.fire, "a fire input"))
    for field, named, role in (*others, ("key_switch", lane.key_switch, "a key switch")):
        if named is not None:
            yield field, named, role


def serial_faults(
    site: Site, find: Callable[[str], Path | None], gates: dict[int, GateProfile], unfit: Collection[int] = ()
) -> Iterator[Fault]:
    """Yield the faults of serial gates and tag readers and of their profiles.

    The profile of each gate is added to `gates` by the device's id. Devices whose index is in `unfit` are left out,
    because it is reported already that their profile does not fit.
    """
    links = {link.id: link for link in site.links}
    users: dict[str, list[tuple[int, SerialDevice, DeviceProfile]]] = {}
    for index, device in enumerate(site.devices):
        if not isinstance(device, SerialDevice):
            continue
        found = find(device.profile) if index not in unfit else None
        if found is None:
            continue
        try:
            profile = _profile_of(device, found, gates)
        except ProfileError as error:
            yield from _faults_in_file(f"devices[{index}].profile", found, error)
            continue
        if device.link in links:
            yield from _line_faults(index, profile, links[device.link])
        users.setdefault(device.link, []).append((index, device, profile))
    for sharing in users.values():
        yield from _sharing_faults(sharing)


def _profile_of(device: SerialDevice, found: Path, gates: dict[int, GateProfile]) -> DeviceProfile:
    from drivers.serial_line.profile import (  # noqa: PLC0415  # only a site with serial devices loads it
        load_gate_profile,
        load_tag_reader_profile,
    )

    if isinstance(device, SerialTagReaderDevice):
        return load_tag_reader_profile(found)
    gates[device.id] = load_gate_profile(found)
    return gates[device.id]


def _line_faults(index: int, profile: DeviceProfile, link: Link) -> Iterator[Fault]:
    if profile.line.break_us and isinstance(link.line(), Endpoint):
        message = f"{profile.name} wants a break before each frame, which {link.id!r} cannot send; use a serial port"
        yield Fault(f"devices[{index}].link", message)


def _sharing_faults(sharing: list[tuple[int, SerialDevice, DeviceProfile]]) -> Iterator[Fault]:
    """Yield faults for devices that cannot share a line: each must be polled and have an address of its own."""
    from drivers.serial_line.profile import TagReaderProfile  # noqa: PLC0415  # likewise

    units: dict[int, int] = {}
    for index, device, profile in sharing:
        if len(sharing) > 1 and isinstance(profile, TagReaderProfile) and profile.poll is None:
            yield Fault(f"devices[{index}].link", f"{profile.name} sends unasked and cannot share {device.link!r}")
        elif len(sharing) > 1 and not profile.names_unit:
            yield Fault(f"devices[{index}].link", f"{profile.name} has no address and cannot share {device.link!r}")
        first = units.setdefault(device.unit, index)
        if first != index:
            message = f"{device.unit} on {device.link!r} is already used by devices[{first}]"
            yield Fault(f"devices[{index}].unit", message)
