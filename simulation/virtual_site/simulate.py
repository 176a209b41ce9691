"""The entry point of the simulation: it builds a simulated site, runs it on virtual time, and reports the findings."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from drivers.contract import Gate
from gateway.domain.access import Stance
from gateway.lanes import Lanes
from gateway.store import Store
from simulation.virtual_site import observations as seen
from simulation.virtual_site.central import CentralFarEnd, SimulatedCentral
from simulation.virtual_site.central_sync import OutboxAlone
from simulation.virtual_site.checks import all_checks
from simulation.virtual_site.director import Director
from simulation.virtual_site.disk import Disk
from simulation.virtual_site.gate import SimulatedGate
from simulation.virtual_site.lane_field import LaneField
from simulation.virtual_site.life import Around, read_back
from simulation.virtual_site.network import Network
from simulation.virtual_site.plan import Plan
from simulation.virtual_site.power import Box
from simulation.virtual_site.report import Report
from simulation.virtual_site.scene import (
    START_MICROS,
    cards_with_days,
    fields_of,
    is_wired,
    site_of,
)
from simulation.virtual_site.script import SETTLE, play
from simulation.virtual_site.surroundings import dice_of, failures_to, fresh_folder, own_chance, without_collecting
from simulation.virtual_site.virtual_time import DeadEnd, VirtualClock, VirtualLoop
from simulation.virtual_site.wired_gate import WiredGate
from simulation.virtual_site.witness import Witness
from simulation.virtual_site.world import World


@dataclass(frozen=True, slots=True)
class Parts:
    """The types of a simulation's parts. Tests replace them with faulty ones, to prove that the checks find faults."""

    lanes: Callable[..., Lanes] = Lanes
    store: Callable[..., Store] = Store
    gate: Callable[..., Gate] = SimulatedGate
    disk: Callable[..., Disk] = Disk
    clock: Callable[..., VirtualClock] = VirtualClock


def simulate(
    plan: Plan,
    *,
    parts: Parts | None = None,
    day_begins: Callable[[int], None] = lambda _: None,
    enough: Callable[[Witness], bool] = lambda _: False,
) -> Report:
    """Run a plan to its end, in this thread.

    Meanwhile, Python's shared random generator is seeded and logging is off; both are restored afterwards.

    Args:
        plan: the days, lanes and seed. Equal plans give equal reports.
        parts: the types of the site's parts.
        day_begins: called with the number of each simulated day as it begins.
        enough: called before each happening; the run ends early once it returns true.
    """
    site = site_of(plan.lanes)
    lane = site.lanes[0]
    checks = all_checks(
        stale=site.policy.stale_seconds,
        command_life=site.policy.command_seconds,
        poll=plan.poll,
        clear=lane.clear_seconds,
        clear_after_loss=lane.clear_after_loss_seconds,
        fire_lanes=frozenset(one.id for one in site.lanes if one.fire is not None),
        sure_time_lanes=frozenset(one.id for one in site.lanes if one.doubt.clock is Stance.SECURE),
        cards_with_days=cards_with_days(),
    )
    witness = Witness(checks=checks)
    base = fresh_folder()
    loop = VirtualLoop()
    try:
        with own_chance(plan.seed), failures_to(witness, loop), without_collecting():
            try:
                with asyncio.Runner(loop_factory=lambda: loop) as runner:
                    runner.run(
                        _run(
                            plan,
                            parts=parts or Parts(),
                            witness=witness,
                            loop=loop,
                            base=base,
                            day_begins=day_begins,
                            enough=enough,
                        )
                    )
            except (DeadEnd, ExceptionGroup) as error:
                witness.see(seen.TaskFailed(loop.time(), "simulation", repr(error)))
    finally:
        shutil.rmtree(base, ignore_errors=True)
    return Report(
        plan=plan,
        counts=dict(witness.counts),
        violated=dict(witness.violated),
        violations=tuple(witness.violations),
        steps=witness.steps,
        simulated_seconds=loop.time(),
        digest=witness.digest,
    )


async def _run(
    plan: Plan,
    *,
    parts: Parts,
    witness: Witness,
    loop: VirtualLoop,
    base: Path,
    day_begins: Callable[[int], None],
    enough: Callable[[Witness], bool],
) -> None:
    clock = parts.clock(monotonic=loop.time, start_micros=START_MICROS)
    disk = loop.work = parts.disk(base=base, dice=dice_of(plan.seed, "disk"), monotonic=loop.time)
    network = loop.network = Network(loop=loop)
    fields = fields_of(plan.lanes, seed=plan.seed)
    central = CentralFarEnd(dice=dice_of(plan.seed, "central"))
    around = Around(
        site=site_of(plan.lanes),
        clock=clock,
        witness=witness,
        lanes=parts.lanes,
        store=partial(parts.store, connect=disk.connect),
        central_sync=lambda store, _lanes, _folder: OutboxAlone(
            client=SimulatedCentral(far_end=central, witness=witness, clock=clock), store=store, clock=clock
        ),
    )
    wired = {field.lane_id for number, field in fields.items() if is_wired(number)}

    def gate(*, field: LaneField, **of_a_life: Any) -> Gate:
        of_a_life |= {"field": field, "monotonic": loop.time, "poll": plan.poll, "rest": SETTLE}
        return WiredGate(network=network, **of_a_life) if field.lane_id in wired else parts.gate(**of_a_life)

    world = World(
        plan=plan,
        fields=fields,
        central=central,
        disk=disk,
        clock=clock,
        witness=witness,
        box=Box(around=around, disk=disk, fields=fields, gate=gate, dice=dice_of(plan.seed, "gates")),
        dice=dice_of(plan.seed, "world"),
    )
    script_with = partial(Director, world=world, day_begins=day_begins, enough=enough)
    await play(world.box, loop=loop, clock=clock, script_with=lambda tasks: script_with(tasks=tasks))
    await _read_all(parts, disk, witness, loop.time())


async def _read_all(parts: Parts, disk: Disk, witness: Witness, now: float) -> None:
    """Read all records from disk once the run is over."""
    store = parts.store(folder=disk.folder, site_name="", sends=True, connect=disk.connect)
    await store.open()
    found = await read_back(store, above=0)
    await store.close()
    witness.see(seen.Found(now, *found, whole=True), taped=False)
