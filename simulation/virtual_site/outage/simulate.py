"""The entry point of the outage: it builds a site, a line and central, runs the course, and compares both sides."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

from gateway.domain.credentials import CardStatus
from gateway.lanes import Lanes
from gateway.runtime.clock import iso_utc
from gateway.store import Store
from simulation.far_ends.central import Central, CentralAccount
from simulation.virtual_site.checks import DurableCheck, TasksCheck
from simulation.virtual_site.disk import Disk
from simulation.virtual_site.gate import SimulatedGate
from simulation.virtual_site.life import Around
from simulation.virtual_site.outage.course import POLL, Course, Scene
from simulation.virtual_site.outage.holdings import site_holds
from simulation.virtual_site.outage.people import CentralPeople, SitePeople, card
from simulation.virtual_site.outage.plan import OutagePlan
from simulation.virtual_site.outage.reconcile import Acknowledged, CentralHolds, faults_between
from simulation.virtual_site.outage.report import OutageReport
from simulation.virtual_site.outage.technician import Technician
from simulation.virtual_site.outage.wire import Line
from simulation.virtual_site.outage.wired_sync import PASSWORD, USERNAME, WiredSync
from simulation.virtual_site.power import Box
from simulation.virtual_site.scene import (
    START_MICROS,
    bad_cards,
    fields_of,
    gate_id,
    good_cards,
    reader_id,
    site_of,
)
from simulation.virtual_site.script import SETTLE, play
from simulation.virtual_site.surroundings import dice_of, failures_to, fresh_folder, own_chance, without_collecting
from simulation.virtual_site.virtual_time import VirtualClock, VirtualLoop
from simulation.virtual_site.witness import Witness

_FIRST_CAMERA = 900
_CENTRALS_OWN, _SITES_OWN = 60, 20


def simulate_outage(plan: OutagePlan, *, day_begins: Callable[[int], None] = lambda _: None) -> OutageReport:
    """Run a plan to its end, in this thread. `day_begins` is called with the number of each day without central.

    Meanwhile, Python's shared random generator is seeded and logging is off; both are restored afterwards.
    """
    witness = Witness(checks=(DurableCheck(), TasksCheck()))
    base, loop = fresh_folder(), VirtualLoop()
    try:
        with (
            own_chance(plan.seed),
            failures_to(witness, loop),
            without_collecting(),
            asyncio.Runner(loop_factory=lambda: loop) as runner,
        ):
            return runner.run(_run(plan, witness=witness, loop=loop, base=base, day_begins=day_begins))
    finally:
        shutil.rmtree(base, ignore_errors=True)


async def _run(
    plan: OutagePlan, *, witness: Witness, loop: VirtualLoop, base: Path, day_begins: Callable[[int], None]
) -> OutageReport:
    scene = await _scene(plan, witness=witness, loop=loop, base=base)
    course = await play(
        scene.box,
        loop=loop,
        clock=scene.clock,
        script_with=lambda tasks: Course(scene=scene, tasks=tasks, day_begins=day_begins),
    )
    holds = await site_holds(scene.disk.folder, connect=scene.disk.connect)
    central = scene.central
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
    clock = VirtualClock(monotonic=loop.time, start_micros=START_MICROS)
    disk = loop.work = Disk(base=base, dice=dice_of(plan.seed, "disk"), monotonic=loop.time)
    central = _central(plan, clock)
    cards = central.tables.cards
    line = Line(serve=await central.serve_unwired())
    fields = fields_of(plan.lanes, seed=plan.seed)
    around = Around(
        site=site_of(plan.lanes),
        clock=clock,
        witness=witness,
        lanes=Lanes,
        store=partial(Store, connect=disk.connect),
        central_sync=lambda store, lanes, folder: WiredSync(
            store=store, lanes=lanes, folder=folder, clock=clock, plug=line.plug()
        ),
    )
    gate = partial(SimulatedGate, monotonic=loop.time, poll=POLL, rest=SETTLE)
    people = SitePeople(
        dice=dice_of(plan.seed, "site"), at_central=lambda: [str(record.get("number", "")) for record in cards.values()]
    )
    promised = people.promised
    return Scene(
        plan=plan,
        box=Box(around=around, disk=disk, fields=fields, gate=gate, dice=dice_of(plan.seed, "gates")),
        clock=clock,
        disk=disk,
        fields=fields,
        line=line,
        central=central,
        site_people=people,
        central_people=CentralPeople(
            cards=cards, dice=dice_of(plan.seed, "central"), now=clock.true_micros, contested=promised.contested.add
        ),
        technician=Technician(dice=dice_of(plan.seed, "technician"), tables=central.tables, promised=promised),
        dice=dice_of(plan.seed, "course"),
    )


def _central(plan: OutagePlan, clock: VirtualClock) -> Central:
    """Make a central with the site's devices, cameras and cards."""
    central = Central(
        clock=clock, accounts=(CentralAccount(USERNAME, PASSWORD),), honours_keys=plan.honours_keys, page_cap=100
    )
    tables, at = central.tables, iso_utc(START_MICROS)
    for number in range(plan.lanes):
        for device in (gate_id(number), reader_id(number)):
            tables.devices.put({"id": device, "name": f"Device {device}", "type": 3, "created_at": at})
        camera = _FIRST_CAMERA + number
        tables.cameras.put({"id": camera, "name": f"Camera {camera}", "stream": "", "created_at": at})
    for one in (*good_cards(), *bad_cards()):
        status = "active" if one.status is CardStatus.ACTIVE else one.status.value
        until = {"valid_until": iso_utc(one.valid_until)} if one.valid_until is not None else {}
        tables.cards.put({"id": one.card_id, **card(one.number, at=at, **{"status": status, **until})})
    for number in range(_CENTRALS_OWN):
        tables.cards.add(card(f"C9{number:05d}", at=at))
    for number in range(_SITES_OWN):
        tables.cards.add(card(f"S9{number:05d}", at=at))
    return central
