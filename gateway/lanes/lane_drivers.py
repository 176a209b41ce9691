"""The drivers that the lanes of a site use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from drivers.contract import Driver, Gate, ShowingReader
from drivers.gates.limits import Limits


class LaneDrivers(Protocol):
    """The drivers of a site, sorted by what lanes use them for."""

    @property
    def gates(self) -> Mapping[int, Gate]:
        """The gates, by their device ids."""
        ...

    @property
    def showing(self) -> Mapping[int, ShowingReader]:
        """The readers with lamps, by their device ids."""
        ...

    @property
    def stoppable(self) -> frozenset[int]:
        """The device ids of the gates that have a command to stop."""
        ...

    @property
    def limits(self) -> Mapping[int, Limits]:
        """The limit switches of the gates that have some, by the gate's id."""
        ...

    @property
    def unplaced(self) -> frozenset[int]:
        """The device ids of the gates of which nothing reports where they are."""
        ...

    @property
    def drivers(self) -> tuple[Driver, ...]:
        """The drivers of all devices."""
        ...
