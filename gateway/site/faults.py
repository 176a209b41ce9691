"""What is wrong with a site file: each fault with its place, all of them at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from gateway.domain.errors import ConfigError
from gateway.site.models import Device, ModbusGateDevice, SerialReaderDevice, Site


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with a site file: where, and one sentence about what."""

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


class SiteFaults(ConfigError):
    """The site file cannot be used; `faults` holds every reason."""

    def __init__(self, path: Path, faults: tuple[Fault, ...]) -> None:
        super().__init__(f"{path} has {len(faults)} fault{'s' if len(faults) != 1 else ''}")
        self.path = path
        self.faults = faults


def check(site: Site) -> tuple[Fault, ...]:
    """What is wrong between the parts of a well-formed site: duplicates, missing devices, lines used twice."""
    return (*_duplicates(site), *_device_faults(site), *_lane_faults(site))


def faults_of(error: ValidationError) -> Iterator[Fault]:
    """What a model's validation found, with places as `lanes[1].gate`."""
    known = {"extra_forbidden": "unknown key", "missing": "is required"}
    for item in error.errors(include_url=False, include_input=False):
        place = ""
        for part in item["loc"]:
            if isinstance(part, int):
                place += f"[{part}]"
            elif part not in {"modbus-gate", "serial-reader"}:
                place += f".{part}" if place else part
        yield Fault(place, known.get(item["type"], item["msg"].removeprefix("Value error, ")))


def _duplicates(site: Site) -> Iterator[Fault]:
    groups: tuple[tuple[str, str, list[object]], ...] = (
        ("links", "id", [link.id for link in site.links]),
        ("links", "url", [link.url for link in site.links]),
        ("devices", "id", [device.id for device in site.devices]),
        ("lanes", "id", [lane.id for lane in site.lanes]),
        ("lanes", "gate", [lane.gate for lane in site.lanes]),
        ("cameras", "id", [camera.id for camera in site.cameras]),
        ("api.accounts", "username", [account.username for account in site.api.accounts]),
    )
    for group, field, values in groups:
        seen: dict[object, int] = {}
        for index, value in enumerate(values):
            if value in seen:
                yield Fault(f"{group}[{index}].{field}", f"{value!r} is already used by {group}[{seen[value]}]")
            seen.setdefault(value, index)


def _device_faults(site: Site) -> Iterator[Fault]:
    links = {link.id for link in site.links}
    users: dict[str, tuple[int, Device]] = {}
    units: dict[tuple[str, int], int] = {}
    for index, device in enumerate(site.devices):
        if device.link not in links:
            yield Fault(f"devices[{index}].link", f"no link {device.link!r}")
            continue
        first_index, first = users.setdefault(device.link, (index, device))
        if first_index != index and not (isinstance(first, ModbusGateDevice) and isinstance(device, ModbusGateDevice)):
            yield Fault(f"devices[{index}].link", f"{device.link!r} is already used by devices[{first_index}]")
        elif isinstance(device, ModbusGateDevice):
            if isinstance(first, ModbusGateDevice) and first.framing != device.framing:
                yield Fault(
                    f"devices[{index}].framing", f"differs from devices[{first_index}] on the same link {device.link!r}"
                )
            taken = units.setdefault((device.link, device.unit), index)
            if taken != index:
                yield Fault(
                    f"devices[{index}].unit", f"{device.unit} on {device.link!r} is already used by devices[{taken}]"
                )


def _lane_faults(site: Site) -> Iterator[Fault]:
    gates = {device.id for device in site.devices if isinstance(device, ModbusGateDevice)}
    readers = {device.id for device in site.devices if isinstance(device, SerialReaderDevice)}
    devices = gates | readers
    cameras = {camera.id for camera in site.cameras}
    reader_lane: dict[int, int] = {}
    for index, lane in enumerate(site.lanes):
        place = f"lanes[{index}]"
        if lane.gate not in devices:
            yield Fault(f"{place}.gate", f"no device {lane.gate}")
        elif lane.gate not in gates:
            yield Fault(f"{place}.gate", f"device {lane.gate} is not a gate")
        for position, reader in enumerate(lane.readers):
            if reader not in devices:
                yield Fault(f"{place}.readers[{position}]", f"no device {reader}")
            elif reader not in readers:
                yield Fault(f"{place}.readers[{position}]", f"device {reader} is not a reader")
            elif reader_lane.setdefault(reader, index) != index:
                yield Fault(f"{place}.readers[{position}]", f"{reader} already serves lanes[{reader_lane[reader]}]")
        for position, camera in enumerate(lane.cameras):
            if camera not in cameras:
                yield Fault(f"{place}.cameras[{position}]", f"no camera {camera}")
        points = (("arming", lane.arming), ("closing", lane.closing))
        safety = ((f"safety[{position}]", ref) for position, ref in enumerate(lane.safety))
        for field, ref in (*points, *safety):
            if ref.device not in devices:
                yield Fault(f"{place}.{field}.device", f"no device {ref.device}")
