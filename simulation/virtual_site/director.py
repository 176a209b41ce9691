"""The director: it runs the agenda, drives the vehicles, and has a guard close gates that stay open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from gateway.domain.commands import GateAction
from gateway.domain.errors import StoreError
from gateway.runtime.supervision import Supervisor
from gateway.store import Books
from simulation.far_ends.central import Faults
from simulation.far_ends.vehicles import Manners, Outcome
from simulation.virtual_site import observations as seen
from simulation.virtual_site.agenda import Happening, Trouble, Vehicle, Wish, day
from simulation.virtual_site.card_list import CardList
from simulation.virtual_site.lane_field import LaneField
from simulation.virtual_site.life import Life
from simulation.virtual_site.script import FOREVER, Script
from simulation.virtual_site.troubles import Injector
from simulation.virtual_site.wire import LineState
from simulation.virtual_site.witness import Witness
from simulation.virtual_site.world import World

_AWAKE_BEFORE = 3.0  # so that polling drivers have read their devices again when something happens
_CALM_AFTER = 60.0
_GUARD_LOOKS = 15.0
_SLIPS_UNDER = 0.5
_LEFT_OPEN = 40.0
_CLOSED_IN_VAIN = 0.4
_TRUSTED_AFTER = 3.2  # a loop that was not polled for a while is believed after 3 s
_STOPPED_BEHIND = 0.02
_BOOKS_EVERY = 600.0
_DRAINS_WITHIN = 900


class Director(Script):
    """The script of a plan. `run` returns when the last day is over and everything has come to rest."""

    def __init__(
        self, *, world: World, tasks: Supervisor, day_begins: Callable[[int], None], enough: Callable[[Witness], bool]
    ) -> None:
        super().__init__(world=world, tasks=tasks, awake_before=_AWAKE_BEFORE)
        self._day_begins = day_begins
        self._enough = enough
        self._cards = CardList(world=world)
        self._injector = Injector(world=world, cards=self._cards)
        self._disturbed: dict[str, float] = {}
        self._queues = {number: asyncio.Lock() for number in world.fields}

    async def run(self) -> None:
        """Run the happenings of all days, in order."""
        world = self._world
        self.tasks.once("guard", self._guard())
        self.tasks.once("books", self._look_at_books())
        self.busy += 1
        await self._cards.put_all()
        self.busy -= 1
        number = 0
        while number < world.plan.days:
            self._day_begins(number)
            for happening in day(world.plan, number):
                await self.wait_until(happening.at)
                if self._enough(world.witness):
                    return
                self._begin(happening)
            number += 1
        await self.wait_until(world.plan.seconds)
        await self._come_to_rest()

    def _begin(self, happening: Happening) -> None:
        match happening:
            case Vehicle():
                self.tasks.once("vehicle", self.counted(self._drive(happening)))
            case Wish():
                self.tasks.once("wish", self.counted(self._wish(happening)))
            case Trouble():
                self.tasks.once("trouble", self._injector.inject(happening))

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
                in_vain = before is not None and dice.random() < _CLOSED_IN_VAIN
                if in_vain:
                    manners = replace(manners, starts=_TRUSTED_AFTER + dice.uniform(0.2, 1.5))
                    self.tasks.once("close in vain", self._close_in_vain(field))
                outcome = await self._drives[vehicle.lane].drive(card, backs_out=vehicle.backs_out, manners=manners)
                calm = before == self._peace(field) and life.up and life is self._world.box.life
                self._world.see(seen.Drove(self._world.now(), field.lane_id, outcome, began, calm, card))
                if in_vain:
                    self._disturbed[field.lane_id] = self._world.now()
                if outcome is Outcome.PASSED and dice.random() < _STOPPED_BEHIND:
                    await asyncio.sleep(dice.uniform(1.0, 3.0))
                    await self._wish(Wish(self._world.now(), vehicle.lane, 1.0))
                if vehicle.tailgated and outcome is Outcome.PASSED:
                    await self._tailgate(field)
        finally:
            field.vehicles -= 1

    async def _tailgate(self, field: LaneField) -> None:
        """Send one more vehicle through right behind the first, over both loops, while the arm is still up enough."""
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
            self.tasks.once("beam", self._reach_in(field))
        await self._ask(box.life, field, action)
        if wish.stops_after is not None and action is not GateAction.STOP:
            await asyncio.sleep(wish.stops_after)
            await self._wish(replace(wish, action=1.0, stops_after=None))

    async def _close_in_vain(self, field: LaneField) -> None:
        """Close the gate that has just opened for a vehicle, on a line that is not free before the vehicle drives on.

        Such a close is usually refused, and changes nothing then: it is no trouble for the vehicle's passage.
        """
        dice, now = self._world.dice, self._world.now
        for _ in range(int(_LEFT_OPEN / self._world.plan.poll)):
            await asyncio.sleep(self._world.plan.poll)
            if field.barrier.state(now=now()).opening == 1.0:
                break
        await asyncio.sleep(_TRUSTED_AFTER - self._world.plan.poll)
        if self._world.box.is_up:
            field.troubles.taken_until = now() + dice.uniform(1.5, 7.0)
            self._world.see(seen.Asked(now(), field.lane_id, GateAction.CLOSE))
            await self._ask(self._world.box.life, field, GateAction.CLOSE)

    async def _reach_in(self, field: LaneField) -> None:
        """Stop the gate, as a person does who sees that something is about to come into its way."""
        await asyncio.sleep(self._world.dice.uniform(0.05, 1.0))
        field.barrier.set_photocell(interrupted=True, now=self._world.now())
        await asyncio.sleep(self._world.dice.uniform(1.0, 4.0))
        field.barrier.set_photocell(interrupted=False, now=self._world.now())

    async def _ask(self, life: Life, field: LaneField, action: GateAction) -> None:
        """Give a command and wait for the answer for a limited time, since a gateway that dies gives none."""
        try:
            async with asyncio.timeout(30):
                await life.command(field.gate_id, action)
        except TimeoutError:
            return

    def _present(self, lane: int, card: str) -> None:
        now, field = self._world.now(), self._world.fields[lane]
        if self._world.box.is_up:
            may_pass = self._cards.may_pass(card, lane=lane)
            self._world.see(seen.Presented(now, field.lane_id, card, may_pass, self._is_calm(field, now)))
        super()._present(lane, card)

    def _is_calm(self, field: LaneField, now: float) -> bool:
        """Return whether nothing was wrong at this lane recently. Faults of other lanes do not count."""
        disturbed = now - self._disturbed.get(field.lane_id, -FOREVER)
        quiet = now - field.troubles.last_until()
        state = field.barrier.state(now=now)
        return (
            min(disturbed, quiet, now - self._world.box.up_since) > _CALM_AFTER
            and state.closed_limit
            and not state.moving
        )

    def _peace(self, field: LaneField) -> tuple[float, float]:
        """Return when the lane's last trouble ended and when it was last disturbed; a new trouble changes either."""
        return field.troubles.last_until(), self._disturbed.get(field.lane_id, -FOREVER)

    async def _guard(self) -> None:
        """Close a gate that stays open with no vehicle: by the gateway, or else by hand."""
        while True:
            await asyncio.sleep(_GUARD_LOOKS)
            for field in self._world.fields.values():
                if self._is_left_open(field, _LEFT_OPEN) and self._world.box.is_up:
                    self.busy += 1
                    self._disturbed[field.lane_id] = self._world.now()
                    self._world.see(seen.Asked(self._world.now(), field.lane_id, GateAction.CLOSE))
                    await self._ask(self._world.box.life, field, GateAction.CLOSE)
                    await asyncio.sleep(5)
                    if self._is_left_open(field, 4.0):
                        field.barrier.force(opening=0.0, now=self._world.now())
                    self.busy -= 1

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
        books = await self._books() if self._world.box.is_up else None
        if books is not None:
            self._world.see(seen.BooksSeen(self._world.now(), books, settled))

    async def _books(self) -> Books | None:
        """Return the counts of the outbox; None while the store cannot be read."""
        try:
            return await self._world.box.life.store.outbox.books()
        except StoreError:
            return None

    async def _come_to_rest(self) -> None:
        """Wait until every trouble has ended, central is back, and the backlog is sent."""
        world = self._world
        while self.busy or not world.box.is_up:  # many may be busy, and each ends by itself
            await self.wait_until(self._world.now() + 5.0)
        await self.wait_until(self._world.now() + 7_200.0)
        world.line.put(LineState.UP)
        world.central.faults = Faults()
        self.busy += 1  # from here on no moment is skipped: the outbox needs them
        await asyncio.sleep(_CALM_AFTER)
        for _ in range(_DRAINS_WITHIN):
            books = await self._books()
            if books is not None and books.waiting <= books.parked:
                break
            await asyncio.sleep(1.0)
        await self._see_books(settled=True)
