"""The site's polled lines in the form that the tools for technicians need (`gateway.lines`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from drivers.bus.bus import Bus
from drivers.contract import GatePosition
from drivers.modbus.profile import load_unit_profile
from gateway.lanes.snapshots import DeviceSnapshot
from gateway.lines.line import ModbusUnit, PolledLine
from gateway.site import (
    ModbusDevice,
    SerialGateDevice,
    SerialTagReaderDevice,
    Site,
    find_profile,
    profile_folders,
)

_MOVING = frozenset({GatePosition.OPENING, GatePosition.CLOSING})


def polled_lines(
    site: Site, buses: Mapping[str, Bus], *, site_path: Path, devices: Callable[[], Iterable[DeviceSnapshot]]
) -> dict[str, PolledLine]:
    """Return the polled lines by the id of their link; `devices` returns snapshots, which show the gates that move."""
    folders = profile_folders(site, site_path)
    return {name: _polled(site, name, bus, folders, devices) for name, bus in buses.items()}


def _polled(
    site: Site,
    name: str,
    bus: Bus,
    folders: tuple[Path, ...],
    devices: Callable[[], Iterable[DeviceSnapshot]],
) -> PolledLine:
    kinds = ModbusDevice | SerialGateDevice | SerialTagReaderDevice
    own = [device for device in site.devices if isinstance(device, kinds) and device.link == name]
    ids = frozenset(device.id for device in own)
    return PolledLine(
        bus=bus,
        framing=next((device.framing for device in own if isinstance(device, ModbusDevice)), None),
        names={unit: tuple(one.name for one in own if one.unit == unit) for unit in {one.unit for one in own}},
        card_units=frozenset(one.unit for one in own if isinstance(one, SerialTagReaderDevice)),
        devices={
            one.id: ModbusUnit(one.unit, one.framing, load_unit_profile(path))
            for one in own
            if isinstance(one, ModbusDevice) and (path := find_profile(one.profile, folders)) is not None
        },
        is_moving=partial(_is_moving, ids, devices),
    )


def _is_moving(ids: frozenset[int], devices: Callable[[], Iterable[DeviceSnapshot]]) -> bool:
    return any(device.device_id in ids and device.position in _MOVING for device in devices())
