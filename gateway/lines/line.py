"""A line of the site whose units are polled, as technicians' tools need it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from drivers.bus.bus import Bus
from drivers.modbus.frames import Framing
from drivers.modbus.profile import UnitProfile


@dataclass(frozen=True, slots=True)
class ModbusUnit:
    """A Modbus device of the site: its address, the framing of its line, and its profile."""

    unit: int
    framing: Framing
    profile: UnitProfile


@dataclass(frozen=True, slots=True)
class PolledLine:
    """A line with polled units.

    Attributes:
        bus: the bus that owns the line.
        framing: the framing of its Modbus devices; None when it has none.
        names: the names of the site's devices, by unit address.
        card_units: the addresses of units whose answers hold numbers of cards or tags, which nobody may see.
        is_moving: returns whether a gate on the line moves now; its polls are fast then, and nothing may delay them.
        devices: its Modbus devices, by device id.
    """

    bus: Bus
    framing: Framing | None
    names: Mapping[int, tuple[str, ...]]
    card_units: frozenset[int]
    is_moving: Callable[[], bool]
    devices: Mapping[int, ModbusUnit] = field(default_factory=dict)
