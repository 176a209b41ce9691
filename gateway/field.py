"""The site's devices as drivers: a bus per shared line, a driver per device. Opens nothing until its tasks run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from drivers.bus import Bus
from drivers.contract import Driver, Gate, Reports
from drivers.link import LinkSpec
from drivers.modbus.gate import ModbusGate
from drivers.modbus.profile import GateProfile, ProfileError, load_profile
from drivers.osdp.line import OsdpLine
from drivers.osdp.reader import OsdpReader
from drivers.serial_line.reader import SerialReader
from gateway.clock import Clock
from gateway.domain.errors import ConfigError
from gateway.site import (
    Link,
    ModbusGateDevice,
    OsdpReaderDevice,
    Secrets,
    Site,
    find_profile,
    key_of,
    profile_folders,
)
from gateway.supervision import Supervisor


@dataclass(frozen=True, slots=True)
class Field:
    """Every line and device of a site."""

    buses: Mapping[str, Bus]
    osdp_lines: Mapping[str, OsdpLine]
    gates: Mapping[int, Gate]
    drivers: tuple[Driver, ...]

    def start(self, supervisor: Supervisor, *, reports: Reports) -> None:
        """Set lines and drivers going; they report to `reports`."""
        for name, bus in self.buses.items():
            supervisor.keep(f"bus-{name}", bus.run)
        for name, line in self.osdp_lines.items():
            supervisor.keep(f"osdp-{name}", line.run)
        for driver in self.drivers:
            supervisor.keep(f"device-{driver.device_id}", partial(driver.run, reports))


def build_field(site: Site, *, site_path: Path, secrets: Secrets, clock: Clock) -> Field:
    """The site file's devices. Raises ConfigError for a profile or a secret that cannot be used."""
    specs = {link.id: link_spec(link) for link in site.links}
    shared = {device.link for device in site.devices if isinstance(device, ModbusGateDevice)}
    buses = {name: Bus(name=name, spec=specs[name], monotonic=clock.monotonic) for name in sorted(shared)}
    osdp_lines = _osdp_lines(site, specs=specs, secrets=secrets, clock=clock)
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
        elif isinstance(device, OsdpReaderDevice):
            readers.append(
                OsdpReader(
                    device_id=device.id,
                    line=osdp_lines[device.link],
                    address=device.address,
                    monotonic=clock.monotonic,
                )
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
    return Field(buses=buses, osdp_lines=osdp_lines, gates=gates, drivers=(*gates.values(), *readers))


def _osdp_lines(site: Site, *, specs: Mapping[str, LinkSpec], secrets: Secrets, clock: Clock) -> Mapping[str, OsdpLine]:
    keys: dict[str, dict[int, bytes]] = {}
    for device in site.devices:
        if isinstance(device, OsdpReaderDevice):
            keys.setdefault(device.link, {})[device.address] = key_of(secrets.get(device.key))
    return {
        name: OsdpLine(name=name, spec=specs[name], keys=keys[name], monotonic=clock.monotonic) for name in sorted(keys)
    }


def _profile(name: str, folders: tuple[Path, ...]) -> GateProfile:
    path = find_profile(name, folders)
    if path is None:
        raise ConfigError(f"no profile {name!r}")
    try:
        return load_profile(path)
    except ProfileError as error:
        raise ConfigError(str(error)) from error


def link_spec(link: Link) -> LinkSpec:
    """A link of the site file as drivers take it."""
    return LinkSpec(url=link.url, baud=link.baud, parity=link.parity, stop_bits=link.stop_bits)
