"""The plan of a simulation, a frozen value. The whole run follows from it and its seed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """The length of a simulation, its traffic and its faults.

    Attributes:
        days: the number of simulated days.
        lanes: the number of lanes; every second one is an exit.
        seed: the seed of all chance.
        vehicles: vehicles per lane and day.
        faults: the factor on the usual number of faults; 0.0 injects none.
        poll: the seconds between two polls of a gate that moves. A gate at rest is polled on each change and at least
            every 2 s. While the whole site is at rest there are no polls, and time jumps to the next happening.
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
