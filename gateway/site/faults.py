"""Checks of a site file, which find all faults at once, each with its place."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from drivers.device import Device, GateDevice, LineKind, ReaderDevice
from drivers.kinds import BUILT_IN, why_unsound
from gateway.domain.errors import ConfigError
from gateway.domain.footage import CAMERAS_PER_WORKER
from gateway.domain.validation_messages import words_of
from gateway.site.addresses import Endpoint, real_line
from gateway.site.fault import SiteFault, with_names
from gateway.site.models import LaneSection, Link, PointRef, Site
from gateway.site.roles import Role

_NO_NAMES: Mapping[str, str] = MappingProxyType({})
_KINDS_OF_LINES: Mapping[LineKind, str] = {
    "serial": "serial:/dev/…",
    "tcp": "tcp://host:port",
    "http": "http://host",
    "http-listen": "http-listen://host:port",
}
_WITH_POINTS = "a device with points"
_FITS: Mapping[str, Callable[[Device], bool]] = {
    "a gate": lambda device: isinstance(device, GateDevice),
    "a reader": lambda device: isinstance(device, ReaderDevice),
    _WITH_POINTS: lambda device: device.has_points,
}


class SiteFaults(ConfigError):
    """Error for a site file that cannot be used. `faults` has all faults; `lines` formats them for people."""

    def __init__(self, path: Path, faults: tuple[SiteFault, ...], *, names: Mapping[str, str] = _NO_NAMES) -> None:
        """Keep the faults of a file. `names`: the names of records by their places ("device 101" for `devices[0]`)."""
        super().__init__(f"{path} has {len(faults)} fault{'s' if len(faults) != 1 else ''}")
        self.path = path
        self.faults = faults
        self._names = names

    def lines(self) -> Iterator[str]:
        """Yield a line for each fault, with the names of the records that it concerns."""
        for fault in self.faults:
            yield str(with_names(fault, self._names))


def check(site: Site) -> tuple[SiteFault, ...]:
    """Return the faults between the parts of a valid site: duplicates, missing devices, addresses used twice."""
    return (
        *_duplicates(site),
        *_address_faults(site),
        *_device_faults(site),
        *_lane_faults(site),
        *access_faults(site),
    )


def faults_of(error: ValidationError) -> Iterator[SiteFault]:
    """Convert a validation error to faults with places such as `lanes[1].gate`, without any value of the file."""
    errors = error.errors(include_url=False, include_input=False)
    for item in errors:
        place, message = item["loc"], str(words_of(item))
        match item["type"]:
            case "extra_forbidden":
                message = "unknown key"
            case "missing":
                message = "is required"
            case "model_type" | "model_attributes_type" | "dict_type":
                message = "must be a table"
            case "tuple_type" if len(place) == 1:
                message = f"must be tables, each beginning with [[{place[0]}]]"
            case "tuple_type":
                message = "must be a list in brackets, even of one: [ … ]"
            case "too_short" if any(other["loc"][: len(place)] == place for other in errors if other is not item):
                continue  # its items were refused, so the list only looks too short
        yield SiteFault(_shown(place), message)


def _shown(place: tuple[int | str, ...]) -> str:
    """Format a place for people: `devices[2].unit`."""
    text = ""
    for part in place:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def _duplicates(site: Site) -> Iterator[SiteFault]:
    groups: tuple[tuple[str, str, Sequence[Hashable]], ...] = (
        ("links", "id", [link.id for link in site.links]),
        ("devices", "id", [device.id for device in site.devices]),
        ("areas", "id", [area.id for area in site.areas]),
        ("schedules", "id", [schedule.id for schedule in site.schedules]),
        ("holidays", "date", [str(day.date) for day in site.holidays]),
        ("lanes", "id", [lane.id for lane in site.lanes]),
        ("lanes", "gate", [lane.gate for lane in site.lanes]),
        ("cameras", "id", [camera.id for camera in site.cameras]),
    )
    for group, field, values in groups:
        seen: dict[Hashable, int] = {}
        for index, value in enumerate(values):
            first = seen.setdefault(value, index)
            if first != index:
                yield SiteFault(f"{group}[{index}].{field}", f"{value!r} is already used by {group}[{first}]")


def _address_faults(site: Site) -> Iterator[SiteFault]:
    """Yield faults for ports used twice: a line by two links, or the gateway's own port by a device."""
    lines: dict[Endpoint | str, int] = {}
    for index, link in enumerate(site.links):
        line = real_line(link.line())
        first = lines.setdefault(line, index)
        if first != index:
            yield SiteFault(f"links[{index}].url", f"{line} is already used by links[{first}]")
        if isinstance(line, Endpoint) and _is_own(line, site):
            yield SiteFault(f"links[{index}].url", f"{line} is where this gateway itself listens ([api] port)")
    if site.rtsp and site.api.port:
        last = site.rtsp.port + max(0, (len(site.cameras) - 1) // CAMERAS_PER_WORKER)
        if site.rtsp.port <= site.api.port <= last:
            ports = f"cameras are served on ports {site.rtsp.port} to {last}, and {site.api.port} is the [api] port"
            yield SiteFault("rtsp.port", ports)
    for place, endpoint in _connected_to(site):
        if _is_own(endpoint, site):
            yield SiteFault(place, f"{endpoint} is where this gateway itself listens ([api] port)")


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


class _UsedLink:
    """A link with the devices on it so far, and the numbers that they have there, by key and value."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.users: list[tuple[int, Device]] = []
        self.numbers: dict[tuple[str, int], int] = {}


def _device_faults(site: Site) -> Iterator[SiteFault]:
    links = {link.id: _UsedLink(link) for link in site.links}
    for index, device in enumerate(site.devices):
        place = f"devices[{index}]"
        if (used := links.get(device.link)) is None:
            yield SiteFault(f"{place}.link", f"no link {device.link!r}")
        else:
            yield from of_section(place, device, _faults_on_line(site, index, used))


def of_section(place: str, device: Device, faults: Iterator[SiteFault]) -> Iterator[SiteFault]:
    """Yield faults that a device's section tells. That of another distribution may raise anything, which is a fault."""
    try:
        yield from faults
    except Exception as error:
        if type(device) in BUILT_IN:
            raise
        yield SiteFault(f"{place}.driver", why_unsound(device.driver, error))


def _faults_on_line(site: Site, index: int, used: _UsedLink) -> Iterator[SiteFault]:
    """Yield the faults of a device on its link, and add it to those that use the link."""
    device, place = site.devices[index], f"devices[{index}]"
    fits = device.line_kinds()
    if used.link.kind not in fits:
        wanted = " or ".join(_KINDS_OF_LINES[kind] for kind in fits)
        yield SiteFault(f"{place}.link", f"{device.link!r} must be {wanted} for this device")
        return
    first_index, first = used.users[0] if used.users else (index, device)
    if used.users and not (device.shares_as and device.shares_as == first.shares_as):
        yield SiteFault(f"{place}.link", f"{device.link!r} is already used by devices[{first_index}]")
        return
    used.users.append((index, device))
    if device.most_on_line is not None and len(used.users) == device.most_on_line + 1:
        yield SiteFault(f"{place}.link", f"{device.link!r} has more than {device.most_on_line} devices")
    yield from (SiteFault(f"{place}.{key}", why) for key, why in device.line_faults(site.named_line(used.link)))
    beside = device.faults_beside(first, first_index)
    yield from (SiteFault(f"{place}.{key}", why) for key, why in beside)
    if (number := device.number()) is not None:
        other = used.numbers.setdefault((number.key, number.compared), index)
        if other != index:
            message = f"{number.value} on {device.link!r} is already used by devices[{other}]"
            yield SiteFault(f"{place}.{number.key}", message)


def _lane_faults(site: Site) -> Iterator[SiteFault]:
    reader_lane: dict[int, int] = {}
    closing_lane: dict[PointRef, int] = {}
    for index, lane in enumerate(site.lanes):
        place = f"lanes[{index}]"
        for field, device_id, noun in _named_devices(lane):
            yield from _device_fault(site, f"{place}.{field}", device_id, noun)
        for position, reader in enumerate(lane.readers):
            if reader in lane.readers[:position]:
                yield SiteFault(f"{place}.readers[{position}]", f"{reader} is named twice")
            elif reader_lane.setdefault(reader, index) != index:
                yield SiteFault(f"{place}.readers[{position}]", f"{reader} already serves lanes[{reader_lane[reader]}]")
        yield from _loop_faults(place, index, lane, closing_lane)
        yield from _lane_camera_faults(site, place, lane)
        yield from _lane_way_faults(place, lane)


def _loop_faults(place: str, index: int, lane: LaneSection, closing_lane: dict[PointRef, int]) -> Iterator[SiteFault]:
    """Yield faults of loops and safety points that are named twice. `closing_lane`: the lane of each closing loop."""
    seen: dict[Role, set[PointRef]] = {}
    for one in lane.ordered_inputs:
        if one.role is Role.CLOSING and closing_lane.setdefault(one.ref, index) != index:
            message = (
                f"is the closing loop of lanes[{closing_lane[one.ref]}] too: every vehicle on it would pass in both"
            )
            yield SiteFault(f"{place}.{one.place}", message)
        if one.role is Role.CLOSING and one.ref in seen.get(Role.ARMING, ()):
            yield SiteFault(f"{place}.{one.place}", "is the same point as arming; a passage needs both loops")
        if one.ref in seen.setdefault(one.role, set()):
            message = (
                f"{one.ref.point!r} of device {one.ref.device} is listed twice; remove it,"
                " or name the point that is meant"
            )
            yield SiteFault(f"{place}.{one.place}", message)
        seen[one.role].add(one.ref)


def _lane_way_faults(place: str, lane: LaneSection) -> Iterator[SiteFault]:
    far = next((one for one in lane.ordered_inputs if one.role is Role.FAR), None)
    if lane.direction == "two-way" and far is None:
        yield SiteFault(f"{place}.inputs", "a two-way lane needs an arming loop on each side")
    if lane.direction != "two-way" and far is not None:
        yield SiteFault(f"{place}.{far.place}", "only a two-way lane has a second arming loop")
    if lane.direction != "two-way" and lane.far_readers:
        yield SiteFault(f"{place}.far_readers", "only a two-way lane has readers on two sides")
    if far is not None and far.ref in (*lane.points(Role.ARMING), *lane.points(Role.CLOSING)):
        yield SiteFault(f"{place}.{far.place}", "is the same point as another loop of the lane")
    for position, reader in enumerate(lane.far_readers):
        if reader not in lane.readers:
            yield SiteFault(f"{place}.far_readers[{position}]", f"{reader} is not one of this lane's readers")
    yield from _switch_faults(place, lane)
    yield from _limit_faults(place, lane)
    if lane.vend != "momentary" and lane.closes == "device":
        yield SiteFault(
            f"{place}.vend", f'{lane.vend!r} needs closes = "gateway": a device that closes by itself ends it early'
        )


def _switch_faults(place: str, lane: LaneSection) -> Iterator[SiteFault]:
    loops = {one.ref for one in lane.ordered_inputs if one.spec.held_by_vehicles}
    switches = set[PointRef]()
    for one in lane.ordered_inputs:
        if one.spec.held_by_vehicles:
            continue
        if one.ref in loops:
            yield SiteFault(f"{place}.{one.place}", "is the same point as a loop or safety point of the lane")
        elif one.ref in switches:
            yield SiteFault(f"{place}.{one.place}", "is the same point as another input of the lane")
        switches.add(one.ref)


def _limit_faults(place: str, lane: LaneSection) -> Iterator[SiteFault]:
    if (lane.closed_limit is None) != (lane.open_limit is None):
        missing = "open_limit" if lane.open_limit is None else "closed_limit"
        yield SiteFault(f"{place}.{missing}", "is missing: the gate's position needs both of its limit switches")
    if lane.closed_limit is not None and lane.closed_limit == lane.open_limit:
        yield SiteFault(f"{place}.open_limit", "is the same point as closed_limit")
    others = {one.ref for one in lane.ordered_inputs}
    for field, ref in (("closed_limit", lane.closed_limit), ("open_limit", lane.open_limit)):
        if ref is not None and ref in others:
            yield SiteFault(f"{place}.{field}", "is the same point as another input of the lane")


def _lane_camera_faults(site: Site, place: str, lane: LaneSection) -> Iterator[SiteFault]:
    cameras = {camera.id for camera in site.cameras}
    for position, camera in enumerate(lane.cameras):
        if camera in lane.cameras[:position]:
            yield SiteFault(f"{place}.cameras[{position}]", f"{camera} is named twice")
        elif camera not in cameras:
            yield SiteFault(f"{place}.cameras[{position}]", f"no camera {camera}")


def _named_devices(lane: LaneSection) -> Iterator[tuple[str, int, str]]:
    yield "gate", lane.gate, "a gate"
    for position, reader in enumerate(lane.readers):
        yield f"readers[{position}]", reader, "a reader"
    for one in lane.ordered_inputs:
        yield f"{one.place}.device", one.ref.device, _WITH_POINTS
    for field, extra in (("closed_limit", lane.closed_limit), ("open_limit", lane.open_limit)):
        if extra is not None:
            yield f"{field}.device", extra.device, _WITH_POINTS


def _device_fault(site: Site, place: str, device_id: int, noun: str) -> Iterator[SiteFault]:
    device = next((device for device in site.devices if device.id == device_id), None)
    if device is None:
        yield SiteFault(place, f"no device {device_id}")
    elif not _FITS[noun](device):
        yield SiteFault(place, f"device {device_id} is not {noun}")


def access_faults(site: Site) -> Iterator[SiteFault]:
    """Yield faults for missing areas and schedules, and for settings of a lane that contradict each other."""
    areas = {area.id for area in site.areas}
    with_keys = {device.id for device in site.devices if isinstance(device, ReaderDevice) and device.has_keys}
    for index, section in enumerate(site.areas):
        if section.shared and site.fleet is None:
            yield SiteFault(f"areas[{index}].shared", "needs [fleet]: the gateways share it over the fleet's server")
    for index, lane in enumerate(site.lanes):
        place = f"lanes[{index}]"
        for field, area in (("inside", lane.inside), ("outside", lane.outside)):
            if area is not None and area not in areas:
                yield SiteFault(f"{place}.{field}", f"no area {area!r}")
        if lane.pin and not with_keys & set(lane.readers):
            yield SiteFault(f"{place}.pin", "none of its readers can have keys; an osdp-reader can")
        if lane.inside is not None and lane.inside == lane.outside:
            yield SiteFault(
                f"{place}.outside",
                f"is {lane.outside!r}, the same area as inside; a passage leads from one to the other",
            )
        yield from _schedule_faults(site, place, lane)


def _schedule_faults(site: Site, place: str, lane: LaneSection) -> Iterator[SiteFault]:
    locked = lane.lock_down_schedule
    if locked is not None and locked == lane.hold_open_schedule:
        message = f"is {locked!r}, as hold_open_schedule is: the gate cannot be held open and locked"
        yield SiteFault(f"{place}.lock_down_schedule", message)
    if locked is not None and locked == lane.schedule:
        message = f"is {locked!r}, as schedule is: the lane would let nobody in while it is open"
        yield SiteFault(f"{place}.lock_down_schedule", message)
    schedules = {schedule.id for schedule in site.schedules}
    for field in ("schedule", "hold_open_schedule", "lock_down_schedule"):
        name = getattr(lane, field)
        if name is not None and name not in schedules:
            yield SiteFault(f"{place}.{field}", f"no schedule {name!r}")
