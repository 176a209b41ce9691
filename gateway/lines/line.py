"""A line of the site whose units are polled, as technicians' tools need it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from drivers.bus.bus import Bus
from drivers.modbus.frames import Framing
from drivers.modbus.profile import UnitProfile


@dataclass(frozen=True, slots=True)
class ModbusUnit:
    """A Modbus device of the site: its address, and what it looks like."""

    unit: int
    framing: Framing
    profile: UnitProfile


@dataclass(frozen=True, slots=True)
class PolledLine:
    """A line.

    Attributes:
        bus: its owner.
        framing: that of its Modbus devices; None when it has none.
        names: the names of the site's devices, by unit.
        card_units: the units that answer with the numbers of cards or tags, which nobody is shown.
        devices: its Modbus devices, by their id.
        is_moving: whether a gate on it moves now: its polls are fast then, and nothing may delay them.
    """

    bus: Bus
    framing: Framing | None
    names: Mapping[int, tuple[str, ...]]
    card_units: frozenset[int]
    is_moving: Callable[[], bool]
    devices: Mapping[int, ModbusUnit] = field(default_factory=dict)
