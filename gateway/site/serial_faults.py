"""Checks of devices on serial lines against their profiles."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from drivers.profile_file import ProfileError
from drivers.serial_line.profile import (
    DeviceProfile,
    GateProfile,
    TagReaderProfile,
    load_gate_profile,
    load_tag_reader_profile,
)
from gateway.site.addresses import Endpoint
from gateway.site.draft import Draft
from gateway.site.fault import Fault
from gateway.site.models import Link
from gateway.site.serial_devices import SerialDevice, SerialTagReaderDevice


def serial_faults(
    draft: Draft, find: Callable[[str], Path | None], gates: dict[int, GateProfile], unfit: Collection[int] = ()
) -> Iterator[Fault]:
    """Yield the faults of serial gates and tag readers and of their profiles.

    The profile of each gate is added to `gates` by the device's id. Devices whose index is in `unfit` are left out,
    because it is reported already that their profile does not fit.
    """
    links = {link.id: link for link in draft.links.sound.values()}
    users: dict[str, list[tuple[int, SerialDevice, DeviceProfile]]] = {}
    for index, device in draft.devices.sound.items():
        if not isinstance(device, SerialDevice):
            continue
        found = find(device.profile) if index not in unfit else None
        if found is None:
            continue
        try:
            profile = _profile_of(device, found, gates)
        except ProfileError as error:
            yield from (Fault(f"devices[{index}].profile", line) for line in str(error).splitlines())
            continue
        if device.link in links:
            yield from _line_faults(index, profile, links[device.link])
        users.setdefault(device.link, []).append((index, device, profile))
    for sharing in users.values():
        yield from _sharing_faults(sharing)


def _profile_of(device: SerialDevice, found: Path, gates: dict[int, GateProfile]) -> DeviceProfile:
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
