"""The director: lets what is on the agenda happen, vehicles drive, and a guard set right what stays open."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

from gateway.demo.vehicles import DrivingLane, Manners, Outcome
from gateway.domain.commands import GateAction
from gateway.domain.credentials import Card, CardStatus
from gateway.domain.errors import StoreError
from gateway.simulation import observations as seen
from gateway.simulation.agenda import Fault, Happening, Trouble, Vehicle, Wish, day
from gateway.simulation.central import CentralFarEnd
from gateway.simulation.disk import CutAt, Disk
from gateway.simulation.lane_field import POINTS, LaneField
from gateway.simulation.life import Life
from gateway.simulation.plan import Plan
from gateway.simulation.power import Box
from gateway.simulation.scene import UNKNOWN_CARD, bad_cards, good_cards
from gateway.simulation.virtual_time import VirtualClock
from gateway.simulation.witness import Witness
from gateway.store import CardRecord
from gateway.supervision import Supervisor

SETTLE = 9.0
"""Seconds after which nothing is under way any more at a lane where nothing happened."""

_CALM_AFTER = 60.0
_GUARD_LOOKS = 15.0
_LEFT_OPEN = 40.0
_BOOKS_EVERY = 600.0
_FOREVER = float("inf")


@dataclass(frozen=True, slots=True)
class World:
    """Everything that is there, whatever the gateway does."""

    plan: Plan
    fields: Mapping[int, LaneField]
    central: CentralFarEnd
    disk: Disk
    clock: VirtualClock
    witness: Witness
    box: Box
    dice: random.Random


class _Post:
    """The reader of a lane, as drivers of vehicles meet it."""

    def __init__(self, read: Callable[[str], None]) -> None:
        self._read = read

    def present(self, card: str) -> None:
        """A card is held to it."""
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
        self._good = {card.number: card for card in good_cards()}
        self._bad = {card.number: card for card in bad_cards()}
        self._suspended: dict[str, bool | None] = {}
        self._wished: dict[str, float] = {}
        self._next_at = 0.0
        self._busy = 0
        now = world.clock.monotonic
        self._drives = {
            number: DrivingLane(
                barrier=field.barrier, reader=self._post(field), monotonic=now, look_seconds=world.plan.poll
            )
            for number, field in world.fields.items()
        }

    def quiet_until(self) -> float:
        """Until when nothing happens that has not been settled; minus infinity while something does."""
        world, now = self._world, self._world.clock.monotonic()
        if self._busy or self._next_at <= now or not world.box.is_up or now - world.box.up_since < SETTLE:
            return -_FOREVER
        if world.disk.hangs_until + SETTLE > now or world.box.life.lanes.recorder.waiting:
            return -_FOREVER
        if not all(field.is_quiet(now, SETTLE) for field in world.fields.values()):
            return -_FOREVER
        return self._next_at

    async def run(self) -> None:
        """All days, one happening after the other."""
        world = self._world
        self._tasks.once("guard", self._guard())
        self._tasks.once("books", self._look_at_books())
        self._busy += 1
        await self._list_cards()
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
        self._next_at = max(at, self._world.clock.monotonic())
        await asyncio.sleep(at - self._world.clock.monotonic())
        self._next_at = self._world.clock.monotonic()

    def _begin(self, happening: Happening) -> None:
        match happening:
            case Vehicle():
                self._tasks.once("vehicle", self._counted(self._drive(happening)))
            case Wish():
                self._tasks.once("wish", self._counted(self._wish(happening)))
            case Trouble():
                self._tasks.once("trouble", self._trouble(happening))

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
            numbers = tuple(self._good if vehicle.good else (*self._bad, UNKNOWN_CARD))
            card = numbers[int(vehicle.card * len(numbers))]
            manners = Manners(
                finds_card=dice.uniform(0.4, 3.0),
                waits_for_gate=dice.uniform(4.0, 12.0),
                starts=dice.uniform(0.2, 1.5),
                rolls=dice.uniform(0.5, 1.5),
            )
            drive = self._drives[vehicle.lane].drive(card, backs_out=vehicle.backs_out, manners=manners)
            outcome = await drive
            self._see(seen.Drove(self._now(), field.lane_id, outcome))
            if vehicle.tailgated and outcome is Outcome.PASSED:
                await self._tailgate(field)
        finally:
            field.vehicles -= 1

    async def _tailgate(self, field: LaneField) -> None:
        """One more slips through behind, while the arm is still up enough."""
        dice = self._world.dice
        await asyncio.sleep(dice.uniform(0.05, 2.5))
        if field.barrier.state(now=self._now()).opening < 0.5:
            return
        field.barrier.set_closing_loop(occupied=True, now=self._now())
        await asyncio.sleep(dice.uniform(0.4, 2.0))
        field.barrier.set_closing_loop(occupied=False, now=self._now())
        self._see(seen.Drove(self._now(), field.lane_id, "tailgated"))

    async def _wish(self, wish: Wish) -> None:
        box, field = self._world.box, self._world.fields[wish.lane]
        if not box.is_up:
            return
        action = GateAction.OPEN if wish.action < 0.5 else GateAction.CLOSE if wish.action < 0.85 else GateAction.STOP
        self._wished[field.lane_id] = self._now()
        self._see(seen.Asked(self._now(), field.lane_id, action))
        await self._ask(box.life, field, action)

    async def _ask(self, life: Life, field: LaneField, action: GateAction) -> None:
        """A person waits for an answer, but not for ever: a gateway that dies gives none."""
        try:
            async with asyncio.timeout(30):
                await life.command(field.gate_id, action)
        except TimeoutError:
            return

    async def _trouble(self, trouble: Trouble) -> None:
        world, now, field = self._world, self._now(), self._world.fields[trouble.lane]
        where, until = field.lane_id, now + trouble.seconds
        detail = f"{trouble.seconds:.1f} s"
        match trouble.kind:
            case Fault.CENTRAL_AWAY:
                where, world.central.away_until = "central", until
            case Fault.DISK_HANGS:
                where, world.disk.hangs_until = "disk", until
            case Fault.CLOCK_STEP | Fault.CARD | Fault.POWER_CUT | Fault.RESTART:
                await self._trouble_of_box(trouble)
                return
            case _:
                detail += self._trouble_of_lane(trouble, field, until)
        self._see(seen.Injected(now, trouble.kind, where, detail))
        field.barrier.touch(now)
        if trouble.kind in {Fault.LOCKED, Fault.BROKEN, Fault.HAND}:
            await asyncio.sleep(trouble.seconds)
            self._let_go(trouble.kind, field)

    def _trouble_of_lane(self, trouble: Trouble, field: LaneField, until: float) -> str:
        troubles, now = field.troubles, self._now()
        point = POINTS[int(trouble.chance * len(POINTS))]
        match trouble.kind:
            case Fault.AWAY:
                troubles.away_until = until
            case Fault.LOSING:
                troubles.losing_until = until
            case Fault.LATE:
                troubles.late_until = until
            case Fault.JAMMED:
                troubles.jammed_until = until
            case Fault.STUCK:
                on = trouble.chance * 10 % 1 < 0.5
                troubles.stuck[point] = (on, until)
                return f", {point} {'on' if on else 'off'}"
            case Fault.CHATTER:
                troubles.chattering[point] = until
                return f", {point}"
            case Fault.HAND:
                troubles.hand_until = until
                field.barrier.set_photocell(interrupted=True, now=now)
            case Fault.LOCKED:
                troubles.hand_until = until
                field.barrier.set_locked(locked=True, now=now)
            case _:
                troubles.hand_until = until
                field.barrier.set_fault(present=True, now=now)
        return ""

    def _let_go(self, kind: Fault, field: LaneField) -> None:
        now = self._now()
        if kind is Fault.HAND:
            field.barrier.set_photocell(interrupted=False, now=now)
        elif kind is Fault.LOCKED:
            field.barrier.set_locked(locked=False, now=now)
        else:
            field.barrier.set_fault(present=False, now=now)
        field.barrier.touch(now)

    async def _trouble_of_box(self, trouble: Trouble) -> None:
        world, kind = self._world, trouble.kind
        detail = f"{trouble.seconds:.1f} s"
        if kind is Fault.CLOCK_STEP:
            offset = (trouble.chance - 0.5) * 2 * 300 * 86_400
            self._see(seen.Injected(self._now(), kind, "box", f"{detail}, off by {offset:.0f} s"))
            await self._step_clock(offset, trouble.seconds)
        elif kind is Fault.CARD:
            await self._suspend(trouble)
        elif not world.box.is_up:
            return
        elif kind is Fault.RESTART:
            self._see(seen.Injected(self._now(), kind, "box", detail))
            world.box.restart(off=trouble.seconds)
        else:
            cuts = tuple(CutAt)
            cut = cuts[int(trouble.chance * len(cuts))]
            self._see(seen.Injected(self._now(), f"{kind} {cut}", "box", detail))
            await world.box.cut(cut, off=trouble.seconds)

    async def _step_clock(self, offset: float, seconds: float) -> None:
        clock = self._world.clock
        if not clock.wall().trusted:
            return
        self._see(seen.ClockJudged(self._now(), trusted=False, true_micros=clock.true_micros()))
        clock.step(offset)
        await asyncio.sleep(seconds)
        clock.synchronise()
        self._see(seen.ClockJudged(self._now(), trusted=True, true_micros=clock.true_micros()))

    async def _suspend(self, trouble: Trouble) -> None:
        """A card is suspended on the list for a while, as a sweep would do it."""
        number = tuple(self._good)[int(trouble.chance * len(self._good))]
        if number in self._suspended or not self._world.box.is_up:
            return
        self._see(seen.Injected(self._now(), trouble.kind, number, f"{trouble.seconds:.1f} s"))
        card = self._good[number]
        await self._put_card(replace(card, status=CardStatus.SUSPENDED), good=False)
        await asyncio.sleep(trouble.seconds)
        await self._put_card(card, good=True)
        del self._suspended[number]

    async def _put_card(self, card: Card, *, good: bool) -> None:
        """Until it is on disk; a gateway that dies meanwhile is asked again when it is back."""
        self._suspended[card.number] = None
        self._see(seen.CardJudged(self._now(), card.card_id, None))
        while True:
            life = self._world.box.life
            try:
                async with asyncio.timeout(20):
                    await life.store.cards.apply(put=(CardRecord(card, "{}"),), now=self._world.clock.true_micros())
            except (StoreError, TimeoutError):
                pass
            else:
                if life.up:
                    break
            await asyncio.sleep(5)
        self._suspended[card.number] = not good
        self._see(seen.CardJudged(self._now(), card.card_id, good))

    async def _list_cards(self) -> None:
        box = self._world.box
        await box.life.came_up.wait()
        cards = (*self._good.values(), *self._bad.values())
        records = [CardRecord(card, "{}") for card in cards]
        await box.life.store.cards.apply(put=records, now=self._world.clock.true_micros())
        for card in cards:
            self._see(seen.CardJudged(0.0, card.card_id, card.number in self._good))

    def _post(self, field: LaneField) -> _Post:
        return _Post(lambda card: self._present(field, card))

    def _present(self, field: LaneField, card: str) -> None:
        box, now = self._world.box, self._now()
        if not box.is_up:
            return
        suspended = self._suspended.get(card, False)
        good = None if suspended is None else card in self._good and not suspended
        self._see(seen.Presented(now, field.lane_id, card, good, self._is_calm(field, now)))
        box.life.present(field.reader_id, card)

    def _is_calm(self, field: LaneField, now: float) -> bool:
        """Nothing of the lane's own was wrong lately: whatever else is wrong must not matter to it."""
        wished = now - self._wished.get(field.lane_id, -_FOREVER)
        quiet = now - field.troubles.last_until()
        state = field.barrier.state(now=now)
        return (
            min(wished, quiet, now - self._world.box.up_since) > _CALM_AFTER and state.closed_limit and not state.moving
        )

    async def _guard(self) -> None:
        """A gate that stays open with nobody there is closed: by the gateway, or else by hand."""
        while True:
            await asyncio.sleep(_GUARD_LOOKS)
            for field in self._world.fields.values():
                if self._is_left_open(field, _LEFT_OPEN) and self._world.box.is_up:
                    self._busy += 1
                    self._wished[field.lane_id] = self._now()
                    self._see(seen.Asked(self._now(), field.lane_id, GateAction.CLOSE))
                    await self._ask(self._world.box.life, field, GateAction.CLOSE)
                    await asyncio.sleep(5)
                    if self._is_left_open(field, 4.0):
                        field.barrier.force(opening=0.0, now=self._now())
                    self._busy -= 1

    def _is_left_open(self, field: LaneField, seconds: float) -> bool:
        barrier, now = field.barrier, self._now()
        return (
            not field.vehicles
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
        self._see(seen.BooksSeen(self._now(), books, settled))

    async def _come_to_rest(self) -> None:
        """Let every trouble end, central come back, and what waits go up."""
        world = self._world
        while self._busy or not world.box.is_up:  # whoever is busy is many, and each ends by itself
            await self._wait_until(self._now() + 5.0)
        await self._wait_until(self._now() + 7_200.0)
        world.central.away_until = -_FOREVER
        world.central.troubled = False
        for _ in range(30):
            await self._wait_until(self._now() + 60.0)
        await self._see_books(settled=True)

    def _now(self) -> float:
        return self._world.clock.monotonic()

    def _see(self, observation: seen.Observation) -> None:
        self._world.witness.see(observation)
