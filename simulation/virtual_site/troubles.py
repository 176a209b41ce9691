"""The begin and end of faults: on the line to a gate, at its inputs, in the box, at central."""

from __future__ import annotations

import asyncio

from simulation.virtual_site import observations as seen
from simulation.virtual_site.agenda import Fault, Trouble
from simulation.virtual_site.card_list import CardList
from simulation.virtual_site.disk import CutAt
from simulation.virtual_site.lane_field import POINTS, Dropping, LaneField, Troubles
from simulation.virtual_site.wire import LineState
from simulation.virtual_site.world import World

_OFF_BY_AT_MOST = 300 * 86_400.0
_SILENT = 0.3
_OF_THE_BOX = frozenset({Fault.CLOCK_STEP, Fault.CARD, Fault.POWER_CUT, Fault.RESTART})
_OF_MODULES = frozenset({Fault.MODULE_AWAY, Fault.MODULE_SILENT, Fault.FIRE})
_OF_WAYS = _OF_MODULES | {Fault.AWAY, Fault.LOSING, Fault.LATE, Fault.JAMMED, Fault.STOPS, Fault.CUT, Fault.DEAF}
_ENDED_BY_HAND = frozenset({Fault.LOCKED, Fault.BROKEN, Fault.HAND})


class Injector:
    """The injector of faults. Each call of `inject` injects one, and returns when the fault is over."""

    def __init__(self, *, world: World, cards: CardList) -> None:
        self._world = world
        self._cards = cards

    async def inject(self, trouble: Trouble) -> None:
        """Begin a fault, and end it."""
        world, now, field = self._world, self._world.now(), self._world.fields[trouble.lane]
        if trouble.kind in _OF_MODULES and not field.modules:
            return
        where, until = field.lane_id, now + trouble.seconds
        detail = f"{trouble.seconds:.1f} s"
        match trouble.kind:
            case Fault.CENTRAL_AWAY:
                where = "central"
                world.line.put(LineState.SILENT if trouble.chance < _SILENT else LineState.REFUSED)
            case Fault.DISK_HANGS:
                where, world.disk.hangs_until = "disk", until
            case kind if kind in _OF_THE_BOX:
                await self._box(trouble)
                return
            case _:
                detail += self._lane(trouble, field, until)
        self._world.see(seen.Injected(now, trouble.kind, where, detail))
        field.barrier.touch(now)
        if trouble.kind in {Fault.FIRE, Fault.CUT}:
            await asyncio.sleep(trouble.seconds)
            field.barrier.touch(self._world.now())
        if trouble.kind is Fault.CENTRAL_AWAY:
            await asyncio.sleep(trouble.seconds)
            world.line.put(LineState.UP)
        if trouble.kind in _ENDED_BY_HAND:
            await asyncio.sleep(trouble.seconds)
            self._let_go(trouble.kind, field)

    def _lane(self, trouble: Trouble, field: LaneField, until: float) -> str:
        troubles, now = field.troubles, self._world.now()
        point = POINTS[int(trouble.chance * len(POINTS))]
        match trouble.kind:
            case kind if kind in _OF_WAYS:
                modules = tuple(field.modules) or (0,)
                self._way(kind, troubles, until, module=modules[int(trouble.chance * len(modules))])
                if kind is Fault.CUT:
                    troubles.next_cut = trouble.seconds
            case Fault.STUCK:
                on = trouble.chance * 10 % 1 < 0.5
                troubles.stuck[point] = (on, until)
                return f", {point} {'on' if on else 'off'}"
            case Fault.CHATTER:
                troubles.chattering[point] = until
                return f", {point}"
            case Fault.DROPOUT:
                bounces = trouble.chance < 0.3
                free = 0.1 + 0.2 * trouble.chance if bounces else 0.1 + 0.7 * trouble.chance
                troubles.dropping = Dropping(until=until, free=free, held=0.6 if bounces else 2.0 + trouble.chance)
                return f", free for {free:.2f} s at a time"
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

    def _way(self, kind: Fault, troubles: Troubles, until: float, *, module: int) -> None:
        match kind:
            case Fault.AWAY:
                troubles.away_until = until
            case Fault.LOSING:
                troubles.losing_until = until
            case Fault.LATE:
                troubles.late_until = until
            case Fault.JAMMED:
                troubles.jammed_until = until
            case Fault.STOPS:
                troubles.stops_until = until
            case Fault.CUT:
                troubles.cut_until = until
            case Fault.DEAF:
                troubles.deaf_until = until
            case Fault.MODULE_AWAY:
                troubles.modules_away[module] = until
            case Fault.MODULE_SILENT:
                troubles.modules_silent[module] = until
            case _:
                troubles.fire_until = until

    def _let_go(self, kind: Fault, field: LaneField) -> None:
        now = self._world.now()
        if kind is Fault.HAND:
            field.barrier.set_photocell(interrupted=False, now=now)
        elif kind is Fault.LOCKED:
            field.barrier.set_locked(locked=False, now=now)
        else:
            field.barrier.set_fault(present=False, now=now)
        field.barrier.touch(now)

    async def _box(self, trouble: Trouble) -> None:
        world, kind = self._world, trouble.kind
        detail = f"{trouble.seconds:.1f} s"
        if kind is Fault.CLOCK_STEP:
            offset = (trouble.chance - 0.5) * 2 * _OFF_BY_AT_MOST
            self._world.see(seen.Injected(self._world.now(), kind, "box", f"{detail}, off by {offset:.0f} s"))
            await self._step_clock(offset, trouble.seconds)
        elif kind is Fault.CARD:
            await self._cards.suspend(chance=trouble.chance, seconds=trouble.seconds)
        elif not world.box.is_up:
            return
        elif kind is Fault.RESTART:
            self._world.see(seen.Injected(self._world.now(), kind, "box", detail))
            world.box.restart(off=trouble.seconds)
        else:
            cuts = tuple(CutAt)
            cut = cuts[int(trouble.chance * len(cuts))]
            self._world.see(seen.Injected(self._world.now(), f"{kind} {cut}", "box", detail))
            await world.box.cut(cut, off=trouble.seconds)

    async def _step_clock(self, offset: float, seconds: float) -> None:
        clock = self._world.clock
        if not clock.wall().trusted:
            return
        self._world.see(seen.ClockJudged(self._world.now(), trusted=False, true_micros=clock.true_micros()))
        clock.step(offset)
        await asyncio.sleep(seconds)
        clock.synchronise()
        self._world.see(seen.ClockJudged(self._world.now(), trusted=True, true_micros=clock.true_micros()))
