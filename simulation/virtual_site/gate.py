"""A gate's driver with a simulated line behind it. It keeps the promises of `drivers.contract`, whatever happens."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from enum import Enum, auto

from drivers.contract import (
    DeadlinePassed,
    DeviceFault,
    Forbidden,
    GateMoved,
    GatePosition,
    LineDown,
    LinkError,
    NotPermitted,
    Reports,
)
from gateway.domain.commands import GateAction
from simulation.far_ends.barrier import BarrierState, Wish
from simulation.virtual_site import observations as seen
from simulation.virtual_site.inputs import CHATTER_POLL, NO_ANSWER, PolledDevice
from simulation.virtual_site.lane_field import POSITION, LaneField
from simulation.virtual_site.witness import Witness

_ONE_EXCHANGE = 0.5  # a bus checks its queue between two exchanges
_LOSS = 0.4


class _Fate(Enum):
    """The fate of a command on the line."""

    FINE = auto()
    REQUEST_LOST = auto()
    REPLY_LOST = auto()
    REPLY_LATE = auto()
    REFUSED = auto()
    IGNORED = auto()


class SimulatedGate(PolledDevice):
    """A driver that fulfils `drivers.contract.Gate`. Each life of the gateway has a new one; the field stays the same.

    It polls the gate on each change, every `poll` seconds while the gate moves, and otherwise at least every 2 s.
    """

    def __init__(
        self,
        *,
        field: LaneField,
        witness: Witness,
        monotonic: Callable[[], float],
        poll: float,
        rest: float,
        dice: random.Random,
        alive: Callable[[], bool],
    ) -> None:
        """Make the driver of one life.

        `rest` is the seconds after which a quiet lane is no longer polled, so that its readings go stale. `alive`
        returns whether this life of the gateway goes on; reports of a dead one are dropped.
        """
        super().__init__(
            field=field,
            points=field.gate_points,
            witness=witness,
            monotonic=monotonic,
            rest=rest,
            dice=dice,
            alive=alive,
        )
        field.read_at.clear()
        self._poll_seconds = poll

    @property
    def device_id(self) -> int:
        """The device's id in the site file."""
        return self._field.gate_id

    async def open(self, *, deadline: float, forbidden: Forbidden | None = None) -> None:
        """Command the gate to open. Errors are those of `drivers.contract.Gate`."""
        await self._command(GateAction.OPEN, deadline, forbidden)

    async def close(self, *, deadline: float, forbidden: Forbidden) -> None:
        """Command the gate to close. Errors are those of `drivers.contract.Gate`."""
        await self._command(GateAction.CLOSE, deadline, forbidden)

    async def stop(self, *, deadline: float, forbidden: Forbidden | None = None) -> None:
        """Command the gate to stop. Errors are those of `drivers.contract.Gate`."""
        await self._command(GateAction.STOP, deadline, forbidden)

    async def wait_for_line(self, deadline: float) -> None:
        """Wait until the line is free. Raises DeadlinePassed when that is too late."""
        jammed = self._field.troubles.jammed_until > self._monotonic()
        busy = self._dice.uniform(0.0, 7.0) if jammed else self._dice.uniform(0.0, 0.04)
        busy = max(busy, self._field.troubles.taken_until - self._monotonic())
        await asyncio.sleep(min(busy, max(0.0, deadline - self._monotonic()) + _ONE_EXCHANGE))
        if self._monotonic() >= deadline:
            raise DeadlinePassed("the line was not free before the command's deadline")

    async def _command(self, action: GateAction, deadline: float, forbidden: Forbidden | None) -> None:
        self._see(seen.Called(self._monotonic(), self._field.lane_id, action))
        acknowledged, kept_by_line = False, False
        try:
            await self._write(action, deadline, forbidden)
            acknowledged = True
        except (DeadlinePassed, LineDown):
            kept_by_line = True
            raise
        finally:
            self._see(seen.Answered(self._monotonic(), self._field.lane_id, action, acknowledged, kept_by_line))

    async def _write(self, action: GateAction, deadline: float, forbidden: Forbidden | None) -> None:
        if self._online is not True:
            raise LineDown("the device is away")
        await self.wait_for_line(deadline)
        if forbidden is not None and (reason := forbidden()):
            raise NotPermitted(reason)
        if not self._alive():
            raise LinkError("the power is off")
        fate = self._fate(action)
        self._see(self._writing(action, deadline))
        await self._carry(action, fate)

    async def _carry(self, action: GateAction, fate: _Fate) -> None:
        if fate is _Fate.REFUSED:
            await asyncio.sleep(self._dice.uniform(0.005, 0.03))
            raise DeviceFault("the controller refuses")
        if fate not in {_Fate.REQUEST_LOST, _Fate.IGNORED}:
            self._field.barrier.command(Wish(action.value), now=self._monotonic())
        if fate in {_Fate.REQUEST_LOST, _Fate.REPLY_LOST}:
            await asyncio.sleep(NO_ANSWER)
            raise LinkError("no answer")
        late = fate is _Fate.REPLY_LATE
        await asyncio.sleep(self._dice.uniform(0.3, 3.0) if late else self._dice.uniform(0.005, 0.03))

    def _fate(self, action: GateAction) -> _Fate:
        now, troubles, chance = self._monotonic(), self._field.troubles, self._dice.random()
        if max(troubles.away_until, troubles.cut_until) > now:
            return _Fate.REQUEST_LOST
        if action is GateAction.STOP and troubles.stops_until > now:
            return self._dice.choice([fate for fate in _Fate if fate is not _Fate.FINE])
        if troubles.losing_until > now and chance < _LOSS:
            return _Fate.REQUEST_LOST if chance < _LOSS / 2 else _Fate.REPLY_LOST
        return _Fate.REPLY_LATE if troubles.late_until > now else _Fate.FINE

    def _writing(self, action: GateAction, deadline: float) -> seen.Wrote:
        known, hidden = self._field.known_in_the_way()
        return seen.Wrote(self._monotonic(), self._field.lane_id, action, deadline, in_the_way=known, hidden=hidden)

    def _answers(self) -> bool:
        now, troubles = self._monotonic(), self._field.troubles
        if max(troubles.away_until, troubles.cut_until) > now:
            return False
        return not (troubles.losing_until > now and self._dice.random() < _LOSS)

    async def _poll(self, reports: Reports) -> None:
        if not self._answers():
            await asyncio.sleep(NO_ANSWER)
            self._miss(reports)
            return
        now = self._monotonic()
        state, refresh = self._look(reports, also=(POSITION,))
        position = _position(state)
        if self._changed(POSITION, position):
            self._see(seen.PositionReported(now, self._field.lane_id, position))
        elif not refresh:
            return
        reports(GateMoved(self.device_id, position, now))

    def _next_poll(self, now: float) -> float | None:
        troubles = self._field.troubles
        if any(until > now for until in troubles.chattering.values()) or self._field.drops_out(now):
            return CHATTER_POLL
        return self._poll_seconds if self._misses or self._field.barrier.state(now=now).moving else None

    def _away(self, now: float, *, away: bool) -> seen.Observation:
        return seen.GateAway(now, self._field.lane_id, away=away, points=self._points)


def _position(state: BarrierState) -> GatePosition:
    if state.moving:
        return GatePosition.OPENING if state.moving > 0 else GatePosition.CLOSING
    if state.closed_limit:
        return GatePosition.CLOSED
    return GatePosition.OPEN if state.open_limit else GatePosition.STOPPED
