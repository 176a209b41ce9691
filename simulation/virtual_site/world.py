"""The surroundings of all gateways of a run. They last through all its lives."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from drivers.contract import Gate
from gateway.lanes import Lanes
from gateway.store import Store
from simulation.far_ends.central import Central
from simulation.virtual_site import observations as seen
from simulation.virtual_site.central import CentralSync, Writes, central_of
from simulation.virtual_site.disk import Disk
from simulation.virtual_site.gate import SimulatedGate
from simulation.virtual_site.lane_field import LaneField
from simulation.virtual_site.life import Around
from simulation.virtual_site.network import Network
from simulation.virtual_site.plan import Plan
from simulation.virtual_site.power import Box
from simulation.virtual_site.scene import START_MICROS, fields_of, site_of
from simulation.virtual_site.surroundings import dice_of
from simulation.virtual_site.virtual_time import VirtualClock, VirtualLoop
from simulation.virtual_site.wire import Line, Plug
from simulation.virtual_site.witness import Witness


@dataclass(frozen=True, slots=True)
class Parts:
    """The types of a simulation's parts. Tests replace them with faulty ones, to prove that the checks find faults."""

    lanes: Callable[..., Lanes] = Lanes
    store: Callable[..., Store] = Store
    gate: Callable[..., Gate] = SimulatedGate
    disk: Callable[..., Disk] = Disk
    clock: Callable[..., VirtualClock] = VirtualClock


class SyncMaker(Protocol):
    """A function that makes what speaks with central in one life."""

    def __call__(self, *, store: Store, lanes: Lanes, folder: Path, clock: VirtualClock, plug: Plug) -> CentralSync:
        """Make it for one life."""
        ...


@dataclass(frozen=True, slots=True)
class World:
    """The box, its field and central, with the clock, disk and chance of the run."""

    plan: Plan
    fields: Mapping[int, LaneField]
    central: Central
    line: Line
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


async def world_of(
    plan: Plan,
    *,
    parts: Parts,
    witness: Witness,
    loop: VirtualLoop,
    base: Path,
    central_sync: SyncMaker,
    honours_keys: bool = False,
) -> World:
    """Build a world on a loop, with its folders below `base`. Its central serves until it is stopped."""
    clock = parts.clock(monotonic=loop.time, start_micros=START_MICROS)
    disk = loop.work = parts.disk(base=base, dice=dice_of(plan.seed, "disk"), monotonic=loop.time)
    network = loop.network = Network(loop=loop)
    fields = fields_of(plan.lanes, seed=plan.seed)
    writes = Writes(witness=witness, clock=clock)
    central = central_of(plan.lanes, clock=clock, honours_keys=honours_keys, on_write=writes)
    line = Line(serve=await central.serve_unwired())
    around = Around(
        site=site_of(plan.lanes),
        clock=clock,
        witness=witness,
        lanes=parts.lanes,
        store=partial(parts.store, connect=disk.connect),
        central_sync=lambda store, lanes, folder: central_sync(
            store=store, lanes=lanes, folder=folder, clock=clock, plug=line.plug()
        ),
    )
    gate = partial(parts.gate, monotonic=loop.time, poll=plan.poll, network=network)
    return World(
        plan=plan,
        fields=fields,
        central=central,
        line=line,
        disk=disk,
        clock=clock,
        witness=witness,
        box=Box(around=around, disk=disk, fields=fields, gate=gate, dice=dice_of(plan.seed, "gates")),
        dice=dice_of(plan.seed, "world"),
    )
