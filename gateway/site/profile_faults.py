"""Checks of devices and lanes against device profiles."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from drivers.device import Abilities, Device, GateDevice, ProfiledDevice
from drivers.profile_file import ProfileError
from gateway.site.fault import SiteFault
from gateway.site.faults import faults_of, of_section
from gateway.site.models import LaneSection, PointRef, Site


def profile_faults(site: Site, folders: Iterable[Path], find: Callable[[str], Path | None]) -> Iterator[SiteFault]:
    """Yield the faults of profiles, of devices with profiles, and of lanes that need something a device lacks.

    `find` returns a profile's file by its name; `folders` are the folders that it searches.
    """
    known: dict[int, tuple[Device, Abilities]] = {}
    unfit = set()
    for index, device in enumerate(site.devices):
        if isinstance(device, ProfiledDevice) and (fault := _fault_of_choice(device, folders, find(device.profile))):
            unfit.add(index)
            yield SiteFault(f"devices[{index}].profile", fault)
    for index, device in enumerate(site.devices):
        if index not in unfit:
            yield from of_section(f"devices[{index}]", device, _faults_by_section(site, index, find, known))
    for index, lane in enumerate(site.lanes):
        yield from _lane_faults(f"lanes[{index}]", lane, known)


def _faults_by_section(
    site: Site, index: int, find: Callable[[str], Path | None], known: dict[int, tuple[Device, Abilities]]
) -> Iterator[SiteFault]:
    """Yield the faults in a device's profile and those that follow from it; add its abilities to `known`."""
    device, place = site.devices[index], f"devices[{index}]"
    try:
        known[device.id] = device, device.abilities(find)
    except ProfileError as error:
        yield from _faults_in_file(f"{place}.profile", find(device.profile_name), error)
        return
    link = next((link for link in site.links if link.id == device.link), None)
    if link is not None:
        faults = device.profile_faults(site.named_line(link), find)
        yield from (SiteFault(f"{place}.{key}", why) for key, why in faults)


def _faults_in_file(place: str, file: Path | None, error: ProfileError) -> Iterator[SiteFault]:
    """Yield the faults in a profile's file, in the words of faults of the site file."""
    if not isinstance(error.__cause__, ValidationError):
        yield SiteFault(place, f"{error.faults[0]} (in the profile's file {file})")
        return
    for fault in faults_of(error.__cause__):
        if fault.place:
            yield SiteFault(place, f"{fault.message} (at {fault.place} in the profile's file {file})")
        else:
            yield SiteFault(place, f"{fault.message} (in the profile's file {file})")


def _fault_of_choice(device: ProfiledDevice, folders: Iterable[Path], found: Path | None) -> str:
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


def _lane_faults(place: str, lane: LaneSection, known: Mapping[int, tuple[Device, Abilities]]) -> Iterator[SiteFault]:
    with_points = {number: has for number, (device, has) in known.items() if device.has_points}
    for field, ref, role in _named_points(lane):
        has = with_points.get(ref.device)
        if has is None:
            continue
        if ref.point not in has.points:
            names = ", ".join(sorted(has.points)) or "none"
            yield SiteFault(
                f"{place}.{field}.point", f"device {ref.device} has no point {ref.point!r} (it has {names})"
            )
        elif ref.point in has.limits:
            limit = has.limits[ref.point]
            yield SiteFault(f"{place}.{field}.point", f"{ref.point!r} is the gate's {limit} in its profile, not {role}")
    yield from _inputs_named_twice(place, lane, with_points)
    gate, has = known.get(lane.gate, (None, Abilities()))
    if not isinstance(gate, GateDevice) or lane.closes != "gateway":
        return
    if not has.closes:
        yield SiteFault(f"{place}.closes", f"'gateway' needs a command to close, and {_source(gate)} has none")
    elif not has.has_position and lane.closed_limit is None:
        message = f"'gateway' needs to know where the gate is, and {_source(gate)} has no position"
        yield SiteFault(f"{place}.closes", message)


def _source(gate: GateDevice) -> str:
    """Return where a gate's abilities are described: in its profile, else in its driver."""
    return f"profile {gate.profile_name!r}" if gate.profile_name else f"its driver {gate.driver!r}"


def _inputs_named_twice(place: str, lane: LaneSection, known: Mapping[int, Abilities]) -> Iterator[SiteFault]:
    """Yield faults for points of a lane that are the same input of a device under two names."""
    seen: dict[tuple[int, Hashable], tuple[str, str]] = {}
    for field, ref, kind in _named_points(lane):
        device = known.get(ref.device)
        if device is None or ref.point not in device.points:
            continue
        other, name = seen.setdefault((ref.device, device.points[ref.point]), (kind, ref.point))
        if name != ref.point:
            message = (
                f"{ref.point!r} is the same input of device {ref.device} as {name!r} ({other});"
                " name the input that is meant"
            )
            yield SiteFault(f"{place}.{field}.point", message)


def _named_points(lane: LaneSection) -> Iterator[tuple[str, PointRef, str]]:
    yield from ((one.place, one.ref, one.spec.kind) for one in lane.ordered_inputs)
    yield from (
        (field, ref, "a limit switch")
        for field, ref in (("closed_limit", lane.closed_limit), ("open_limit", lane.open_limit))
        if ref is not None
    )
