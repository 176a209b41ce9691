"""The site's devices as drivers: a bus per shared line, a driver per device. Opens nothing until its tasks run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from drivers.bus import Bus
from drivers.contract import Driver, Gate, Reports
from drivers.link import LinkSpec
from drivers.modbus.gate import ModbusGate
from drivers.modbus.profile import GateProfile, ProfileError, load_profile
from drivers.serial_line.gate import SerialGate
from drivers.serial_line.profile import GateProfile as SerialGateProfile
from drivers.serial_line.profile import ProfileError as SerialProfileError
from drivers.serial_line.profile import TagReaderProfile, load_gate_profile, load_tag_reader_profile
from drivers.serial_line.reader import SerialReader
from drivers.serial_line.tag_reader import PolledTagReader, SpeakingTagReader
from gateway.clock import Clock
from gateway.domain.errors import ConfigError
from gateway.site import (
    Device,
    Link,
    ModbusGateDevice,
    SerialGateDevice,
    SerialTagReaderDevice,
    Site,
    find_profile,
    profile_folders,
)
from gateway.supervision import Supervisor


@dataclass(frozen=True, slots=True)
class Field:
    """Every line and device of a site."""

    buses: Mapping[str, Bus]
    gates: Mapping[int, Gate]
    drivers: tuple[Driver, ...]

    def start(self, supervisor: Supervisor, *, reports: Reports) -> None:
        """Set lines and drivers going; they report to `reports`."""
        for name, bus in self.buses.items():
            supervisor.keep(f"bus-{name}", bus.run)
        for driver in self.drivers:
            supervisor.keep(f"device-{driver.device_id}", partial(driver.run, reports))


def build_field(site: Site, *, site_path: Path, clock: Clock) -> Field:
    """The site file's devices. Raises ConfigError for a profile that cannot be used."""
    specs = {link.id: _spec(link) for link in site.links}
    folders = profile_folders(site, site_path)
    tag_profiles = {
        device.id: _profile(device.profile, folders, load_tag_reader_profile)
        for device in site.devices
        if isinstance(device, SerialTagReaderDevice)
    }
    shared = {device.link for device in site.devices if _is_asked(device, tag_profiles)}
    buses = {name: Bus(name=name, spec=specs[name], monotonic=clock.monotonic) for name in sorted(shared)}
    gates: dict[int, Gate] = {}
    readers: list[Driver] = []
    for device in site.devices:
        if isinstance(device, ModbusGateDevice):
            gates[device.id] = ModbusGate(
                device_id=device.id,
                bus=buses[device.link],
                profile=_profile(device.profile, folders, load_profile),
                unit=device.unit,
                framing=device.framing,
                monotonic=clock.monotonic,
            )
        elif isinstance(device, SerialGateDevice):
            gates[device.id] = SerialGate(
                device_id=device.id,
                bus=buses[device.link],
                profile=_profile(device.profile, folders, load_gate_profile),
                unit=device.unit,
                monotonic=clock.monotonic,
            )
        elif isinstance(device, SerialTagReaderDevice):
            profile = tag_profiles[device.id]
            readers.append(_tag_reader(device, profile, spec=specs[device.link], buses=buses, clock=clock))
        else:
            readers.append(
                SerialReader(
                    device_id=device.id,
                    spec=specs[device.link],
                    terminator=device.terminator,
                    prefix=device.prefix,
                    form=device.form,
                    monotonic=clock.monotonic,
                )
            )
    return Field(buses=buses, gates=gates, drivers=(*gates.values(), *readers))


def _is_asked(device: Device, tag_profiles: Mapping[int, TagReaderProfile]) -> bool:
    """Whether the device only answers, so that its line has an owner who asks."""
    if isinstance(device, SerialTagReaderDevice):
        return tag_profiles[device.id].poll is not None
    return isinstance(device, ModbusGateDevice | SerialGateDevice)


def _tag_reader(
    device: SerialTagReaderDevice, profile: TagReaderProfile, *, spec: LinkSpec, buses: Mapping[str, Bus], clock: Clock
) -> Driver:
    if profile.poll is None:
        return SpeakingTagReader(
            device_id=device.id,
            spec=spec,
            profile=profile,
            unit=device.unit,
            hold_seconds=device.hold_seconds,
            monotonic=clock.monotonic,
        )
    return PolledTagReader(
        device_id=device.id,
        bus=buses[device.link],
        profile=profile,
        query=profile.poll,
        unit=device.unit,
        hold_seconds=device.hold_seconds,
        monotonic=clock.monotonic,
    )


Profile = TypeVar("Profile", GateProfile, SerialGateProfile, TagReaderProfile)


def _profile(name: str, folders: tuple[Path, ...], load: Callable[[Path], Profile]) -> Profile:
    path = find_profile(name, folders)
    if path is None:
        raise ConfigError(f"no profile {name!r}")
    try:
        return load(path)
    except (ProfileError, SerialProfileError) as error:
        raise ConfigError(str(error)) from error


def _spec(link: Link) -> LinkSpec:
    return LinkSpec(url=link.url, baud=link.baud, parity=link.parity, stop_bits=link.stop_bits)
