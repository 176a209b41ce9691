"""The site's devices as drivers: a bus per shared line, a driver per device. Nothing is opened until the tasks run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from drivers.bus.bus import Bus
from drivers.contract import Driver, Gate, ShowingReader, StoppingGate
from drivers.device import Device, GateDevice, SharedLine, Surroundings
from drivers.gates.limits import LimitedGate, LimitPoint, Limits
from drivers.gates.profiled_gate import ProfiledGate
from drivers.kinds import BUILT_IN
from drivers.profile_file import ProfileError
from drivers.settings import NamesSecret
from gateway.domain.errors import ConfigError
from gateway.runtime.clock import Clock
from gateway.site import Secrets, Site, find_profile, profile_folders
from gateway.site.fields import marked

if TYPE_CHECKING:
    from drivers.plates.listener import PushListener
    from drivers.plates.pushed import PushedPlates


@dataclass(frozen=True, slots=True)
class Field:
    """All lines and devices of a site.

    Attributes:
        lines: the lines that devices share, by the id of their link.
        gates: the gates, by device id.
        drivers: the drivers of all devices, gates first.
        listeners: the listeners for plate cameras that push their readings, by the id of their link.
        showing: the readers with lamps, by device id.
        stoppable: the device ids of gates that can stop on the way.
        limited: the gates whose limit switches are inputs of other devices.
    """

    lines: Mapping[str, SharedLine]
    gates: Mapping[int, Gate]
    drivers: tuple[Driver, ...]
    listeners: Mapping[str, PushListener]
    showing: Mapping[int, ShowingReader]
    stoppable: frozenset[int]
    limited: tuple[LimitedGate, ...]

    @property
    def buses(self) -> Mapping[str, Bus]:
        """The lines whose devices are polled, by the id of their link."""
        return {name: line for name, line in self.lines.items() if isinstance(line, Bus)}

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


_NO_FIELD = Field({}, {}, (), {}, {}, frozenset(), ())


@dataclass(frozen=True, slots=True)
class KeptDevices:
    """The lines and devices that keep running when the site file changes: all of `field` except those named here."""

    field: Field = _NO_FIELD
    without_links: Collection[str] = ()
    without_devices: Collection[int] = ()

    def drivers(self) -> dict[int, Driver]:
        """Return the drivers that keep running, by device id."""
        return {one.device_id: one for one in self.field.drivers if one.device_id not in self.without_devices}

    def line(self, name: str) -> SharedLine | None:
        """Return the shared line of this link if it keeps running, else None."""
        return None if name in self.without_links else self.field.lines.get(name)

    def listener(self, name: str) -> PushListener | None:
        """Return the listener of this link if it keeps running, else None."""
        return None if name in self.without_links else self.field.listeners.get(name)


def build_field(
    site: Site, *, site_path: Path, clock: Clock, secrets: Secrets, kept: KeptDevices | None = None
) -> Field:
    """Build the lines and devices of a site file, reusing those in `kept`, which keep running.

    Raises ConfigError for a profile or a secret that cannot be used.
    """
    kept = kept or KeptDevices()
    drivers, before = kept.drivers(), kept.field
    parts = _Parts(site=site, site_path=site_path, clock=clock, secrets=secrets)
    lines = parts.lines(kept)
    new = [device for device in site.devices if device.id not in drivers]
    built: dict[int, Gate] = {device.id: parts.gate(device, lines) for device in new if isinstance(device, GateDevice)}
    others = {device.id: parts.driver(device, lines) for device in new if device.id not in built}
    limited = (*_limited(site, built), *(gate for gate in before.limited if gate.device_id in drivers))
    gates = {number: gate for number, gate in before.gates.items() if number in drivers}
    gates |= built | {gate.device_id: gate for gate in limited}
    drivers |= others | gates
    stopping = {number for number, gate in built.items() if isinstance(gate, StoppingGate) and gate.stops}
    return Field(
        lines=lines,
        gates=gates,
        drivers=tuple(drivers[number] for number in (*gates, *(drivers.keys() - gates.keys()))),
        listeners={
            name: kept.listener(name) or _listener_of(parts.links[name].url, cameras)
            for name, cameras in _pushing(site, drivers).items()
        },
        stoppable=frozenset(stopping | (before.stoppable & drivers.keys() - built.keys())),
        limited=limited,
        showing={number: driver for number, driver in drivers.items() if isinstance(driver, ShowingReader)},
    )


def _pushing(site: Site, drivers: Mapping[int, Driver]) -> dict[str, list[PushedPlates]]:
    """Return the plate cameras that push their readings, by the id of their link."""
    listening = {link.id for link in site.links if link.kind == "http-listen"}
    devices = [device for device in site.devices if device.link in listening]
    if not devices:
        return {}
    from drivers.plates.pushed import PushedPlates  # noqa: PLC0415  # only a site with such cameras loads it

    pushed: dict[str, list[PushedPlates]] = {}
    for device in devices:
        if isinstance(camera := drivers[device.id], PushedPlates):
            pushed.setdefault(device.link, []).append(camera)
    return pushed


def _listener_of(url: str, cameras: list[PushedPlates]) -> PushListener:
    """Return the listener at this URL for cameras that push their readings."""
    from drivers.plates.listener import PushListener  # noqa: PLC0415

    parts = urlsplit(url)
    return PushListener(host=parts.hostname or "", port=parts.port or 0, cameras=cameras)


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


class _Parts:
    """The parts that the drivers of a site are built from."""

    def __init__(self, *, site: Site, site_path: Path, clock: Clock, secrets: Secrets) -> None:
        self.links = {link.id: link.spec() for link in site.links}
        self._devices = site.devices
        self._find_profile = partial(find_profile, folders=profile_folders(site, site_path))
        self._secrets = secrets
        self._monotonic = clock.monotonic

    def lines(self, kept: KeptDevices) -> dict[str, SharedLine]:
        """Return the lines that devices share, by the id of their link. Raises ConfigError.

        A line that runs is kept where the devices still share one of its kind.
        """
        sharing: dict[str, list[Device]] = {}
        for device in self._devices:
            sharing.setdefault(device.link, []).append(device)
        lines: dict[str, SharedLine] = {}
        for name, devices in sorted(sharing.items()):
            with _told_of(devices[0]):
                made = devices[0].new_line(name, devices, self._around(devices, None))
            if made is not None:
                running = kept.line(name)
                lines[name] = running if running is not None and type(running) is type(made) else made
        return lines

    def gate(self, device: GateDevice, lines: Mapping[str, SharedLine]) -> Gate:
        """Build the driver of a gate. Raises ConfigError."""
        with _told_of(device):
            return device.build(self._around([device], lines.get(device.link)))

    def driver(self, device: Device, lines: Mapping[str, SharedLine]) -> Driver:
        """Build the driver of any device. Raises ConfigError."""
        with _told_of(device):
            return device.build(self._around([device], lines.get(device.link)))

    def _around(self, devices: Sequence[Device], line: SharedLine | None) -> Surroundings:
        named = {name: mark for device in devices for _, name, mark in marked(device, NamesSecret)}

        def secret(name: str) -> str:
            if name not in named:
                raise ConfigError(f"device {devices[0].id} asks for secret {name!r}, which none of its keys names")
            return self._secrets.get(name, may_be_empty=named[name].may_be_empty)

        return Surroundings(
            spec=self.links[devices[0].link],
            line=line,
            secret=secret,
            find_profile=self._find_profile,
            monotonic=self._monotonic,
        )


@contextmanager
def _told_of(device: Device) -> Iterator[None]:
    """Convert the errors of a device's section to ConfigError. That of another distribution may raise anything."""
    try:
        yield
    except ConfigError:
        raise
    except Exception as error:  # a section of another distribution may raise anything
        if type(device) in BUILT_IN and not isinstance(error, ValueError):
            raise
        if type(device) in BUILT_IN or isinstance(error, ProfileError):
            raise ConfigError(str(error)) from error
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ConfigError(f"device {device.id}: driver {device.driver!r} cannot be built: {why}") from error
