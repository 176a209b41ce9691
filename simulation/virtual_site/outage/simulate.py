"""The entry point of the outage: it builds a site, a line and central, runs the course, and compares both sides."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from gateway.runtime.clock import iso_utc
from simulation.virtual_site.central import card
from simulation.virtual_site.checks import DurableCheck, TasksCheck
from simulation.virtual_site.outage.course import Course, Scene
from simulation.virtual_site.outage.holdings import site_holds
from simulation.virtual_site.outage.people import CentralPeople, SitePeople
from simulation.virtual_site.outage.plan import OutagePlan
from simulation.virtual_site.outage.reconcile import Acknowledged, CentralHolds, faults_between
from simulation.virtual_site.outage.report import OutageReport
from simulation.virtual_site.outage.technician import Technician
from simulation.virtual_site.outage.wired_sync import WiredSync
from simulation.virtual_site.scene import (
    START_MICROS,
)
from simulation.virtual_site.script import play
from simulation.virtual_site.surroundings import dice_of, on_virtual_time
from simulation.virtual_site.virtual_time import VirtualLoop
from simulation.virtual_site.witness import Witness
from simulation.virtual_site.world import Parts, world_of

_CENTRALS_OWN, _SITES_OWN = 60, 20


def simulate_outage(plan: OutagePlan, *, day_begins: Callable[[int], None] = lambda _: None) -> OutageReport:
    """Run a plan to its end, in this thread. `day_begins` is called with the number of each day without central.

    Meanwhile, Python's shared random generator is seeded and logging is off; both are restored afterwards.
    """
    witness = Witness(checks=(DurableCheck(), TasksCheck()))
    loop = VirtualLoop()
    run = partial(_run, plan, witness=witness, loop=loop, day_begins=day_begins)
    return on_virtual_time(loop, seed=plan.seed, witness=witness, run=run)


async def _run(
    plan: OutagePlan, base: Path, *, witness: Witness, loop: VirtualLoop, day_begins: Callable[[int], None]
) -> OutageReport:
    scene = await _scene(plan, witness=witness, loop=loop, base=base)
    course = await play(
        scene.world,
        loop=loop,
        script_with=lambda tasks: Course(scene=scene, tasks=tasks, day_begins=day_begins),
    )
    holds = await site_holds(scene.world.disk.folder, connect=scene.world.disk.connect)
    central = scene.world.central
    theirs = CentralHolds(
        counts=central.record_counts(),
        camera_events=central.tables.camera_events,
        entries=central.tables.entries,
        cards=central.cards,
    )
    acknowledged = Acknowledged(camera_events=witness.camera_events, promised=scene.site_people.promised)
    await central.stop()
    broken = tuple(f"{item.promise}: {item.text}" for item in witness.violations)
    unsettled = (course.unsettled,) if course.unsettled else ()
    return OutageReport(
        plan=plan,
        faults=(*broken, *unsettled, *faults_between(holds, theirs, acknowledged)),
        counts=dict(course.counts),
        held={
            "camera events": len(holds.camera_events),
            "entries": len(holds.entries),
            "files": len(holds.files),
            "cards": len(holds.cards),
            "requests to central": len(central.requests),
        },
        books=holds.books,
        simulated_seconds=loop.time(),
    )


async def _scene(plan: OutagePlan, *, witness: Witness, loop: VirtualLoop, base: Path) -> Scene:
    world = await world_of(
        plan.site,
        parts=Parts(),
        witness=witness,
        loop=loop,
        base=base,
        central_sync=WiredSync,
        honours_keys=plan.honours_keys,
    )
    tables, at = world.central.tables, iso_utc(START_MICROS)
    cards = tables.cards
    for number in range(_CENTRALS_OWN):
        cards.add(card(f"C9{number:05d}", at=at))
    for number in range(_SITES_OWN):
        cards.add(card(f"S9{number:05d}", at=at))
    people = SitePeople(
        dice=dice_of(plan.seed, "site"), at_central=lambda: [str(record.get("number", "")) for record in cards.values()]
    )
    promised = people.promised
    return Scene(
        plan=plan,
        world=world,
        site_people=people,
        central_people=CentralPeople(
            cards=cards,
            dice=dice_of(plan.seed, "central"),
            now=world.clock.true_micros,
            contested=promised.contested.add,
        ),
        technician=Technician(dice=dice_of(plan.seed, "technician"), tables=tables, promised=promised),
        dice=dice_of(plan.seed, "course"),
    )
