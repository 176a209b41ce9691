"""The builders of drivers, by the model of the device in the site file.

Each builder imports its driver, so that a site loads only the drivers that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from drivers.bus.bus import Bus
from drivers.contract import Driver, Gate
from drivers.link import LinkSpec
from drivers.profile_file import ProfileError
from gateway.domain.errors import ConfigError
from gateway.site import (
    AxisPlatesDevice,
    DahuaPlatesDevice,
    HikvisionBarrierDevice,
    HikvisionPlatesDevice,
    ModbusGateDevice,
    ModbusIoDevice,
    OsdpReaderDevice,
    PlateCamera,
    PlateRecognizerDevice,
    Secrets,
    SerialGateDevice,
    SerialReaderDevice,
    SerialTagReaderDevice,
    find_profile,
)

if TYPE_CHECKING:
    from drivers.hikvision.barrier import HikvisionBarrier
    from drivers.http_session import Account
    from drivers.modbus.gate import ModbusGate
    from drivers.modbus.inputs import ModbusInputs
    from drivers.osdp.line import OsdpLine
    from drivers.osdp.reader import OsdpReader
    from drivers.plates.dialect import Dialect
    from drivers.plates.listener import PushListener
    from drivers.plates.pushed import PushedPlates
    from drivers.plates.stream import PlateStream
    from drivers.serial_line.gate import SerialGate
    from drivers.serial_line.profile import TagReaderProfile
    from drivers.serial_line.reader import SerialReader
    from drivers.serial_line.tag_reader import PolledTagReader, SpeakingTagReader

Profile = TypeVar("Profile")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
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
        from drivers.http_session import Account  # noqa: PLC0415  # only a site with HTTP devices loads it

        return Account(username, self.secrets.get(password, may_be_empty=True))


def _modbus_gate(device: ModbusGateDevice, parts: Parts) -> ModbusGate:
    from drivers.modbus.gate import ModbusGate  # noqa: PLC0415
    from drivers.modbus.profile import load_profile  # noqa: PLC0415

    return ModbusGate(
        device_id=device.id,
        bus=parts.buses[device.link],
        profile=loaded(device.profile, parts.folders, load_profile),
        unit=device.unit,
        framing=device.framing,
        monotonic=parts.monotonic,
    )


def _modbus_inputs(device: ModbusIoDevice, parts: Parts) -> ModbusInputs:
    from drivers.modbus.inputs import ModbusInputs  # noqa: PLC0415
    from drivers.modbus.profile import load_unit_profile  # noqa: PLC0415

    return ModbusInputs(
        device_id=device.id,
        bus=parts.buses[device.link],
        profile=loaded(device.profile, parts.folders, load_unit_profile),
        unit=device.unit,
        framing=device.framing,
        monotonic=parts.monotonic,
    )


def _serial_gate(device: SerialGateDevice, parts: Parts) -> SerialGate:
    from drivers.serial_line.gate import SerialGate  # noqa: PLC0415
    from drivers.serial_line.profile import load_gate_profile  # noqa: PLC0415

    return SerialGate(
        device_id=device.id,
        bus=parts.buses[device.link],
        profile=loaded(device.profile, parts.folders, load_gate_profile),
        unit=device.unit,
        monotonic=parts.monotonic,
    )


def _serial_reader(device: SerialReaderDevice, parts: Parts) -> SerialReader:
    from drivers.serial_line.reader import SerialReader  # noqa: PLC0415

    return SerialReader(
        device_id=device.id,
        spec=parts.specs[device.link],
        terminator=device.terminator,
        prefix=device.prefix,
        form=device.form,
        check_digits=device.check_digits,
        heartbeat=device.heartbeat,
        hold_seconds=device.hold_seconds,
        monotonic=parts.monotonic,
    )


def _tag_reader(device: SerialTagReaderDevice, parts: Parts) -> SpeakingTagReader | PolledTagReader:
    from drivers.serial_line.tag_reader import PolledTagReader, SpeakingTagReader  # noqa: PLC0415

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


def _osdp_reader(device: OsdpReaderDevice, parts: Parts) -> OsdpReader:
    from drivers.osdp.reader import OsdpReader  # noqa: PLC0415

    line = parts.osdp_lines[device.link]
    return OsdpReader(
        device_id=device.id,
        line=line,
        address=device.address,
        hold_seconds=device.hold_seconds,
        monotonic=parts.monotonic,
    )


def _hikvision_barrier(device: HikvisionBarrierDevice, parts: Parts) -> HikvisionBarrier:
    from drivers.hikvision.barrier import HikvisionBarrier  # noqa: PLC0415

    return HikvisionBarrier(
        device_id=device.id,
        url=parts.specs[device.link].url,
        account=parts.account(device.username, device.password),
        channel=device.channel,
        monotonic=parts.monotonic,
    )


def _plate_camera(device: PlateCamera, parts: Parts) -> PlateStream | PushedPlates:
    from drivers.plates.pushed import PushedPlates  # noqa: PLC0415
    from drivers.plates.stream import PlateStream  # noqa: PLC0415

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


GATES: Mapping[type, Callable[[Any, Parts], Gate]] = {
    ModbusGateDevice: _modbus_gate,
    SerialGateDevice: _serial_gate,
    HikvisionBarrierDevice: _hikvision_barrier,
}
OTHERS: Mapping[type, Callable[[Any, Parts], Driver]] = {
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
    from drivers.plates import axis, dahua, hikvision, plate_recognizer  # noqa: PLC0415

    match device:
        case HikvisionPlatesDevice():
            return hikvision.HIKVISION
        case DahuaPlatesDevice():
            return dahua.DAHUA
        case PlateRecognizerDevice():
            return plate_recognizer.plate_recognizer(camera=device.camera)
        case _:
            return axis.AXIS


def listener_of(url: str, cameras: list[PushedPlates]) -> PushListener:
    """Return the listener at this URL for cameras that push their readings."""
    from drivers.plates.listener import PushListener  # noqa: PLC0415

    parts = urlsplit(url)
    return PushListener(host=parts.hostname or "", port=parts.port or 0, cameras=cameras)


def loaded(name: str, folders: tuple[Path, ...], load: Callable[[Path], Profile]) -> Profile:
    """Return the profile of this name, read by `load`. Raises ConfigError."""
    path = find_profile(name, folders)
    if path is None:
        raise ConfigError(f"no profile {name!r}")
    try:
        return load(path)
    except ProfileError as error:
        raise ConfigError(str(error)) from error
