"""Checks of a site file, which find all faults at once, each with its place."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, UnionType

from pydantic import ValidationError

from gateway.domain.errors import ConfigError
from gateway.domain.footage import CAMERAS_PER_WORKER
from gateway.domain.validation_messages import words_of
from gateway.site.addresses import Endpoint, LineKind, real_line
from gateway.site.fault import Fault, with_names
from gateway.site.http_devices import HikvisionBarrierDevice, PlateCamera
from gateway.site.models import (
    DRIVERS,
    ITSELF,
    Device,
    GateDevice,
    LaneSection,
    Link,
    ModbusDevice,
    OsdpReaderDevice,
    PointDevice,
    PointRef,
    ReaderDevice,
    SerialReaderDevice,
    Site,
)
from gateway.site.osdp_keys import osdp_line_faults
from gateway.site.serial_devices import SerialDevice

_NO_NAMES: Mapping[str, str] = MappingProxyType({})
_Kind = type[Device | ModbusDevice] | UnionType
"""One model of a device, or several."""

_KINDS_OF_LINES: Mapping[LineKind, str] = {
    "serial": "serial:/dev/…",
    "tcp": "tcp://host:port",
    "http": "http://host",
    "http-listen": "http-listen://host:port",
}


class SiteFaults(ConfigError):
    """Error for a site file that cannot be used. `faults` has all faults; `lines` formats them for people."""

    def __init__(self, path: Path, faults: tuple[Fault, ...], *, names: Mapping[str, str] = _NO_NAMES) -> None:
        """Keep the faults of a file. `names`: the names of records by their places ("device 101" for `devices[0]`)."""
        super().__init__(f"{path} has {len(faults)} fault{'s' if len(faults) != 1 else ''}")
        self.path = path
        self.faults = faults
        self._names = names

    def lines(self) -> Iterator[str]:
        """Yield a line for each fault, with the names of the records that it concerns."""
        for fault in self.faults:
            yield str(with_names(fault, self._names))


_LAST_UNIT = 247
_SELF = max(ITSELF)


def check(site: Site) -> tuple[Fault, ...]:
    """Return the faults between the parts of a valid site: duplicates, missing devices, addresses used twice."""
    return (
        *_duplicates(site),
        *_address_faults(site),
        *_device_faults(site),
        *osdp_line_faults(site),
        *_lane_faults(site),
        *access_faults(site),
    )


def faults_of(error: ValidationError) -> Iterator[Fault]:
    """Convert a validation error to faults with places such as `lanes[1].gate`, without any value of the file."""
    errors = error.errors(include_url=False, include_input=False)
    for item in errors:
        place, message = item["loc"], words_of(item)
        match item["type"]:
            case "extra_forbidden":
                message = "unknown key"
            case "missing":
                message = "is required"
            case "union_tag_not_found":
                place, message = (*place, "driver"), "is required"
            case "union_tag_invalid":
                place, message = (*place, "driver"), f"must be one of {', '.join(sorted(DRIVERS))}"
            case "model_type" | "model_attributes_type" | "dict_type":
                message = "must be a table"
            case "tuple_type" if len(place) == 1:
                message = f"must be tables, each beginning with [[{place[0]}]]"
            case "tuple_type":
                message = "must be a list in brackets, even of one: [ … ]"
            case "too_short" if any(other["loc"][: len(place)] == place for other in errors if other is not item):
                continue  # its items were refused, so the list only looks too short
        yield Fault(_shown(place), message)


def _shown(place: tuple[int | str, ...]) -> str:
    """Format a place for people: `devices[2].unit`, without the driver that pydantic inserts after a device's index."""
    if len(place) > 2 and place[0] == "devices" and place[2] in DRIVERS:
        place = (*place[:2], *place[3:])
    text = ""
    for part in place:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def _duplicates(site: Site) -> Iterator[Fault]:
    groups: tuple[tuple[str, str, Sequence[Hashable]], ...] = (
        ("links", "id", [link.id for link in site.links]),
        ("devices", "id", [device.id for device in site.devices]),
        ("areas", "id", [area.id for area in site.areas]),
        ("schedules", "id", [schedule.id for schedule in site.schedules]),
        ("holidays", "date", [str(day.date) for day in site.holidays]),
        ("lanes", "id", [lane.id for lane in site.lanes]),
        ("lanes", "gate", [lane.gate for lane in site.lanes]),
        ("cameras", "id", [camera.id for camera in site.cameras]),
        ("api.accounts", "username", [account.username for account in site.api.accounts]),
    )
    for group, field, values in groups:
        seen: dict[Hashable, int] = {}
        for index, value in enumerate(values):
            first = seen.setdefault(value, index)
            if first != index:
                yield Fault(f"{group}[{index}].{field}", f"{value!r} is already used by {group}[{first}]")


def _address_faults(site: Site) -> Iterator[Fault]:
    """Yield faults for ports used twice: a line by two links, or the gateway's own port by a device."""
    lines: dict[Endpoint | str, int] = {}
    for index, link in enumerate(site.links):
        line = real_line(link.line())
        first = lines.setdefault(line, index)
        if first != index:
            yield Fault(f"links[{index}].url", f"{line} is already used by links[{first}]")
        if isinstance(line, Endpoint) and _is_own(line, site):
            yield Fault(f"links[{index}].url", f"{line} is where this gateway itself listens ([api] port)")
    if site.rtsp and site.api.port:
        last = site.rtsp.port + max(0, (len(site.cameras) - 1) // CAMERAS_PER_WORKER)
        if site.rtsp.port <= site.api.port <= last:
            ports = f"cameras are served on ports {site.rtsp.port} to {last}, and {site.api.port} is the [api] port"
            yield Fault("rtsp.port", ports)
    for place, endpoint in _connected_to(site):
        if _is_own(endpoint, site):
            yield Fault(place, f"{endpoint} is where this gateway itself listens ([api] port)")


def _connected_to(site: Site) -> Iterator[tuple[str, Endpoint]]:
    for index, camera in enumerate(site.cameras):
        yield f"cameras[{index}].url", camera.endpoint()
        if camera.live_url is not None:
            yield f"cameras[{index}].live_url", camera.live_endpoint()
    if site.central:
        yield "central.url", site.central.endpoint()
    if site.fleet:
        for index, endpoint in enumerate(site.fleet.endpoints()):
            yield f"fleet.urls[{index}]", endpoint
    if site.mqtt:
        yield "mqtt.url", site.mqtt.endpoint()


def _is_own(endpoint: Endpoint, site: Site) -> bool:
    is_here = endpoint.is_this_machine() or endpoint.host == site.api.host.lower()
    return is_here and endpoint.port == site.api.port


def _device_faults(site: Site) -> Iterator[Fault]:
    links = {link.id: link for link in site.links}
    users: dict[str, tuple[int, Device]] = {}
    numbers: dict[tuple[str, str, int], int] = {}
    for index, device in enumerate(site.devices):
        place, link = f"devices[{index}]", links.get(device.link)
        if link is None:
            yield Fault(f"{place}.link", f"no link {device.link!r}")
            continue
        fits = _fitting_lines(device)
        if link.kind not in fits:
            wanted = " or ".join(_KINDS_OF_LINES[kind] for kind in fits)
            yield Fault(f"{place}.link", f"{device.link!r} must be {wanted} for this device")
            continue
        first_index, first = users.setdefault(device.link, (index, device))
        if first_index != index and not _may_share(first, device):
            yield Fault(f"{place}.link", f"{device.link!r} is already used by devices[{first_index}]")
            continue
        if isinstance(device, ModbusDevice):
            yield from _framing_faults(place, device, link)
            if isinstance(first, ModbusDevice) and first.framing != device.framing:
                message = f"differs from devices[{first_index}] on the same link {device.link!r}"
                yield Fault(f"{place}.framing", message)
        for field, shown, number in _number_on_line(device):
            other = numbers.setdefault((device.link, field, number), index)
            if other != index:
                yield Fault(f"{place}.{field}", f"{shown} on {device.link!r} is already used by devices[{other}]")


def _number_on_line(device: Device) -> Iterator[tuple[str, int, int]]:
    """Yield the setting that tells a device from others on its line: its key, its value, and the value to compare."""
    if isinstance(device, HikvisionBarrierDevice):
        yield "channel", device.channel, device.channel
    elif isinstance(device, ModbusDevice):
        yield "unit", device.unit, _SELF if device.framing == "tcp" and device.unit in ITSELF else device.unit


def _fitting_lines(device: Device) -> tuple[LineKind, ...]:
    """Return the kinds of lines to which a device can be connected."""
    if isinstance(device, ModbusDevice | SerialDevice | SerialReaderDevice | OsdpReaderDevice):
        return ("tcp", "serial")
    return ("http-listen",) if not isinstance(device, HikvisionBarrierDevice) and device.is_pushing else ("http",)


def _may_share(one: Device, other: Device) -> bool:
    """Return whether two devices may share a line: units of the same kind of bus, or HTTP devices."""
    shared_by = (ModbusDevice, SerialDevice, OsdpReaderDevice, HikvisionBarrierDevice | PlateCamera)
    return any(isinstance(one, kind) and isinstance(other, kind) for kind in shared_by)


def _framing_faults(place: str, device: ModbusDevice, link: Link) -> Iterator[Fault]:
    if device.framing == "tcp" and not isinstance(link.line(), Endpoint):
        yield Fault(f"{place}.framing", f"'tcp' cannot go over the serial port of {link.id!r}; write 'rtu'")
    if link.data_bits != 8 and link.kind == "serial":
        yield Fault(f"{place}.link", f"Modbus has 8 data bits; change that of {link.id!r}")
    if device.framing == "rtu" and device.unit == 0:
        yield Fault(f"{place}.unit", "0 addresses all devices of the line, and none answers")
    if device.unit > _LAST_UNIT and (device.framing == "rtu" or device.unit != _SELF):
        units = f"is {device.unit}; units are 1 to {_LAST_UNIT}"
        yield Fault(f"{place}.unit", units if device.framing == "rtu" else f"{units}, or {_SELF} for the device itself")


def _lane_faults(site: Site) -> Iterator[Fault]:
    reader_lane: dict[int, int] = {}
    closing_lane: dict[PointRef, int] = {}
    for index, lane in enumerate(site.lanes):
        place = f"lanes[{index}]"
        for field, device_id, kind, noun in _named_devices(lane):
            yield from _device_fault(site, f"{place}.{field}", device_id, kind, noun)
        for position, reader in enumerate(lane.readers):
            if reader in lane.readers[:position]:
                yield Fault(f"{place}.readers[{position}]", f"{reader} is named twice")
            elif reader_lane.setdefault(reader, index) != index:
                yield Fault(f"{place}.readers[{position}]", f"{reader} already serves lanes[{reader_lane[reader]}]")
        first = closing_lane.setdefault(lane.closing, index)
        if first != index:
            message = f"is the closing loop of lanes[{first}] too: every vehicle on it would pass in both"
            yield Fault(f"{place}.closing", message)
        for position, ref in enumerate(lane.safety):
            if ref in lane.safety[:position]:
                message = (
                    f"{ref.point!r} of device {ref.device} is listed twice; remove it, or name the point that is meant"
                )
                yield Fault(f"{place}.safety[{position}]", message)
        yield from _lane_camera_faults(site, place, lane)
        if lane.arming == lane.closing:
            yield Fault(f"{place}.closing", "is the same point as arming; a passage needs both loops")
        yield from _lane_way_faults(place, lane)


def _lane_way_faults(place: str, lane: LaneSection) -> Iterator[Fault]:
    if lane.direction == "two-way" and lane.far is None:
        yield Fault(f"{place}.far", "a two-way lane needs an arming loop on each side")
    if lane.direction != "two-way" and lane.far is not None:
        yield Fault(f"{place}.far", "only a two-way lane has a second arming loop")
    if lane.direction != "two-way" and lane.far_readers:
        yield Fault(f"{place}.far_readers", "only a two-way lane has readers on two sides")
    if lane.far is not None and lane.far in (lane.arming, lane.closing):
        yield Fault(f"{place}.far", "is the same point as another loop of the lane")
    for position, reader in enumerate(lane.far_readers):
        if reader not in lane.readers:
            yield Fault(f"{place}.far_readers[{position}]", f"{reader} is not one of this lane's readers")
    yield from _switch_faults(place, lane)
    yield from _limit_faults(place, lane)
    if lane.vend != "momentary" and lane.closes == "device":
        yield Fault(
            f"{place}.vend", f'{lane.vend!r} needs closes = "gateway": a device that closes by itself ends it early'
        )


def _switch_faults(place: str, lane: LaneSection) -> Iterator[Fault]:
    loops = (lane.arming, lane.far, lane.closing, *lane.safety)
    for field, ref in (("fire", lane.fire), ("key_switch", lane.key_switch)):
        if ref is not None and ref in loops:
            yield Fault(f"{place}.{field}", "is the same point as a loop or safety point of the lane")
    if lane.fire is not None and lane.fire == lane.key_switch:
        yield Fault(f"{place}.key_switch", "is the same point as the fire input")


def _limit_faults(place: str, lane: LaneSection) -> Iterator[Fault]:
    if (lane.closed_limit is None) != (lane.open_limit is None):
        missing = "open_limit" if lane.open_limit is None else "closed_limit"
        yield Fault(f"{place}.{missing}", "is missing: the gate's position needs both of its limit switches")
    if lane.closed_limit is not None and lane.closed_limit == lane.open_limit:
        yield Fault(f"{place}.open_limit", "is the same point as closed_limit")
    others = (lane.arming, lane.far, lane.closing, *lane.safety, lane.fire, lane.key_switch)
    for field, ref in (("closed_limit", lane.closed_limit), ("open_limit", lane.open_limit)):
        if ref is not None and ref in others:
            yield Fault(f"{place}.{field}", "is the same point as another input of the lane")


def _lane_camera_faults(site: Site, place: str, lane: LaneSection) -> Iterator[Fault]:
    cameras = {camera.id for camera in site.cameras}
    for position, camera in enumerate(lane.cameras):
        if camera in lane.cameras[:position]:
            yield Fault(f"{place}.cameras[{position}]", f"{camera} is named twice")
        elif camera not in cameras:
            yield Fault(f"{place}.cameras[{position}]", f"no camera {camera}")


def _named_devices(lane: LaneSection) -> Iterator[tuple[str, int, _Kind, str]]:
    yield "gate", lane.gate, GateDevice, "a gate"
    for position, reader in enumerate(lane.readers):
        yield f"readers[{position}]", reader, ReaderDevice, "a reader"
    yield "arming.device", lane.arming.device, PointDevice, "a device with points"
    yield "closing.device", lane.closing.device, PointDevice, "a device with points"
    for position, ref in enumerate(lane.safety):
        yield f"safety[{position}].device", ref.device, PointDevice, "a device with points"
    limits = (("closed_limit", lane.closed_limit), ("open_limit", lane.open_limit))
    for field, extra in (("far", lane.far), ("fire", lane.fire), ("key_switch", lane.key_switch), *limits):
        if extra is not None:
            yield f"{field}.device", extra.device, PointDevice, "a device with points"


def _device_fault(site: Site, place: str, device_id: int, kind: _Kind, noun: str) -> Iterator[Fault]:
    device = next((device for device in site.devices if device.id == device_id), None)
    if device is None:
        yield Fault(place, f"no device {device_id}")
    elif not isinstance(device, kind):
        yield Fault(place, f"device {device_id} is not {noun}")


def access_faults(site: Site) -> Iterator[Fault]:
    """Yield faults for missing areas and schedules, and for settings of a lane that contradict each other."""
    areas = {area.id for area in site.areas}
    with_keys = {device.id for device in site.devices if isinstance(device, OsdpReaderDevice)}
    for index, section in enumerate(site.areas):
        if section.shared and site.fleet is None:
            yield Fault(f"areas[{index}].shared", "needs [fleet]: the gateways share it over the fleet's server")
    for index, lane in enumerate(site.lanes):
        place = f"lanes[{index}]"
        for field, area in (("inside", lane.inside), ("outside", lane.outside)):
            if area is not None and area not in areas:
                yield Fault(f"{place}.{field}", f"no area {area!r}")
        if lane.pin and not with_keys & set(lane.readers):
            yield Fault(f"{place}.pin", "none of its readers can have keys; an osdp-reader can")
        if lane.inside is not None and lane.inside == lane.outside:
            yield Fault(
                f"{place}.outside",
                f"is {lane.outside!r}, the same area as inside; a passage leads from one to the other",
            )
        yield from _schedule_faults(site, place, lane)


def _schedule_faults(site: Site, place: str, lane: LaneSection) -> Iterator[Fault]:
    locked = lane.lock_down_schedule
    if locked is not None and locked == lane.hold_open_schedule:
        message = f"is {locked!r}, as hold_open_schedule is: the gate cannot be held open and locked"
        yield Fault(f"{place}.lock_down_schedule", message)
    if locked is not None and locked == lane.schedule:
        message = f"is {locked!r}, as schedule is: the lane would let nobody in while it is open"
        yield Fault(f"{place}.lock_down_schedule", message)
    schedules = {schedule.id for schedule in site.schedules}
    for field in ("schedule", "hold_open_schedule", "lock_down_schedule"):
        name = getattr(lane, field)
        if name is not None and name not in schedules:
            yield Fault(f"{place}.{field}", f"no schedule {name!r}")
