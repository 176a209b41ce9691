"""The site's devices as drivers: a bus per shared line, a driver per device. Nothing is opened until the tasks run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from drivers.bus.bus import Bus
from drivers.contract import Driver, Gate, ShowingReader
from drivers.gates.limits import LimitedGate, LimitPoint, Limits
from drivers.gates.profiled_gate import ProfiledGate
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
from gateway.site import (
    AxisPlatesDevice,
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
    SerialReaderDevice,
    SerialTagReaderDevice,
    Site,
    find_profile,
    key_of,
    profile_folders,
)

Profile = TypeVar("Profile", UnitProfile, GateProfile, SerialGateProfile, TagReaderProfile)


@dataclass(frozen=True, slots=True)
class Field:
    """All lines and devices of a site.

    Attributes:
        buses: the lines whose devices are polled, by the id of their link.
        osdp_lines: the OSDP lines, by the id of their link.
        gates: the gates, by device id.
        drivers: the drivers of all devices, gates first.
        listeners: the listeners for plate cameras that push their readings, by the id of their link.
        showing: the readers with lamps, by device id.
        stoppable: the device ids of gates that can stop on the way.
        limited: the gates whose limit switches are inputs of other devices.
    """

    buses: Mapping[str, Bus]
    osdp_lines: Mapping[str, OsdpLine]
    gates: Mapping[int, Gate]
    drivers: tuple[Driver, ...]
    listeners: Mapping[str, PushListener]
    showing: Mapping[int, ShowingReader]
    stoppable: frozenset[int]
    limited: tuple[LimitedGate, ...]

    @property
    def lines(self) -> Mapping[str, Bus | OsdpLine]:
        """All buses and OSDP lines, by the id of their link."""
        return {**self.buses, **self.osdp_lines}

    @property
    def limits(self) -> Mapping[int, Limits]:
        """The limit switches of the gates that have any, by the gate's device id."""
        known = ((gate, gate.limits) for gate in self.gates.values() if isinstance(gate, ProfiledGate | LimitedGate))
        return {gate.device_id: limits for gate, limits in known if limits is not None}

    @property
    def unplaced(self) -> frozenset[int]:
        """The device ids of the gates of which nothing reports where they are."""
        return frozenset(
            number for number, gate in self.gates.items() if isinstance(gate, ProfiledGate) and not gate.has_position
        )


_NO_FIELD = Field({}, {}, {}, (), {}, {}, frozenset(), ())


@dataclass(frozen=True, slots=True)
class Kept:
    """The lines and devices that keep running when the site file changes: all of `field` except those named here."""

    field: Field = _NO_FIELD
    without_links: Collection[str] = ()
    without_devices: Collection[int] = ()

    def drivers(self) -> dict[int, Driver]:
        """Return the drivers that keep running, by device id."""
        return {one.device_id: one for one in self.field.drivers if one.device_id not in self.without_devices}

    def bus(self, name: str) -> Bus | None:
        """Return the bus of this link if it keeps running, else None."""
        return None if name in self.without_links else self.field.buses.get(name)

    def osdp_line(self, name: str) -> OsdpLine | None:
        """Return the OSDP line of this link if it keeps running, else None."""
        return None if name in self.without_links else self.field.osdp_lines.get(name)

    def listener(self, name: str) -> PushListener | None:
        """Return the listener of this link if it keeps running, else None."""
        return None if name in self.without_links else self.field.listeners.get(name)


def build_field(site: Site, *, site_path: Path, clock: Clock, secrets: Secrets, kept: Kept | None = None) -> Field:
    """Build the lines and devices of a site file, reusing those in `kept`, which keep running.

    Raises ConfigError for a profile or a secret that cannot be used.
    """
    kept = kept or Kept()
    drivers, before = kept.drivers(), kept.field
    parts = _parts(site, site_path=site_path, clock=clock, secrets=secrets, kept=kept)
    new = [device for device in site.devices if device.id not in drivers]
    built: dict[int, Gate] = {d.id: _GATES[type(d)](d, parts) for d in new if type(d) in _GATES}
    others: dict[int, Driver] = {d.id: _OTHERS[type(d)](d, parts) for d in new if type(d) in _OTHERS}
    limited = (*_limited(site, built), *(gate for gate in before.limited if gate.device_id in drivers))
    gates = {number: gate for number, gate in before.gates.items() if number in drivers}
    gates |= built | {gate.device_id: gate for gate in limited}
    drivers |= others | gates
    pushed: dict[str, list[PushedPlates]] = {}
    for device in site.devices:
        if isinstance(camera := drivers[device.id], PushedPlates):
            pushed.setdefault(device.link, []).append(camera)
    stopping = {number for number, gate in built.items() if isinstance(gate, ProfiledGate) and gate.stops}
    return Field(
        buses=parts.buses,
        osdp_lines=parts.osdp_lines,
        gates=gates,
        drivers=tuple(drivers[number] for number in (*gates, *(drivers.keys() - gates.keys()))),
        listeners={
            name: kept.listener(name) or _listener(parts.specs[name].url, cameras) for name, cameras in pushed.items()
        },
        stoppable=frozenset(stopping | (before.stoppable & drivers.keys() - built.keys())),
        limited=limited,
        showing={number: driver for number, driver in drivers.items() if isinstance(driver, ShowingReader)},
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
        if lane.gate in gates and lane.closed_limit is not None and lane.open_limit is not None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """The lines of a site, and everything else that its drivers are built from.

    Attributes:
        specs: the specification of each link, by its id.
        buses: the buses of links whose devices speak only when asked, by the id of the link.
        osdp_lines: the OSDP lines, by the id of the link.
        tag_profiles: the profiles of serial tag readers, by device id.
        folders: the folders in which profiles are looked up.
        secrets: the site's secrets.
        monotonic: the monotonic clock.
    """

    specs: Mapping[str, LinkSpec]
    buses: Mapping[str, Bus]
    osdp_lines: Mapping[str, OsdpLine]
    tag_profiles: Mapping[int, TagReaderProfile]
    folders: tuple[Path, ...]
    secrets: Secrets
    monotonic: Callable[[], float]

    def account(self, username: str, password: str) -> Account:
        """Return an account; `password` is the name of the secret that holds it. Raises ConfigError."""
        return Account(username, self.secrets.get(password))


def _parts(site: Site, *, site_path: Path, clock: Clock, secrets: Secrets, kept: Kept) -> _Parts:
    specs = {link.id: link_spec(link) for link in site.links}
    folders = profile_folders(site, site_path)
    tag_profiles = {
        device.id: _loaded(device.profile, folders, load_tag_reader_profile)
        for device in site.devices
        if isinstance(device, SerialTagReaderDevice)
    }
    shared = {device.link for device in site.devices if _only_answers(device, tag_profiles)}
    keys: dict[str, dict[int, bytes]] = {}
    for device in site.devices:
        if isinstance(device, OsdpReaderDevice):
            keys.setdefault(device.link, {})[device.address] = key_of(secrets.get(device.key))
    return _Parts(
        specs=specs,
        buses={
            name: kept.bus(name) or Bus(name=name, spec=specs[name], monotonic=clock.monotonic)
            for name in sorted(shared)
        },
        osdp_lines={
            name: kept.osdp_line(name)
            or OsdpLine(name=name, spec=specs[name], keys=keys[name], monotonic=clock.monotonic)
            for name in sorted(keys)
        },
        tag_profiles=tag_profiles,
        folders=folders,
        secrets=secrets,
        monotonic=clock.monotonic,
    )


def _only_answers(device: Device, tag_profiles: Mapping[int, TagReaderProfile]) -> bool:
    """Return whether the device speaks only when asked, so that its line needs a bus."""
    if isinstance(device, SerialTagReaderDevice):
        return tag_profiles[device.id].poll is not None
    return isinstance(device, ModbusDevice | SerialGateDevice)


def _modbus_gate(device: ModbusGateDevice, parts: _Parts) -> ModbusGate:
    return ModbusGate(
        device_id=device.id,
        bus=parts.buses[device.link],
        profile=_loaded(device.profile, parts.folders, load_profile),
        unit=device.unit,
        framing=device.framing,
        monotonic=parts.monotonic,
    )


def _modbus_inputs(device: ModbusIoDevice, parts: _Parts) -> ModbusInputs:
    return ModbusInputs(
        device_id=device.id,
        bus=parts.buses[device.link],
        profile=_loaded(device.profile, parts.folders, load_unit_profile),
        unit=device.unit,
        framing=device.framing,
        monotonic=parts.monotonic,
    )


def _serial_gate(device: SerialGateDevice, parts: _Parts) -> SerialGate:
    return SerialGate(
        device_id=device.id,
        bus=parts.buses[device.link],
        profile=_loaded(device.profile, parts.folders, load_gate_profile),
        unit=device.unit,
        monotonic=parts.monotonic,
    )


def _serial_reader(device: SerialReaderDevice, parts: _Parts) -> SerialReader:
    return SerialReader(
        device_id=device.id,
        spec=parts.specs[device.link],
        terminator=device.terminator,
        prefix=device.prefix,
        form=device.form,
        monotonic=parts.monotonic,
    )


def _tag_reader(device: SerialTagReaderDevice, parts: _Parts) -> SpeakingTagReader | PolledTagReader:
    profile = parts.tag_profiles[device.id]
    if profile.poll is None:
        return SpeakingTagReader(
            device_id=device.id,
            spec=parts.specs[device.link],
            profile=profile,
            unit=device.unit,
            hold_seconds=device.hold_seconds,
            monotonic=parts.monotonic,
        )
    return PolledTagReader(
        device_id=device.id,
        bus=parts.buses[device.link],
        profile=profile,
        query=profile.poll,
        unit=device.unit,
        hold_seconds=device.hold_seconds,
        monotonic=parts.monotonic,
    )


def _osdp_reader(device: OsdpReaderDevice, parts: _Parts) -> OsdpReader:
    line = parts.osdp_lines[device.link]
    return OsdpReader(device_id=device.id, line=line, address=device.address, monotonic=parts.monotonic)


def _hikvision_barrier(device: HikvisionBarrierDevice, parts: _Parts) -> HikvisionBarrier:
    return HikvisionBarrier(
        device_id=device.id,
        url=parts.specs[device.link].url,
        account=parts.account(device.username, device.password),
        channel=device.channel,
        monotonic=parts.monotonic,
    )


def _plate_camera(device: PlateCamera, parts: _Parts) -> PlateStream | PushedPlates:
    dialect = _dialect(device)
    if isinstance(device, DahuaPlatesDevice | HikvisionPlatesDevice) and device.username and device.password:
        return PlateStream(
            device_id=device.id,
            url=parts.specs[device.link].url,
            dialect=dialect,
            account=parts.account(device.username, device.password),
            silence_seconds=device.silence_seconds,
            monotonic=parts.monotonic,
        )
    if isinstance(device, DahuaPlatesDevice):
        raise ConfigError(f"device {device.id} needs an account")
    return PushedPlates(
        device_id=device.id,
        dialect=dialect,
        source=device.source or "",
        token=parts.secrets.get(device.token) if device.token else "",
        silence_seconds=device.silence_seconds,
        monotonic=parts.monotonic,
    )


_GATES: Mapping[type, Callable[[Any, _Parts], Gate]] = {
    ModbusGateDevice: _modbus_gate,
    SerialGateDevice: _serial_gate,
    HikvisionBarrierDevice: _hikvision_barrier,
}
_OTHERS: Mapping[type, Callable[[Any, _Parts], Driver]] = {
    ModbusIoDevice: _modbus_inputs,
    SerialReaderDevice: _serial_reader,
    SerialTagReaderDevice: _tag_reader,
    OsdpReaderDevice: _osdp_reader,
    AxisPlatesDevice: _plate_camera,
    DahuaPlatesDevice: _plate_camera,
    HikvisionPlatesDevice: _plate_camera,
    PlateRecognizerDevice: _plate_camera,
}


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
    """Return a link of the site file in the form that drivers take."""
    return LinkSpec(url=link.url, baud=link.baud, parity=link.parity, stop_bits=link.stop_bits, echoes=link.echoes)
