"""The entry point of the simulation: it builds a simulated site, runs it on virtual time, and reports the findings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from gateway.domain.access import Stance
from gateway.site import Role
from simulation.virtual_site import observations as seen
from simulation.virtual_site.central import OutboxAlone, usual_faults
from simulation.virtual_site.checks import all_checks
from simulation.virtual_site.director import Director
from simulation.virtual_site.disk import Disk
from simulation.virtual_site.life import read_back
from simulation.virtual_site.plan import Plan
from simulation.virtual_site.report import Report
from simulation.virtual_site.scene import (
    cards_with_days,
    site_of,
)
from simulation.virtual_site.script import play
from simulation.virtual_site.surroundings import on_virtual_time
from simulation.virtual_site.virtual_time import DeadEnd, VirtualLoop
from simulation.virtual_site.witness import Witness
from simulation.virtual_site.world import Parts, world_of


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
        fire_lanes=frozenset(one.id for one in site.lanes if one.points(Role.FIRE)),
        sure_time_lanes=frozenset(one.id for one in site.lanes if one.doubt.clock is Stance.SECURE),
        cards_with_days=cards_with_days(),
    )
    witness = Witness(checks=checks)
    loop = VirtualLoop()
    run = partial(_run, plan, parts=parts or Parts(), witness=witness, loop=loop, day_begins=day_begins, enough=enough)
    try:
        on_virtual_time(loop, seed=plan.seed, witness=witness, run=run)
    except (DeadEnd, ExceptionGroup) as error:
        witness.see(seen.TaskFailed(loop.time(), "simulation", repr(error)))
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
    base: Path,
    *,
    parts: Parts,
    witness: Witness,
    loop: VirtualLoop,
    day_begins: Callable[[int], None],
    enough: Callable[[Witness], bool],
) -> None:
    world = await world_of(plan, parts=parts, witness=witness, loop=loop, base=base, central_sync=OutboxAlone)
    world.central.faults = usual_faults(plan.seed)
    script_with = partial(Director, world=world, day_begins=day_begins, enough=enough)
    await play(world, loop=loop, script_with=lambda tasks: script_with(tasks=tasks))
    await world.central.stop()
    await _read_all(parts, world.disk, witness, loop.time())


async def _read_all(parts: Parts, disk: Disk, witness: Witness, now: float) -> None:
    """Read all records from disk once the run is over."""
    store = parts.store(folder=disk.folder, site_name="", sends=True, connect=disk.connect)
    await store.open()
    found = await read_back(store, above=0)
    await store.close()
    witness.see(seen.Found(now, *found, whole=True), taped=False)
