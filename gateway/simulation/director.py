"""The director: lets what is on the agenda happen, vehicles drive, and a guard set right what stays open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from gateway.demo.vehicles import DrivingLane, Manners, Outcome
from gateway.domain.commands import GateAction
from gateway.domain.errors import StoreError
from gateway.runtime.supervision import Supervisor
from gateway.simulation import observations as seen
from gateway.simulation.agenda import Happening, Trouble, Vehicle, Wish, day
from gateway.simulation.card_list import CardList
from gateway.simulation.lane_field import LaneField
from gateway.simulation.life import Life
from gateway.simulation.troubles import Injector
from gateway.simulation.witness import Witness
from gateway.simulation.world import World

SETTLE = 7.0
"""Seconds after which nothing is under way any more at a lane where nothing happened."""

_AWAKE_BEFORE = 3.0  # so that a driver that polls has read its device again
_CALM_AFTER = 60.0
_GUARD_LOOKS = 15.0
_SLIPS_UNDER = 0.5
_LEFT_OPEN = 40.0
_STOPPED_BEHIND = 0.02
_BOOKS_EVERY = 600.0
_DRAINS_WITHIN = 900.0
_FOREVER = float("inf")


class _Post:
    """The reader of a lane, as drivers of vehicles meet it."""

    def __init__(self, read: Callable[[str], None]) -> None:
        self._read = read

    def present(self, card: str) -> None:
        """Hold a card to a reader."""
        self._read(card)


class Director:
    """Runs a plan in a world. `run` returns when the last day is over and everything has come to rest."""

    def __init__(
        self, *, world: World, tasks: Supervisor, day_begins: Callable[[int], None], enough: Callable[[Witness], bool]
    ) -> None:
        self._world = world
        self._tasks = tasks
        self._day_begins = day_begins
        self._enough = enough
        self._cards = CardList(world=world)
        self._injector = Injector(world=world, cards=self._cards)
        self._disturbed: dict[str, float] = {}
        self._next_at = 0.0
        self._busy = 0
        self._queues = {number: asyncio.Lock() for number in world.fields}
        now = world.clock.monotonic
        self._drives = {
            number: DrivingLane(
                barrier=field.barrier, reader=self._post(number, field), monotonic=now, look_seconds=world.plan.poll
            )
            for number, field in world.fields.items()
        }

    def quiet_until(self) -> float:
        """Instant until which everything is settled; minus infinity while something happens."""
        world, now = self._world, self._world.now()
        if self._busy or self._next_at <= now or not world.box.is_up or now - world.box.up_since < SETTLE:
            return -_FOREVER
        life = world.box.life
        if world.disk.hangs_until + SETTLE > now or life.lanes.recorder.waiting or life.in_step.busy:
            return -_FOREVER
        if not all(field.is_quiet(now, SETTLE) for field in world.fields.values()):
            return -_FOREVER
        return self._next_at - _AWAKE_BEFORE

    async def run(self) -> None:
        """All days, one happening after the other."""
        world = self._world
        self._tasks.once("guard", self._guard())
        self._tasks.once("books", self._look_at_books())
        self._busy += 1
        await self._cards.put_all()
        self._busy -= 1
        number = 0
        while number < world.plan.days:
            self._day_begins(number)
            for happening in day(world.plan, number):
                await self._wait_until(happening.at)
                if self._enough(world.witness):
                    return
                self._begin(happening)
            number += 1
        await self._wait_until(world.plan.seconds)
        await self._come_to_rest()

    async def _wait_until(self, at: float) -> None:
        self._next_at = max(at, self._world.now())
        await asyncio.sleep(at - self._world.now())
        self._next_at = self._world.now()

    def _begin(self, happening: Happening) -> None:
        match happening:
            case Vehicle():
                self._tasks.once("vehicle", self._counted(self._drive(happening)))
            case Wish():
                self._tasks.once("wish", self._counted(self._wish(happening)))
            case Trouble():
                self._tasks.once("trouble", self._injector.inject(happening))

    async def _counted(self, doing: Awaitable[None]) -> None:
        self._busy += 1
        try:
            await doing
        finally:
            self._busy -= 1

    async def _drive(self, vehicle: Vehicle) -> None:
        dice, field = self._world.dice, self._world.fields[vehicle.lane]
        field.vehicles += 1
        try:
            card = self._cards.pick(good=vehicle.good, chance=vehicle.card)
            manners = Manners(
                finds_card=dice.uniform(0.4, 3.0),
                waits_for_gate=dice.uniform(4.0, 9.0),
                starts=dice.uniform(0.2, 1.5),
                rolls=dice.uniform(0.4, 1.2),
            )
            async with self._queues[vehicle.lane]:
                if field.troubles.dropping.until > self._world.now():
                    manners = replace(manners, rolls=dice.uniform(1.0, 5.0))  # so that the loop has time to drop out
                began, life = self._world.now(), self._world.box.life
                before = self._peace(field) if self._is_calm(field, began) and not vehicle.tailgated else None
                outcome = await self._drives[vehicle.lane].drive(card, backs_out=vehicle.backs_out, manners=manners)
                calm = before == self._peace(field) and life.up and life is self._world.box.life
                self._world.see(seen.Drove(self._world.now(), field.lane_id, outcome, began, calm, card))
                if outcome is Outcome.PASSED and dice.random() < _STOPPED_BEHIND:
                    await asyncio.sleep(dice.uniform(1.0, 3.0))
                    await self._wish(Wish(self._world.now(), vehicle.lane, 1.0))
                if vehicle.tailgated and outcome is Outcome.PASSED:
                    await self._tailgate(field)
        finally:
            field.vehicles -= 1

    async def _tailgate(self, field: LaneField) -> None:
        """One more slips through behind, over both loops, while the arm is still up enough."""
        dice, barrier, now = self._world.dice, field.barrier, self._world.now
        await asyncio.sleep(dice.uniform(0.05, 1.5))
        if barrier.state(now=now()).opening < _SLIPS_UNDER:
            return
        self._disturbed[field.lane_id] = began = now()
        barrier.set_arming_loop(occupied=True, now=now())
        await asyncio.sleep(dice.uniform(0.1, 0.6))
        goes = barrier.state(now=now()).opening >= _SLIPS_UNDER
        if goes:
            barrier.set_closing_loop(occupied=True, now=now())
        await asyncio.sleep(dice.uniform(0.2, 1.0))
        barrier.set_arming_loop(occupied=False, now=now())
        if goes:
            await asyncio.sleep(dice.uniform(0.2, 1.0))
            barrier.set_closing_loop(occupied=False, now=now())
            self._world.see(seen.Drove(now(), field.lane_id, "tailgated", began))

    async def _wish(self, wish: Wish) -> None:
        box, field = self._world.box, self._world.fields[wish.lane]
        if not box.is_up:
            return
        action = GateAction.OPEN if wish.action < 0.5 else GateAction.CLOSE if wish.action < 0.85 else GateAction.STOP
        calm = self._is_calm(field, self._world.now())
        self._disturbed[field.lane_id] = self._world.now()
        self._world.see(seen.Asked(self._world.now(), field.lane_id, action, calm))
        if action is GateAction.STOP and field.barrier.state(now=self._world.now()).moving < 0:
            self._tasks.once("beam", self._reach_in(field))
        await self._ask(box.life, field, action)
        if wish.stops_after is not None and action is not GateAction.STOP:
            await asyncio.sleep(wish.stops_after)
            await self._wish(replace(wish, action=1.0, stops_after=None))

    async def _reach_in(self, field: LaneField) -> None:
        """Stop the gate because something is about to come into its way."""
        await asyncio.sleep(self._world.dice.uniform(0.05, 1.0))
        field.barrier.set_photocell(interrupted=True, now=self._world.now())
        await asyncio.sleep(self._world.dice.uniform(1.0, 4.0))
        field.barrier.set_photocell(interrupted=False, now=self._world.now())

    async def _ask(self, life: Life, field: LaneField, action: GateAction) -> None:
        """Wait for an answer as a person would, for a limited time: a gateway that dies gives none."""
        try:
            async with asyncio.timeout(30):
                await life.command(field.gate_id, action)
        except TimeoutError:
            return

    def _post(self, number: int, field: LaneField) -> _Post:
        return _Post(lambda card: self._present(number, field, card))

    def _present(self, number: int, field: LaneField, card: str) -> None:
        box, now = self._world.box, self._world.now()
        if not box.is_up:
            return
        may_pass = self._cards.may_pass(card, lane=number)
        self._world.see(seen.Presented(now, field.lane_id, card, may_pass, self._is_calm(field, now)))
        box.life.present(field.reader_id, card)

    def _is_calm(self, field: LaneField, now: float) -> bool:
        """Return whether the lane itself had no fault lately, so that other faults must not matter to it."""
        disturbed = now - self._disturbed.get(field.lane_id, -_FOREVER)
        quiet = now - field.troubles.last_until()
        state = field.barrier.state(now=now)
        return (
            min(disturbed, quiet, now - self._world.box.up_since) > _CALM_AFTER
            and state.closed_limit
            and not state.moving
        )

    def _peace(self, field: LaneField) -> tuple[float, float]:
        """Return until when the lane was in trouble, and when it was last disturbed; both differ once something was."""
        return field.troubles.last_until(), self._disturbed.get(field.lane_id, -_FOREVER)

    async def _guard(self) -> None:
        """Close a gate that stays open with no vehicle: by the gateway, or else by hand."""
        while True:
            await asyncio.sleep(_GUARD_LOOKS)
            for field in self._world.fields.values():
                if self._is_left_open(field, _LEFT_OPEN) and self._world.box.is_up:
                    self._busy += 1
                    self._disturbed[field.lane_id] = self._world.now()
                    self._world.see(seen.Asked(self._world.now(), field.lane_id, GateAction.CLOSE))
                    await self._ask(self._world.box.life, field, GateAction.CLOSE)
                    await asyncio.sleep(5)
                    if self._is_left_open(field, 4.0):
                        field.barrier.force(opening=0.0, now=self._world.now())
                    self._busy -= 1

    def _is_left_open(self, field: LaneField, seconds: float) -> bool:
        barrier, now = field.barrier, self._world.now()
        return (
            not field.vehicles
            and field.troubles.fire_until < now
            and not barrier.occupied_since
            and now - barrier.touched_at > seconds
            and not barrier.state(now=now).closed_limit
        )

    async def _look_at_books(self) -> None:
        while True:
            await asyncio.sleep(_BOOKS_EVERY)
            await self._see_books(settled=False)

    async def _see_books(self, *, settled: bool) -> None:
        if not self._world.box.is_up:
            return
        try:
            books = await self._world.box.life.store.outbox.books()
        except StoreError:
            return
        self._world.see(seen.BooksSeen(self._world.now(), books, settled))

    async def _come_to_rest(self) -> None:
        """Let every trouble end, central come back, and what waits go up."""
        world = self._world
        while self._busy or not world.box.is_up:  # whoever is busy is many, and each ends by itself
            await self._wait_until(self._world.now() + 5.0)
        await self._wait_until(self._world.now() + 7_200.0)
        world.central.away_until = -_FOREVER
        world.central.troubled = False
        self._busy += 1  # from here on no moment is skipped: the outbox needs them
        await asyncio.sleep(_DRAINS_WITHIN)
        await self._see_books(settled=True)
