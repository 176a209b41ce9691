"""The drivers of a site whose field is made by a test."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from drivers.contract import Driver, Gate, ShowingReader
from drivers.gates.limits import Limits


@dataclass(frozen=True)
class OwnDrivers:
    """Gates and readers for `Lanes`. `stopping`: the gates that can stop on the way, None for all."""

    gates: Mapping[int, Gate]
    showing: Mapping[int, ShowingReader] = field(default_factory=dict)
    stopping: Collection[int] | None = None
    drivers: tuple[Driver, ...] = ()
    limits: Mapping[int, Limits] = field(default_factory=dict)
    unplaced: frozenset[int] = frozenset()

    @property
    def stoppable(self) -> frozenset[int]:
        return frozenset(self.gates if self.stopping is None else self.stopping)
