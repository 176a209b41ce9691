"""The site's lines as scans need them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from drivers.bus.bus import Bus
from drivers.contract import GatePosition
from gateway.lanes.snapshots import DeviceSnapshot
from gateway.lines.scans import ScannableLine
from gateway.site import ModbusDevice, Site

_MOVING = frozenset({GatePosition.OPENING, GatePosition.CLOSING})


def scannable_lines(
    site: Site, buses: Mapping[str, Bus], *, devices: Callable[[], Iterable[DeviceSnapshot]]
) -> dict[str, ScannableLine]:
    """Return the lines that units share, by name; `devices` tells which gates move."""
    return {name: _scannable(site, name, bus, devices) for name, bus in buses.items()}


def _scannable(site: Site, name: str, bus: Bus, devices: Callable[[], Iterable[DeviceSnapshot]]) -> ScannableLine:
    own = [device for device in site.devices if isinstance(device, ModbusDevice) and device.link == name]
    ids = frozenset(device.id for device in own)
    names = {unit: tuple(device.name for device in own if device.unit == unit) for unit in {one.unit for one in own}}
    return ScannableLine(
        bus=bus,
        framing=own[0].framing if own else None,
        names=names,
        is_moving=partial(_is_moving, ids, devices),
    )


def _is_moving(ids: frozenset[int], devices: Callable[[], Iterable[DeviceSnapshot]]) -> bool:
    return any(device.device_id in ids and device.position in _MOVING for device in devices())
