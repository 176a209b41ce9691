"""Put a site, a line and central together, run the course of an outage on virtual time, and compare both sides."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from drivers.contract import Gate
from gateway.demo.central import Central, CentralAccount
from gateway.domain.credentials import CardStatus
from gateway.lanes import Lanes
from gateway.runtime.clock import iso_utc
from gateway.runtime.supervision import Supervisor
from gateway.simulation.checks import DurableCheck, TasksCheck
from gateway.simulation.disk import Disk
from gateway.simulation.gate import SimulatedGate
from gateway.simulation.lane_field import LaneField
from gateway.simulation.life import Around, Pulse
from gateway.simulation.outage.course import Course, Scene
from gateway.simulation.outage.holdings import site_holds
from gateway.simulation.outage.house import PASSWORD, USERNAME, WiredSync
from gateway.simulation.outage.people import CentralPeople, SitePeople, card
from gateway.simulation.outage.plan import OutagePlan
from gateway.simulation.outage.reconcile import Acknowledged, CentralHolds, faults_between
from gateway.simulation.outage.technician import Technician
from gateway.simulation.outage.wire import Line
from gateway.simulation.power import Box
from gateway.simulation.scene import (
    START_MICROS,
    bad_cards,
    gate_id,
    good_cards,
    lane_id,
    modules_of,
    reader_id,
    site_of,
)
from gateway.simulation.surroundings import failures_to, fresh_folder, own_chance, without_collecting
from gateway.simulation.virtual_time import VirtualClock, VirtualLoop
from gateway.simulation.witness import Witness
from gateway.store import Books, Store

_POLL = 0.5
_SETTLE = 7.0
_FIRST_CAMERA = 900
_CENTRALS_OWN, _SITES_OWN = 60, 20


@dataclass(frozen=True, slots=True)
class OutageReport:
    """An outage and what came of it.

    Attributes:
        faults: every way in which the two sides are not in step, or a promise was broken; one sentence each.
        counts: what happened.
        held: how much both sides hold in the end.
        books: of the outbox, in the end.
        simulated_seconds: how far the virtual clock came.
    """

    plan: OutagePlan
    faults: tuple[str, ...]
    counts: Mapping[str, int]
    held: Mapping[str, int]
    books: Books
    simulated_seconds: float

    @property
    def passed(self) -> bool:
        """True if both sides hold the same records, each once."""
        return not self.faults

    def as_json(self) -> str:
        """Everything, as a JSON text."""
        facts = asdict(self)
        facts["plan"]["chances"] = self.plan.chances.model_dump()
        return json.dumps(facts | {"passed": self.passed}, indent=2)


def simulate_outage(plan: OutagePlan, *, day_begins: Callable[[int], None] = lambda _: None) -> OutageReport:
    """Run a plan to its end, in this thread. `day_begins` is called with the number of each day without central.

    While it runs, the process's shared source of chance is seeded and logging goes nowhere; both are put back after.
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
    def dice(of: str) -> random.Random:
        return random.Random(f"{plan.seed}-{of}")  # noqa: S311 (chance of a simulation)

    clock = VirtualClock(monotonic=loop.time, start_micros=START_MICROS)
    disk = Disk(base=base, dice=dice("disk"), monotonic=loop.time)
    loop.work = disk
    central = _central(plan, clock)
    line = Line(serve=await central.serve_unwired())
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

    def in_step(store: Store, lanes: Lanes, folder: Path) -> WiredSync:
        return WiredSync(store=store, lanes=lanes, folder=folder, clock=clock, plug=line.plug())

    def gate(*, field: LaneField, witness: Witness, dice: random.Random, pulse: Pulse) -> Gate:
        return SimulatedGate(
            field=field,
            witness=witness,
            monotonic=loop.time,
            poll=_POLL,
            rest=_SETTLE,
            dice=dice,
            alive=lambda: pulse.beats,
        )

    site = site_of(plan.lanes)
    around = Around(
        site=site,
        clock=clock,
        witness=witness,
        lanes=Lanes,
        store=partial(Store, connect=disk.connect),
        in_step=in_step,
    )
    box = Box(around=around, disk=disk, fields=fields, gate=gate, dice=dice("gates"))
    at_central = central.tables.cards
    people = SitePeople(
        dice=dice("site"), at_central=lambda: [str(record.get("number", "")) for record in at_central.values()]
    )
    async with Supervisor(clock=clock) as outside:
        living = outside.once("gateway", box.run())
        scene = Scene(
            plan=plan,
            box=box,
            clock=clock,
            disk=disk,
            fields=fields,
            line=line,
            central=central,
            site_people=people,
            central_people=CentralPeople(
                cards=central.tables.cards,
                dice=dice("central"),
                now=clock.true_micros,
                contested=people.promised.contested.add,
            ),
            technician=Technician(dice=dice("technician"), tables=central.tables, promised=people.promised),
            dice=dice("course"),
        )
        course = Course(scene=scene, tasks=outside, day_begins=day_begins)
        loop.quiet_until = course.quiet_until
        directing = outside.once("course", course.run())
        await asyncio.wait({living, directing}, return_when=asyncio.FIRST_COMPLETED)
        box.end()
        await living
    holds = await site_holds(disk.folder, connect=disk.connect)
    theirs = CentralHolds(
        books=central.books(),
        camera_events=central.tables.camera_events,
        entries=central.tables.entries,
        cards=central.cards,
    )
    acknowledged = Acknowledged(camera_events=witness.camera_events, promised=people.promised)
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


def _central(plan: OutagePlan, clock: VirtualClock) -> Central:
    """One with the site's devices, cameras and cards."""
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
