"""The plan of a simulation: a frozen value. Everything else follows from it and its seed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """The length of a simulation, its traffic and its faults.

    Attributes:
        days: simulated days.
        lanes: lanes of the site; each second one is an exit.
        seed: all chance comes from it.
        vehicles: vehicles per lane and day.
        faults: factor on the usual number of faults; 0.0 injects none.
        poll: seconds between looks at a gate that moves. A gate at rest is looked at on change and at least each 2 s,
            and not at all while the whole site is at rest: then time jumps to the next happening.
    """

    days: float
    lanes: int
    seed: int
    vehicles: int = 50
    faults: float = 1.0
    poll: float = 0.3

    @property
    def seconds(self) -> float:
        """The length in seconds."""
        return self.days * 86_400.0
