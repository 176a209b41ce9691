"""The sections of Modbus devices in the site file."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from drivers.device import (
    Abilities,
    Device,
    FindProfile,
    GateDevice,
    LineNumber,
    NamedLine,
    ProfiledDevice,
    Surroundings,
    loaded,
)
from drivers.gates.profile_parts import gate_abilities, inputs_of
from drivers.modbus.profile import Line, load_profile, load_unit_profile
from drivers.profile_file import ProfileError

if TYPE_CHECKING:
    from drivers.bus.bus import Bus
    from drivers.link import LinkSpec
    from drivers.modbus.gate import ModbusGate
    from drivers.modbus.polled_unit import ModbusInputs

ITSELF = frozenset({0, 255})
"""Unit numbers that address a Modbus TCP device itself, and not a unit behind it."""
_SELF = max(ITSELF)
_LAST_UNIT = 247


class ModbusDevice(ProfiledDevice):
    """Fields of every unit on a Modbus line. Several may share a line."""

    unit: int = Field(default=1, ge=0, le=255, description="0 to 247; over TCP also 255, the device itself")
    framing: Literal["tcp", "rtu"] = "tcp"

    has_points: ClassVar[bool] = True
    shares_as: ClassVar[str] = "modbus"

    def number(self) -> LineNumber:
        """Return the unit's address; the two addresses of a TCP device itself count as one."""
        return LineNumber("unit", self.unit, _SELF if self.framing == "tcp" and self.unit in ITSELF else self.unit)

    def line_faults(self, line: NamedLine) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with framing, data bits and unit on this line."""
        if self.framing == "tcp" and line.spec.is_serial:
            yield "framing", f"'tcp' cannot go over the serial port of {line.name!r}; write 'rtu'"
        if line.spec.data_bits != 8 and line.spec.is_serial:
            yield "link", f"Modbus has 8 data bits; change that of {line.name!r}"
        if self.framing == "rtu" and self.unit == 0:
            yield "unit", "0 addresses all devices of the line, and none answers"
        if self.unit > _LAST_UNIT and (self.framing == "rtu" or self.unit != _SELF):
            units = f"is {self.unit}; units are 1 to {_LAST_UNIT}"
            yield "unit", units if self.framing == "rtu" else f"{units}, or {_SELF} for the device itself"

    def faults_beside(self, first: Device, index: int) -> Iterator[tuple[str, str]]:
        """Yield a fault for another framing than that of the first unit on the line."""
        if isinstance(first, ModbusDevice) and first.framing != self.framing:
            yield "framing", f"differs from devices[{index}] on the same link {self.link!r}"

    def line_doubts(self, line: NamedLine, find_profile: FindProfile) -> Iterator[str]:
        """Yield a warning if the line's settings differ from the maker's. The device may have been set differently."""
        path = find_profile(self.profile) if line.spec.is_serial else None
        if path is None:
            return
        try:
            by_maker = load_unit_profile(path).line
        except ProfileError:  # it was valid when the file was checked; the next start reports the fault
            return
        if by_maker.baud is not None and _said(by_maker) != _said(line.spec):
            settings = f'baud = {by_maker.baud}, parity = "{by_maker.parity}", stop_bits = {by_maker.stop_bits}'
            yield (
                f"is set to {_said(line.spec)}, but the maker sets device {self.id} ({self.profile}) to"
                f" {_said(by_maker)}: write {settings}, unless the device was changed"
            )

    def new_line(self, name: str, sharing: Sequence[Device], parts: Surroundings) -> Bus:  # noqa: ARG002  # as its base
        """Return the bus of the line."""
        from drivers.bus.bus import Bus  # noqa: PLC0415  # only a site with such lines loads it

        return Bus(name=name, spec=parts.spec, monotonic=parts.monotonic)


class ModbusGateDevice(ModbusDevice, GateDevice):
    """A gate controller on Modbus, driven by a profile."""

    driver: Literal["modbus-gate"]

    def doubts_beside(self, other: Device, index: int, find_profile: FindProfile) -> Iterator[tuple[str, str]]:
        """Yield a warning if another gate has the same output, one by a unit and one as the device itself.

        Many devices ignore the unit, so both would move.
        """
        if not isinstance(other, ModbusGateDevice) or {self.framing, other.framing} != {"tcp"}:
            return
        if (self.unit in ITSELF) == (other.unit in ITSELF):
            return
        if _outputs(self, find_profile) & _outputs(other, find_profile):
            message = (
                f"{self.unit} writes the same output as devices[{index}] with unit {other.unit}: a device that ignores"
                " the unit moves for both; give each gate an output of its own, or remove one of them"
            )
            yield "unit", message

    def abilities(self, find_profile: FindProfile) -> Abilities:
        """Return points and commands of the profile. Raises ProfileError."""
        profile = loaded(self.profile, find_profile, load_profile)
        return gate_abilities(profile.points, profile.position, profile.commands)

    def build(self, parts: Surroundings) -> ModbusGate:
        """Build the driver."""
        from drivers.modbus.gate import ModbusGate  # noqa: PLC0415  # only a site with one loads it

        return ModbusGate(
            device_id=self.id,
            bus=parts.bus,
            profile=loaded(self.profile, parts.find_profile, load_profile),
            unit=self.unit,
            framing=self.framing,
            monotonic=parts.monotonic,
        )


class ModbusIoDevice(ModbusDevice):
    """An input module on Modbus: points only, for loops that are not wired to the gate's controller."""

    driver: Literal["modbus-io"]

    def abilities(self, find_profile: FindProfile) -> Abilities:
        """Return the points of the profile. Raises ProfileError."""
        profile = loaded(self.profile, find_profile, load_unit_profile)
        return Abilities(points=inputs_of(profile.points))

    def build(self, parts: Surroundings) -> ModbusInputs:
        """Build the driver."""
        from drivers.modbus.polled_unit import ModbusInputs  # noqa: PLC0415  # only a site with one loads it

        return ModbusInputs(
            device_id=self.id,
            bus=parts.bus,
            profile=loaded(self.profile, parts.find_profile, load_unit_profile),
            unit=self.unit,
            framing=self.framing,
            monotonic=parts.monotonic,
        )


def _said(line: Line | LinkSpec) -> str:
    bits = 8 if isinstance(line, Line) else line.data_bits
    return f"{line.baud} {bits}{line.parity[0].upper()}{line.stop_bits}"


def _outputs(device: ModbusGateDevice, find_profile: FindProfile) -> frozenset[Hashable]:
    path = find_profile(device.profile)
    try:
        return load_profile(path).outputs() if path is not None else frozenset()
    except ProfileError:  # it was valid when the file was checked; the next start reports the fault
        return frozenset()
