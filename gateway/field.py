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
from drivers.modbus.inputs import ModbusInputs
from drivers.modbus.profile import ProfileError, UnitProfile, load_profile, load_unit_profile
from drivers.serial_line.reader import SerialReader
from gateway.clock import Clock
from gateway.domain.errors import ConfigError
from gateway.site import Link, ModbusDevice, ModbusGateDevice, ModbusIoDevice, Site, find_profile, profile_folders
from gateway.supervision import Supervisor

Profile = TypeVar("Profile", bound=UnitProfile)


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
    shared = {device.link for device in site.devices if isinstance(device, ModbusDevice)}
    buses = {name: Bus(name=name, spec=specs[name], monotonic=clock.monotonic) for name in sorted(shared)}
    folders = profile_folders(site, site_path)
    gates: dict[int, Gate] = {}
    others: list[Driver] = []
    for device in site.devices:
        if isinstance(device, ModbusGateDevice):
            gates[device.id] = ModbusGate(
                device_id=device.id,
                bus=buses[device.link],
                profile=_loaded(device.profile, folders, load_profile),
                unit=device.unit,
                framing=device.framing,
                monotonic=clock.monotonic,
            )
        elif isinstance(device, ModbusIoDevice):
            others.append(
                ModbusInputs(
                    device_id=device.id,
                    bus=buses[device.link],
                    profile=_loaded(device.profile, folders, load_unit_profile),
                    unit=device.unit,
                    framing=device.framing,
                    monotonic=clock.monotonic,
                )
            )
        else:
            others.append(
                SerialReader(
                    device_id=device.id,
                    spec=specs[device.link],
                    terminator=device.terminator,
                    prefix=device.prefix,
                    form=device.form,
                    monotonic=clock.monotonic,
                )
            )
    return Field(buses=buses, gates=gates, drivers=(*gates.values(), *others))


def _loaded(name: str, folders: tuple[Path, ...], load: Callable[[Path], Profile]) -> Profile:
    path = find_profile(name, folders)
    if path is None:
        raise ConfigError(f"no profile {name!r}")
    try:
        return load(path)
    except ProfileError as error:
        raise ConfigError(str(error)) from error


def _spec(link: Link) -> LinkSpec:
    return LinkSpec(url=link.url, baud=link.baud, parity=link.parity, stop_bits=link.stop_bits, echoes=link.echoes)
