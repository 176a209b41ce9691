"""The site's devices as drivers: a bus per shared line, a driver per device. Opens nothing until its tasks run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from drivers.bus import Bus
from drivers.contract import Driver, Gate, Reports, ShowingReader
from drivers.link import LinkSpec
from drivers.modbus.gate import ModbusGate
from drivers.modbus.profile import GateProfile, ProfileError, load_profile
from drivers.serial_line.reader import SerialReader
from gateway.clock import Clock
from gateway.domain.errors import ConfigError
from gateway.site import Link, ModbusGateDevice, Site, find_profile, profile_folders
from gateway.supervision import Supervisor


@dataclass(frozen=True, slots=True)
class Field:
    """Every line and device of a site; `showing` are the readers with lamps, by their ids."""

    buses: Mapping[str, Bus]
    gates: Mapping[int, Gate]
    drivers: tuple[Driver, ...]
    showing: Mapping[int, ShowingReader] = field(default_factory=dict)

    def start(self, supervisor: Supervisor, *, reports: Reports) -> None:
        """Set lines and drivers going; they report to `reports`."""
        for name, bus in self.buses.items():
            supervisor.keep(f"bus-{name}", bus.run)
        for driver in self.drivers:
            supervisor.keep(f"device-{driver.device_id}", partial(driver.run, reports))


def build_field(site: Site, *, site_path: Path, clock: Clock) -> Field:
    """The site file's devices. Raises ConfigError for a profile that cannot be used."""
    specs = {link.id: _spec(link) for link in site.links}
    shared = {device.link for device in site.devices if isinstance(device, ModbusGateDevice)}
    buses = {name: Bus(name=name, spec=specs[name], monotonic=clock.monotonic) for name in sorted(shared)}
    folders = profile_folders(site, site_path)
    gates: dict[int, Gate] = {}
    readers: list[Driver] = []
    for device in site.devices:
        if isinstance(device, ModbusGateDevice):
            gates[device.id] = ModbusGate(
                device_id=device.id,
                bus=buses[device.link],
                profile=_profile(device.profile, folders),
                unit=device.unit,
                framing=device.framing,
                monotonic=clock.monotonic,
            )
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


def _profile(name: str, folders: tuple[Path, ...]) -> GateProfile:
    path = find_profile(name, folders)
    if path is None:
        raise ConfigError(f"no profile {name!r}")
    try:
        return load_profile(path)
    except ProfileError as error:
        raise ConfigError(str(error)) from error


def _spec(link: Link) -> LinkSpec:
    return LinkSpec(url=link.url, baud=link.baud, parity=link.parity, stop_bits=link.stop_bits)
