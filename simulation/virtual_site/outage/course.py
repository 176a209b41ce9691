"""The course of an outage: central is reachable, then away during traffic and power cuts, then back over a bad line."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from gateway.domain.errors import StoreError
from gateway.runtime.supervision import Supervisor
from simulation.far_ends.central import ErrorKind, Faults
from simulation.far_ends.vehicles import Manners
from simulation.virtual_site.agenda import Vehicle, day
from simulation.virtual_site.disk import CutAt
from simulation.virtual_site.lane_field import LaneField
from simulation.virtual_site.outage.people import CentralPeople, SitePeople
from simulation.virtual_site.outage.plan import OutagePlan
from simulation.virtual_site.outage.technician import Technician
from simulation.virtual_site.outage.wired_sync import WiredSync
from simulation.virtual_site.scene import good_cards
from simulation.virtual_site.script import Script
from simulation.virtual_site.wire import LineState
from simulation.virtual_site.world import World

_DAY = 86_400.0
_GATE_CLOSES_WITHIN = 60.0
_FIRST_PULL_WITHIN = 600.0
_PULLS_AT_LAST = 4
_ROUNDS_OF_A_TECHNICIAN = 20
_UP_WITHIN = 600.0
_ALL_WELL = Faults()


@dataclass(frozen=True, slots=True)
class Scene:
    """The surroundings of every gateway of a run, with people."""

    plan: OutagePlan
    world: World
    site_people: SitePeople
    central_people: CentralPeople
    technician: Technician
    dice: random.Random


class Course(Script):
    """The script of an outage. `counts` are its happenings by name; `unsettled` is why it never came to rest, or ""."""

    def __init__(self, *, scene: Scene, tasks: Supervisor, day_begins: Callable[[int], None]) -> None:
        super().__init__(world=scene.world, tasks=tasks)
        self._scene = scene
        self._day_begins = day_begins
        self.counts: Counter[str] = Counter()
        self.unsettled = ""

    async def run(self) -> None:
        """Run the outage from the first pull to the last."""
        self.busy += 1
        await self._until(self._has_cards, within=_FIRST_PULL_WITHIN, what="the first pull")
        self.busy -= 1
        for number in range(int(-(-self._scene.plan.days // 1))):
            self._day_begins(number)
            await self._day(number)
        await self.wait_until(self._scene.plan.days * _DAY)
        self.busy += 1  # from here on no moment is skipped
        await self._come_back()
        await self._settle()

    async def _day(self, number: int) -> None:
        for at, happening in sorted(self._agenda(number), key=lambda item: item[0]):
            await self.wait_until(at)
            self.tasks.once("happening", self.counted(happening()))

    def _agenda(self, number: int) -> Iterator[tuple[float, Callable[[], Awaitable[None]]]]:
        """List a day's happenings with their times."""
        plan, dice = self._scene.plan, self._scene.dice
        share = min(1.0, plan.days - number)
        begins = self._world.now() if not number else number * _DAY
        for happening in day(plan.site, number):
            if isinstance(happening, Vehicle):
                yield max(begins, happening.at), self._driven(happening)
        for often, what in (
            (plan.cuts, self._cut),
            (plan.restarts, self._restart),
            (plan.files, self._add_file),
            (plan.site_changes, self._change_at_site),
            (plan.central_changes, self._change_at_central),
            (4.0, self._change_line),
        ):
            for _ in range(round(often * share)):
                yield begins + dice.uniform(0.0, _DAY * share), what
        if not number:
            yield begins, self._change_line

    def _driven(self, vehicle: Vehicle) -> Callable[[], Awaitable[None]]:
        async def drive() -> None:
            scene = self._scene
            field, dice, cards = self._world.fields[vehicle.lane], scene.dice, good_cards()
            card = cards[int(vehicle.card * len(cards))].number
            manners = Manners(
                finds_card=dice.uniform(0.4, 3.0), waits_for_gate=dice.uniform(4.0, 9.0), starts=0.5, rolls=0.8
            )
            field.vehicles += 1
            try:
                outcome = await self._drives[vehicle.lane].drive(card, backs_out=vehicle.backs_out, manners=manners)
                self.counts[f"vehicle {outcome}"] += 1
            finally:
                field.vehicles -= 1
            await self._see_gate_close(field)

        return drive

    async def _see_gate_close(self, field: LaneField) -> None:
        """Close a gate by hand that stays open because the power went."""
        until = self._world.now() + _GATE_CLOSES_WITHIN
        while not field.barrier.state(now=self._world.now()).closed_limit:
            if self._world.now() > until and not field.barrier.occupied_since:
                field.barrier.force(opening=0.0, now=self._world.now())
            await asyncio.sleep(1.0)

    async def _cut(self) -> None:
        box, dice = self._world.box, self._scene.dice
        if box.is_up:
            self.counts["power cut"] += 1
            await box.cut(dice.choice(tuple(CutAt)), off=dice.uniform(1.0, 60.0))
        await self._up_again()

    async def _restart(self) -> None:
        box = self._world.box
        if box.is_up:
            self.counts["restart"] += 1
            box.restart(off=self._scene.dice.uniform(1.0, 10.0))
            await asyncio.sleep(1.0)
        await self._up_again()

    async def _up_again(self) -> None:
        await self._until(self._is_up, within=_UP_WITHIN, what="a start")

    async def _change_line(self) -> None:
        """Change the way in which central is unreachable."""
        throw = self._scene.dice.random()
        self._world.central.faults = Faults(error=ErrorKind.PORTAL) if throw < 0.2 else _ALL_WELL
        state = LineState.UP if throw < 0.2 else LineState.SILENT if throw < 0.4 else LineState.REFUSED
        self._world.line.put(state)
        self.counts["line " + ("leads to a portal" if throw < 0.2 else state.name.lower())] += 1

    async def _add_file(self) -> None:
        await self._as_person(self._scene.site_people.add_file, "file added at the site")

    async def _change_at_site(self) -> None:
        await self._as_person(self._scene.site_people.change_card, "card changed at the site")

    async def _change_at_central(self) -> None:
        self._scene.central_people.change_card()
        self.counts["card changed at central"] += 1

    async def _as_person(self, act: Callable[[WiredSync, Callable[[], bool]], Awaitable[None]], what: str) -> None:
        """Do something as a person, who may get no answer because the gateway dies meanwhile."""
        box = self._world.box
        life = box.life
        wired = life.central_sync
        if not life.up or not isinstance(wired, WiredSync):
            return
        self.counts[what] += 1
        try:
            async with asyncio.timeout(120.0):
                await act(wired, lambda: life is box.life and life.up)
        except (StoreError, TimeoutError):
            self.counts[f"{what}: unanswered"] += 1

    async def _come_back(self) -> None:
        """Bring the line back in a bad state and cut the power again and again while traffic goes on."""
        scene, plan = self._scene, self._scene.plan
        self._world.central.faults = Faults(
            chances=plan.chances,
            seed=plan.seed,
            latency_seconds=0.01,
            latency_spread_seconds=0.08,
            slow_body_seconds=3.0,
            half_open_seconds=120.0,
        )
        self._world.line.put(LineState.UP)
        for turn in range(plan.cuts_after):
            await asyncio.sleep(scene.dice.uniform(10.0, 60.0))
            await self._change_at_site()
            await self._change_at_central()
            await self._add_file()
            await self._cut()
            await self._as_person(scene.technician.clear, "a technician looked at what was refused")
            if not turn:
                scene.technician.take_a_camera_away()
        for name, often in self._world.central.happened.items():
            self.counts[f"at central: {name}"] += often

    async def _settle(self) -> None:
        """Wait until the backlog is sent and central's changes are pulled, while central works."""
        scene = self._scene
        await self._until(self._is_idle, within=_UP_WITHIN, what="what people and vehicles did")
        self._world.central.faults = _ALL_WELL
        began = self._world.now()
        for _ in range(_ROUNDS_OF_A_TECHNICIAN):
            await self._until(self._is_drained, within=scene.plan.drains_within, what="the backlog")
            if not await self._refused():
                break
            await self._as_person(scene.technician.clear, "a technician looked at what was refused")
        self.counts += scene.technician.counts
        self.counts["seconds until the backlog was up"] = round(self._world.now() - began)
        for _ in range(_PULLS_AT_LAST):
            self._pulled = self._pull_at()
            await self._until(self._has_pulled, within=1800.0, what="a pull")

    async def _is_up(self) -> bool:
        return self._world.box.is_up

    async def _is_idle(self) -> bool:
        return self.busy <= 1

    async def _has_cards(self) -> bool:
        box, cards = self._world.box, self._world.central.cards
        return box.is_up and await box.life.store.cards.count() >= len(cards)

    async def _is_drained(self) -> bool:
        if not self._world.box.is_up:
            return False
        outbox = self._world.box.life.store.outbox
        books = await outbox.books()
        return not books.waiting or (books.parked > 0 and await outbox.next_due() is None)

    async def _refused(self) -> int:
        return (await self._world.box.life.store.outbox.books()).parked

    def _pull_at(self) -> int:
        wired = self._world.box.life.central_sync
        report = wired.down.report if isinstance(wired, WiredSync) else None
        return report.at.micros if report is not None else 0

    async def _has_pulled(self) -> bool:
        return self._pull_at() > self._pulled

    async def _until(self, what_is: Callable[[], Awaitable[bool]], *, within: float, what: str) -> None:
        end = self._world.now() + within
        while not await what_is():
            if self._world.now() > end:
                self.unsettled = self.unsettled or f"{what} did not come to its end within {within:.0f} s"
                return
            await asyncio.sleep(1.0)
