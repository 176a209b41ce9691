"""The surroundings of all gateways of a run. They last through all its lives."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from simulation.virtual_site import observations as seen
from simulation.virtual_site.central import CentralFarEnd
from simulation.virtual_site.disk import Disk
from simulation.virtual_site.lane_field import LaneField
from simulation.virtual_site.plan import Plan
from simulation.virtual_site.power import Box
from simulation.virtual_site.virtual_time import VirtualClock
from simulation.virtual_site.witness import Witness


@dataclass(frozen=True, slots=True)
class World:
    """The box, its field and central, with the clock, disk and chance of the run."""

    plan: Plan
    fields: Mapping[int, LaneField]
    central: CentralFarEnd
    disk: Disk
    clock: VirtualClock
    witness: Witness
    box: Box
    dice: random.Random

    def now(self) -> float:
        """Return the seconds of virtual time."""
        return self.clock.monotonic()

    def see(self, observation: seen.Observation) -> None:
        """Report an observation to the witness."""
        self.witness.see(observation)
