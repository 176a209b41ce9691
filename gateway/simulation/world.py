"""The surroundings of all gateways of a run. They last through all its lives."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from gateway.simulation import observations as seen
from gateway.simulation.central import CentralFarEnd
from gateway.simulation.disk import Disk
from gateway.simulation.lane_field import LaneField
from gateway.simulation.plan import Plan
from gateway.simulation.power import Box
from gateway.simulation.virtual_time import VirtualClock
from gateway.simulation.witness import Witness


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
