"""Put a simulated site together, run it on virtual time, and say what was found."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from drivers.contract import Gate
from gateway.domain.access import Stance
from gateway.lanes import Lanes
from gateway.runtime.supervision import Supervisor
from gateway.simulation import observations as seen
from gateway.simulation.central import CentralFarEnd, SimulatedCentral
from gateway.simulation.checks import all_checks
from gateway.simulation.director import SETTLE, Director
from gateway.simulation.disk import Disk
from gateway.simulation.gate import SimulatedGate
from gateway.simulation.in_step import OnlyUp
from gateway.simulation.lane_field import LaneField
from gateway.simulation.life import Around, Pulse, read_back
from gateway.simulation.network import Network
from gateway.simulation.plan import Plan
from gateway.simulation.power import Box
from gateway.simulation.report import Report
from gateway.simulation.scene import (
    START_MICROS,
    cards_with_days,
    gate_id,
    is_wired,
    lane_id,
    modules_of,
    reader_id,
    site_of,
)
from gateway.simulation.surroundings import failures_to, fresh_folder, own_chance, without_collecting
from gateway.simulation.virtual_time import DeadEnd, VirtualClock, VirtualLoop
from gateway.simulation.wired_gate import WiredGate
from gateway.simulation.witness import Witness
from gateway.simulation.world import World
from gateway.store import Store


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts of a simulation. Tests replace them with broken ones, to prove that the checks notice."""

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

    While it runs, the process's shared source of chance is seeded and logging goes nowhere; both are put back after.

    Args:
        plan: what to simulate. Equal plans give equal reports.
        parts: what the site is made of.
        day_begins: called with the number of each simulated day as it begins.
        enough: asked before each happening; when it says so the run ends early.
    """
    site = site_of(plan.lanes)
    lane = site.lanes[0]
    checks = all_checks(
        stale=site.policy.stale_seconds,
        command_life=site.policy.command_seconds,
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
    def dice(of: str) -> random.Random:
        return random.Random(f"{plan.seed}-{of}")  # noqa: S311 (chance of a simulation)

    clock = parts.clock(monotonic=loop.time, start_micros=START_MICROS)
    disk = parts.disk(base=base, dice=dice("disk"), monotonic=loop.time)
    loop.work = disk
    fields = {
        number: LaneField(
            lane_id=lane_id(number),
            gate_id=gate_id(number),
            reader_id=reader_id(number),
            modules=modules_of(number),
            dice=dice(f"lane-{number}"),
        )
        for number in range(plan.lanes)
    }
    central = CentralFarEnd(dice=dice("central"))
    around = Around(
        site=site_of(plan.lanes),
        clock=clock,
        witness=witness,
        lanes=parts.lanes,
        store=partial(parts.store, connect=disk.connect),
        in_step=lambda store, _lanes, _folder: OnlyUp(
            client=SimulatedCentral(far_end=central, witness=witness, clock=clock), store=store, clock=clock
        ),
    )

    network = Network(loop=loop)
    loop.network = network
    wired = frozenset(fields[number].lane_id for number in fields if is_wired(number))

    def gate(*, field: LaneField, witness: Witness, dice: random.Random, pulse: Pulse) -> Gate:
        if field.lane_id in wired:
            return WiredGate(
                field=field,
                witness=witness,
                monotonic=loop.time,
                poll=plan.poll,
                dice=dice,
                alive=lambda: pulse.beats,
                network=network,
            )
        return parts.gate(
            field=field,
            witness=witness,
            monotonic=loop.time,
            poll=plan.poll,
            rest=SETTLE,
            dice=dice,
            alive=lambda: pulse.beats,
        )

    box = Box(around=around, disk=disk, fields=fields, gate=gate, dice=dice("gates"))
    async with Supervisor(clock=clock) as outside:
        living = outside.once("gateway", box.run())
        world = World(
            plan=plan,
            fields=fields,
            central=central,
            disk=disk,
            clock=clock,
            witness=witness,
            box=box,
            dice=dice("world"),
        )
        director = Director(world=world, tasks=outside, day_begins=day_begins, enough=enough)
        loop.quiet_until = director.quiet_until
        directing = outside.once("director", director.run())
        await asyncio.wait({living, directing}, return_when=asyncio.FIRST_COMPLETED)
        box.end()
        await living
    await _read_all(parts, disk, witness, loop.time())


async def _read_all(parts: Parts, disk: Disk, witness: Witness, now: float) -> None:
    """Read from disk, after everything, all that was ever acknowledged."""
    store = parts.store(folder=disk.folder, site_name="", sends=True, connect=disk.connect)
    await store.open()
    found = await read_back(store, above=0)
    await store.close()
    witness.see(seen.Found(now, *found, whole=True), taped=False)
