"""The site's devices as drivers: a bus per shared line, a driver per device. Opens nothing until its tasks run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from drivers.bus.bus import Bus
from drivers.contract import Driver, Gate, Report, Reports, ShowingReader
from drivers.gates.limits import LimitedGate, LimitPoint
from drivers.hikvision.barrier import HikvisionBarrier
from drivers.http_session import Account
from drivers.link import LinkSpec
from drivers.modbus.gate import ModbusGate
from drivers.modbus.inputs import ModbusInputs
from drivers.modbus.profile import GateProfile, UnitProfile, load_profile, load_unit_profile
from drivers.osdp.line import OsdpLine
from drivers.osdp.reader import OsdpReader
from drivers.plates.axis import AXIS
from drivers.plates.dahua import DAHUA
from drivers.plates.dialect import Dialect
from drivers.plates.hikvision import HIKVISION
from drivers.plates.listener import PushListener
from drivers.plates.plate_recognizer import plate_recognizer
from drivers.plates.pushed import PushedPlates
from drivers.plates.stream import PlateStream
from drivers.profile_file import ProfileError
from drivers.serial_line.gate import SerialGate
from drivers.serial_line.profile import GateProfile as SerialGateProfile
from drivers.serial_line.profile import TagReaderProfile, load_gate_profile, load_tag_reader_profile
from drivers.serial_line.reader import SerialReader
from drivers.serial_line.tag_reader import PolledTagReader, SpeakingTagReader
from gateway.domain.errors import ConfigError
from gateway.runtime.clock import Clock
from gateway.runtime.supervision import Supervisor
from gateway.site import (
    DahuaPlatesDevice,
    Device,
    HikvisionBarrierDevice,
    HikvisionPlatesDevice,
    Link,
    ModbusDevice,
    ModbusGateDevice,
    ModbusIoDevice,
    OsdpReaderDevice,
    PlateCamera,
    PlateRecognizerDevice,
    Secrets,
    SerialGateDevice,
    SerialTagReaderDevice,
    Site,
    find_profile,
    key_of,
    profile_folders,
)

Profile = TypeVar("Profile", UnitProfile, GateProfile, SerialGateProfile, TagReaderProfile)


@dataclass(frozen=True, slots=True)
class Field:
    """Every line and device of a site.

    Attributes:
        showing: the readers with lamps.
        stoppable: the gates that can stop.
        limited: the gates whose limit switches other devices read.
    """

    buses: Mapping[str, Bus]
    osdp_lines: Mapping[str, OsdpLine]
    gates: Mapping[int, Gate]
    drivers: tuple[Driver, ...]
    listeners: Mapping[str, PushListener]
    showing: Mapping[int, ShowingReader]
    stoppable: frozenset[int]
    limited: tuple[LimitedGate, ...]

    def start_lines(self, supervisor: Supervisor) -> None:
        """Set lines going. They must outlive the drivers: the last that a driver does is to end what it holds on."""
        for name, bus in self.buses.items():
            supervisor.keep(f"bus-{name}", bus.run)
        for name, line in self.osdp_lines.items():
            supervisor.keep(f"osdp-{name}", line.run)

    def start(self, supervisor: Supervisor, *, reports: Reports) -> None:
        """Set drivers going; they report to `reports`."""
        for name, listener in self.listeners.items():
            supervisor.keep(f"listener-{name}", listener.run)

        def report(one: Report) -> None:
            reports(one)
            for gate in self.limited:
                for due in gate.hear(one):
                    reports(due)

        for driver in self.drivers:
            supervisor.keep(f"device-{driver.device_id}", partial(driver.run, report))


def build_field(site: Site, *, site_path: Path, clock: Clock, secrets: Secrets) -> Field:
    """Build the site file's devices. Raises ConfigError for a profile or a secret that cannot be used."""
    specs = {link.id: link_spec(link) for link in site.links}
    osdp_lines = _osdp_lines(site, specs=specs, secrets=secrets, clock=clock)
    folders = profile_folders(site, site_path)
    tag_profiles = {
        device.id: _loaded(device.profile, folders, load_tag_reader_profile)
        for device in site.devices
        if isinstance(device, SerialTagReaderDevice)
    }
    shared = {device.link for device in site.devices if _is_asked(device, tag_profiles)}
    buses = {name: Bus(name=name, spec=specs[name], monotonic=clock.monotonic) for name in sorted(shared)}
    gates: dict[int, Gate] = {}
    stoppable: set[int] = set()
    others: list[Driver] = []
    pushed: dict[str, list[PushedPlates]] = {}
    for device in site.devices:
        if isinstance(device, ModbusGateDevice):
            gate_profile = _loaded(device.profile, folders, load_profile)
            stoppable.update({device.id} if gate_profile.commands.stop else ())
            gates[device.id] = ModbusGate(
                device_id=device.id,
                bus=buses[device.link],
                profile=gate_profile,
                unit=device.unit,
                framing=device.framing,
                monotonic=clock.monotonic,
            )
        elif isinstance(device, SerialGateDevice):
            serial_profile = _loaded(device.profile, folders, load_gate_profile)
            stoppable.update({device.id} if serial_profile.commands.stop else ())
            gates[device.id] = SerialGate(
                device_id=device.id,
                bus=buses[device.link],
                profile=serial_profile,
                unit=device.unit,
                monotonic=clock.monotonic,
            )
        elif isinstance(device, SerialTagReaderDevice):
            profile = tag_profiles[device.id]
            others.append(_tag_reader(device, profile, spec=specs[device.link], buses=buses, clock=clock))
        elif isinstance(device, HikvisionBarrierDevice):
            gates[device.id] = HikvisionBarrier(
                device_id=device.id,
                url=specs[device.link].url,
                account=Account(device.username, secrets.get(device.password)),
                channel=device.channel,
                monotonic=clock.monotonic,
            )
        elif isinstance(device, PlateCamera):
            camera = _plate_camera(device, url=specs[device.link].url, clock=clock, secrets=secrets)
            others.append(camera)
            if isinstance(camera, PushedPlates):
                pushed.setdefault(device.link, []).append(camera)
        elif isinstance(device, OsdpReaderDevice):
            others.append(
                OsdpReader(
                    device_id=device.id,
                    line=osdp_lines[device.link],
                    address=device.address,
                    monotonic=clock.monotonic,
                )
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
    limited = _limited(site, gates)
    gates.update({gate.device_id: gate for gate in limited})
    return Field(
        buses=buses,
        osdp_lines=osdp_lines,
        gates=gates,
        drivers=(*gates.values(), *others),
        listeners={name: _listener(specs[name].url, cameras) for name, cameras in pushed.items()},
        stoppable=frozenset(stoppable),
        limited=limited,
        showing={driver.device_id: driver for driver in others if isinstance(driver, ShowingReader)},
    )


def _limited(site: Site, gates: Mapping[int, Gate]) -> tuple[LimitedGate, ...]:
    """Wrap the gates whose lanes name limit switches on other devices."""
    return tuple(
        LimitedGate(
            gate=gates[lane.gate],
            closed=LimitPoint(lane.closed_limit.device, lane.closed_limit.point),
            opened=LimitPoint(lane.open_limit.device, lane.open_limit.point),
        )
        for lane in site.lanes
        if lane.closed_limit is not None and lane.open_limit is not None
    )


def _osdp_lines(site: Site, *, specs: Mapping[str, LinkSpec], secrets: Secrets, clock: Clock) -> Mapping[str, OsdpLine]:
    keys: dict[str, dict[int, bytes]] = {}
    for device in site.devices:
        if isinstance(device, OsdpReaderDevice):
            keys.setdefault(device.link, {})[device.address] = key_of(secrets.get(device.key))
    return {
        name: OsdpLine(name=name, spec=specs[name], keys=keys[name], monotonic=clock.monotonic) for name in sorted(keys)
    }


def _is_asked(device: Device, tag_profiles: Mapping[int, TagReaderProfile]) -> bool:
    """Return whether the device speaks only when asked, so that a bus owns its line."""
    if isinstance(device, SerialTagReaderDevice):
        return tag_profiles[device.id].poll is not None
    return isinstance(device, ModbusDevice | SerialGateDevice)


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


def _plate_camera(device: PlateCamera, *, url: str, clock: Clock, secrets: Secrets) -> PlateStream | PushedPlates:
    dialect = _dialect(device)
    if isinstance(device, DahuaPlatesDevice | HikvisionPlatesDevice) and device.username and device.password:
        return PlateStream(
            device_id=device.id,
            url=url,
            dialect=dialect,
            account=Account(device.username, secrets.get(device.password)),
            silence_seconds=device.silence_seconds,
            monotonic=clock.monotonic,
        )
    if isinstance(device, DahuaPlatesDevice):
        raise ConfigError(f"device {device.id} needs an account")
    return PushedPlates(
        device_id=device.id,
        dialect=dialect,
        source=device.source or "",
        token=secrets.get(device.token) if device.token else "",
        silence_seconds=device.silence_seconds,
        monotonic=clock.monotonic,
    )


def _dialect(device: PlateCamera) -> Dialect:
    match device:
        case HikvisionPlatesDevice():
            return HIKVISION
        case DahuaPlatesDevice():
            return DAHUA
        case PlateRecognizerDevice():
            return plate_recognizer(camera=device.camera)
        case _:
            return AXIS


def _listener(url: str, cameras: list[PushedPlates]) -> PushListener:
    parts = urlsplit(url)
    return PushListener(host=parts.hostname or "", port=parts.port or 0, cameras=cameras)


def _loaded(name: str, folders: tuple[Path, ...], load: Callable[[Path], Profile]) -> Profile:
    path = find_profile(name, folders)
    if path is None:
        raise ConfigError(f"no profile {name!r}")
    try:
        return load(path)
    except ProfileError as error:
        raise ConfigError(str(error)) from error


def link_spec(link: Link) -> LinkSpec:
    """Convert a link of the site file for drivers."""
    return LinkSpec(url=link.url, baud=link.baud, parity=link.parity, stop_bits=link.stop_bits, echoes=link.echoes)
