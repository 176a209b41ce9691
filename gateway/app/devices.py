"""The site's devices as drivers: a bus per shared line, a driver per device. Nothing is opened until the tasks run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from drivers.bus.bus import Bus
from drivers.contract import Driver, Gate, ShowingReader
from drivers.gates.limits import LimitedGate, LimitPoint, Limits
from drivers.gates.profiled_gate import ProfiledGate
from drivers.link import LinkSpec
from gateway.app.device_builders import GATES, OTHERS, Parts, listener_of, loaded
from gateway.lines.links import link_spec
from gateway.runtime.clock import Clock
from gateway.site import (
    Device,
    ModbusDevice,
    OsdpReaderDevice,
    PlateCamera,
    Secrets,
    SerialGateDevice,
    SerialTagReaderDevice,
    Site,
    key_of,
    profile_folders,
)

if TYPE_CHECKING:
    from drivers.osdp.line import OsdpLine
    from drivers.plates.listener import PushListener
    from drivers.plates.pushed import PushedPlates
    from drivers.serial_line.profile import TagReaderProfile


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
    built: dict[int, Gate] = {d.id: GATES[type(d)](d, parts) for d in new if type(d) in GATES}
    others: dict[int, Driver] = {d.id: OTHERS[type(d)](d, parts) for d in new if type(d) in OTHERS}
    limited = (*_limited(site, built), *(gate for gate in before.limited if gate.device_id in drivers))
    gates = {number: gate for number, gate in before.gates.items() if number in drivers}
    gates |= built | {gate.device_id: gate for gate in limited}
    drivers |= others | gates
    stopping = {number for number, gate in built.items() if isinstance(gate, ProfiledGate) and gate.stops}
    return Field(
        buses=parts.buses,
        osdp_lines=parts.osdp_lines,
        gates=gates,
        drivers=tuple(drivers[number] for number in (*gates, *(drivers.keys() - gates.keys()))),
        listeners={
            name: kept.listener(name) or listener_of(parts.specs[name].url, cameras)
            for name, cameras in _pushing(site, drivers).items()
        },
        stoppable=frozenset(stopping | (before.stoppable & drivers.keys() - built.keys())),
        limited=limited,
        showing={number: driver for number, driver in drivers.items() if isinstance(driver, ShowingReader)},
    )


def _pushing(site: Site, drivers: Mapping[int, Driver]) -> dict[str, list[PushedPlates]]:
    """Return the plate cameras that push their readings, by the id of their link."""
    plates = [device for device in site.devices if isinstance(device, PlateCamera)]
    if not plates:
        return {}
    from drivers.plates.pushed import PushedPlates  # noqa: PLC0415  # only a site with plate cameras loads it

    pushed: dict[str, list[PushedPlates]] = {}
    for device in plates:
        if isinstance(camera := drivers[device.id], PushedPlates):
            pushed.setdefault(device.link, []).append(camera)
    return pushed


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


def _parts(site: Site, *, site_path: Path, clock: Clock, secrets: Secrets, kept: Kept) -> Parts:
    specs = {link.id: link_spec(link) for link in site.links}
    folders = profile_folders(site, site_path)
    tag_profiles = _tag_profiles(site, folders)
    shared = {device.link for device in site.devices if _only_answers(device, tag_profiles)}
    return Parts(
        specs=specs,
        buses={
            name: kept.bus(name) or Bus(name=name, spec=specs[name], monotonic=clock.monotonic)
            for name in sorted(shared)
        },
        osdp_lines=_osdp_lines(site, specs, monotonic=clock.monotonic, secrets=secrets, kept=kept),
        tag_profiles=tag_profiles,
        folders=folders,
        secrets=secrets,
        monotonic=clock.monotonic,
    )


def _tag_profiles(site: Site, folders: tuple[Path, ...]) -> dict[int, TagReaderProfile]:
    readers = [device for device in site.devices if isinstance(device, SerialTagReaderDevice)]
    if not readers:
        return {}
    from drivers.serial_line.profile import load_tag_reader_profile  # noqa: PLC0415

    return {device.id: loaded(device.profile, folders, load_tag_reader_profile) for device in readers}


def _osdp_lines(
    site: Site, specs: Mapping[str, LinkSpec], *, monotonic: Callable[[], float], secrets: Secrets, kept: Kept
) -> dict[str, OsdpLine]:
    keys: dict[str, dict[int, bytes]] = {}
    for device in site.devices:
        if isinstance(device, OsdpReaderDevice):
            keys.setdefault(device.link, {})[device.address] = key_of(secrets.get(device.key))
    if not keys:
        return {}
    from drivers.osdp.line import OsdpLine  # noqa: PLC0415

    return {
        name: kept.osdp_line(name) or OsdpLine(name=name, spec=specs[name], keys=keys[name], monotonic=monotonic)
        for name in sorted(keys)
    }


def _only_answers(device: Device, tag_profiles: Mapping[int, TagReaderProfile]) -> bool:
    """Return whether the device speaks only when asked, so that its line needs a bus."""
    if isinstance(device, SerialTagReaderDevice):
        return tag_profiles[device.id].poll is not None
    return isinstance(device, ModbusDevice | SerialGateDevice)
