"""The kinds of devices that a site file may name: those that come along, and those of other distributions.

Another distribution brings a driver by an entry point in the group `edge_gateway.drivers`. The entry point's name is
the driver's name in the site file, and it points to the device's section. It is loaded only when a site file names it.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib.metadata import EntryPoint, distributions
from typing import Annotated, cast, get_args

from pydantic import SerializeAsAny, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import InitErrorDetails, PydanticCustomError

from drivers.device import Device
from drivers.hikvision.section import HikvisionBarrierDevice
from drivers.modbus.section import ModbusGateDevice, ModbusIoDevice
from drivers.osdp.section import OsdpReaderDevice
from drivers.plates.section import (
    AxisPlatesDevice,
    DahuaPlatesDevice,
    HikvisionPlatesDevice,
    PlateRecognizerDevice,
)
from drivers.serial_line.section import SerialGateDevice, SerialReaderDevice, SerialTagReaderDevice

GROUP = "edge_gateway.drivers"
BUILT_IN: tuple[type[Device], ...] = (
    ModbusGateDevice,
    SerialGateDevice,
    HikvisionBarrierDevice,
    SerialReaderDevice,
    SerialTagReaderDevice,
    OsdpReaderDevice,
    HikvisionPlatesDevice,
    DahuaPlatesDevice,
    AxisPlatesDevice,
    PlateRecognizerDevice,
    ModbusIoDevice,
)
_LONGEST_NAME = 60


class UnusableDriver(Exception):
    """A driver that the site file names and that cannot be used. The text is one sentence."""


@dataclass(frozen=True, slots=True)
class OutsideDriver:
    """A driver of another distribution.

    Attributes:
        name: its name in the site file.
        points: its entry points; more than one when several distributions use the name.
    """

    name: str
    points: tuple[EntryPoint, ...]

    @property
    def origin(self) -> str:
        """The distribution with its version, for people."""
        return " and ".join(
            sorted(f"{one.dist.name} {one.dist.version}" if one.dist else one.value for one in self.points)
        )

    def section(self) -> type[Device]:
        """Return the section of its devices. Raises UnusableDriver. Runs code of the distribution."""
        if self.name in built_in():
            raise UnusableDriver(f"driver {self.name!r} of {self.origin} has the name of one that comes along")
        if len(self.points) > 1:
            raise UnusableDriver(f"driver {self.name!r} is installed more than once, by {self.origin}: remove one")
        try:
            found = self.points[0].load()
        except (Exception, SystemExit) as error:  # the code is not ours, and may raise anything
            why = f"{type(error).__name__}: {error}".splitlines()[0]
            raise UnusableDriver(f"driver {self.name!r} of {self.origin} cannot be loaded: {why}") from error
        if not inspect.isclass(found) or not issubclass(found, Device) or inspect.isabstract(found):
            value = self.points[0].value
            raise UnusableDriver(
                f"driver {self.name!r} of {self.origin} cannot be used: {value} is no device's section"
            )
        if (named := driver_name(found)) != self.name:
            raise UnusableDriver(
                f"driver {self.name!r} of {self.origin} cannot be used: its section is for driver = {named!r}"
            )
        return found


def built_in() -> dict[str, type[Device]]:
    """Return the sections of the devices whose drivers come along, by the driver's name."""
    return {driver_name(section): section for section in BUILT_IN}


def outside() -> tuple[OutsideDriver, ...]:
    """Return the drivers of other distributions. Reads the environment anew, and loads none of them."""
    found: dict[str, list[EntryPoint]] = {}
    seen = set()
    for distribution in distributions():
        try:
            name, points = distribution.name, distribution.entry_points.select(group=GROUP)
        except (OSError, TypeError, ValueError):  # damaged files of another distribution, which may have no driver
            continue
        if name in seen:
            continue  # hidden by one that stands earlier on the path
        seen.add(name)
        for point in points:
            found.setdefault(point.name, []).append(point)
    return tuple(OutsideDriver(name, tuple(points)) for name, points in sorted(found.items()))


def driver_name(section: type[Device]) -> str:
    """Return the name of the driver that a section is for; "" if it names none."""
    names = get_args(section.model_fields["driver"].annotation)
    return str(names[0]) if len(names) == 1 else ""


def section_of(name: str) -> type[Device]:
    """Return the section of the devices with this driver. Raises UnusableDriver."""
    known = built_in()
    if name in known:
        return known[name]
    others = {one.name: one for one in outside()}
    if name in others:
        return others[name].section()
    names = ", ".join(sorted({*known, *others}))
    raise UnusableDriver(f"no driver {name[:_LONGEST_NAME]!r} is installed; there are {names}")


def _of_its_kind(value: object, handler: ValidatorFunctionWrapHandler) -> Device:
    """Validate a device by the section of its driver."""
    if isinstance(value, Device):
        return value
    if not isinstance(value, dict):
        return cast("Device", handler(value))  # raises that it must be a table
    driver = value.get("driver")
    if driver is None:
        raise _refused("missing", driver)
    if not isinstance(driver, str):
        raise _refused("string_type", driver)
    try:
        section = section_of(driver)
    except UnusableDriver as error:
        raise _refused(PydanticCustomError("value_error", "{error}", {"error": str(error)}), driver) from error
    try:
        return section.model_validate(value)
    except ValidationError:
        raise
    except Exception as error:  # a section of another distribution may raise anything
        if section in BUILT_IN:
            raise
        why = why_unsound(driver, error)
        raise _refused(PydanticCustomError("value_error", "{error}", {"error": why}), driver) from error


def why_unsound(driver: str, error: Exception) -> str:
    """Say that the section of another distribution's driver has raised an error that is none of its own kind."""
    return f"driver {driver!r} cannot check its section: {type(error).__name__}: {error}".splitlines()[0]


def _refused(kind: str | PydanticCustomError, driver: object) -> ValidationError:
    details = InitErrorDetails(type=kind, loc=("driver",), input=driver)
    return ValidationError.from_exception_data("Device", [details])


AnyDevice = Annotated[SerializeAsAny[Device], WrapValidator(_of_its_kind)]
"""A device of the site file, validated by the section of its driver."""
