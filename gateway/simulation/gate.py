"""A gate's driver with a simulated line behind it. It keeps the promises of `drivers.contract`, whatever happens."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from enum import Enum, auto

from drivers.contract import (
    DeadlinePassed,
    DeviceConnected,
    DeviceFault,
    DeviceLost,
    Forbidden,
    GateMoved,
    GatePosition,
    LineDown,
    LinkError,
    NotPermitted,
    PointChanged,
    PointState,
    Reports,
)
from gateway.demo.barrier import BarrierState, Wish
from gateway.domain.commands import GateAction
from gateway.simulation import observations as seen
from gateway.simulation.lane_field import POSITION, LaneField
from gateway.simulation.witness import Witness

_REFRESH = 1.85
_LOST_AFTER = 3
_NO_ANSWER = 0.4
_EARLY = 0.1
_ONE_EXCHANGE = 0.5  # a bus looks at what waits for it between two exchanges
_CHATTER_POLL = 0.15
_LOSS = 0.4


class _Fate(Enum):
    """Fate of a command on the line."""

    FINE = auto()
    REQUEST_LOST = auto()
    REPLY_LOST = auto()
    REPLY_LATE = auto()
    REFUSED = auto()
    IGNORED = auto()


class SimulatedGate:
    """Fulfils `drivers.contract.Gate`. One per life of the gateway; the field behind it stays.

    It looks at the gate when something changes there, every `poll` seconds while it moves, and else at least each 2 s.
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
        """`rest`: seconds after which a lane where nothing happens is not looked at; what was read goes stale then.

        `alive`: whether this life of the gateway still goes on; a dead one's words reach nobody.
        """
        self._field = field
        field.read_at.clear()
        self._witness = witness
        self._monotonic = monotonic
        self._poll = poll
        self._rest = rest
        self._dice = dice
        self._alive = alive
        self._woken = asyncio.Event()
        self._online: bool | None = None
        self._misses = 0
        self._told: dict[str, PointState] = {}
        self._told_position: GatePosition | None = None
        self._refreshed_at = float("-inf")

    @property
    def device_id(self) -> int:
        """See `Driver`."""
        return self._field.gate_id

    async def run(self, reports: Reports) -> None:
        """See `Driver`."""
        self._field.barrier.watchers[self.device_id] = self._woken.set
        while True:
            await asyncio.sleep(self._dice.uniform(0.02, 0.08))
            self._woken.clear()
            if self._answers():
                self._look(reports)
            else:
                await asyncio.sleep(_NO_ANSWER)
                self._miss(reports)
            await self._pause()

    async def open(self, *, deadline: float, forbidden: Forbidden | None = None) -> None:
        """See `Gate`."""
        await self._command(GateAction.OPEN, deadline, forbidden)

    async def close(self, *, deadline: float, forbidden: Forbidden) -> None:
        """See `Gate`."""
        await self._command(GateAction.CLOSE, deadline, forbidden)

    async def stop(self, *, deadline: float, forbidden: Forbidden | None = None) -> None:
        """See `Gate`."""
        await self._command(GateAction.STOP, deadline, forbidden)

    async def wait_for_line(self, deadline: float) -> None:
        """Wait until the line is free. Raises DeadlinePassed when that is too late."""
        jammed = self._field.troubles.jammed_until > self._monotonic()
        busy = self._dice.uniform(0.0, 7.0) if jammed else self._dice.uniform(0.0, 0.04)
        await asyncio.sleep(min(busy, max(0.0, deadline - self._monotonic()) + _ONE_EXCHANGE))
        if self._monotonic() >= deadline:
            raise DeadlinePassed("the line was not free before the command's deadline")

    async def _command(self, action: GateAction, deadline: float, forbidden: Forbidden | None) -> None:
        self._see(seen.Called(self._monotonic(), self._field.lane_id, action))
        if self._online is not True:
            raise LineDown("the device is away")
        await self.wait_for_line(deadline)
        if forbidden is not None and (reason := forbidden()):
            raise NotPermitted(reason)
        if not self._alive():
            raise LinkError("the power is off")
        fate = self._fate(action)
        self._see(self._writing(action, deadline))
        taken = False
        try:
            await self._carry(action, fate)
            taken = True
        finally:
            self._see(seen.Answered(self._monotonic(), self._field.lane_id, action, taken))

    async def _carry(self, action: GateAction, fate: _Fate) -> None:
        if fate is _Fate.REFUSED:
            await asyncio.sleep(self._dice.uniform(0.005, 0.03))
            raise DeviceFault("the controller refuses")
        if fate not in {_Fate.REQUEST_LOST, _Fate.IGNORED}:
            self._field.barrier.command(Wish(action.value), now=self._monotonic())
        if fate in {_Fate.REQUEST_LOST, _Fate.REPLY_LOST}:
            await asyncio.sleep(_NO_ANSWER)
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

    def _look(self, reports: Reports) -> None:
        now, gate = self._monotonic(), self.device_id
        self._misses = 0
        if self._online is not True:
            self._online = True
            self._told.clear()
            self._told_position = None
            self._see(seen.GateAway(now, self._field.lane_id, away=False, points=self._field.gate_points))
            reports(DeviceConnected(gate, now))
        state, inputs = self._field.shown(now, self._field.gate_points)
        self._field.read_at.update(dict.fromkeys(inputs, now))
        refresh = now - self._refreshed_at >= _REFRESH - _EARLY
        if refresh:
            self._refreshed_at = now
            self._see(seen.Refreshed(now, self._field.lane_id, (*inputs, POSITION)), taped=False)
        for point, on in inputs.items():
            shown = PointState.ON if on else PointState.OFF
            changed = self._told.get(point) is not shown
            if changed or refresh:
                self._told[point] = shown
                if changed:
                    self._see(seen.PointReported(now, self._field.lane_id, point, shown))
                reports(PointChanged(gate, point, shown, now))
        position = _position(state)
        changed = position is not self._told_position
        if changed or refresh:
            self._told_position = position
            if changed:
                self._see(seen.PositionReported(now, self._field.lane_id, position))
            reports(GateMoved(gate, position, now))

    def _miss(self, reports: Reports) -> None:
        self._misses += 1
        if self._misses >= _LOST_AFTER and self._online is not False:
            self._online = False
            now = self._monotonic()
            self._see(seen.GateAway(now, self._field.lane_id, away=True, points=self._field.gate_points))
            reports(DeviceLost(self.device_id, "no answer", now))

    async def _pause(self) -> None:
        """Wait until something changes there, or until it is time to look again."""
        now = self._monotonic()
        wait = self._refreshed_at + _REFRESH - now
        troubles = self._field.troubles
        if any(until > now for until in troubles.chattering.values()) or self._field.drops_out(now):
            wait = _CHATTER_POLL
        elif self._misses or self._field.barrier.state(now=now).moving:
            wait = self._poll
        if self._field.is_quiet(now, self._rest):
            await self._woken.wait()
        elif wait > 0:
            alarm = asyncio.get_running_loop().call_later(wait, self._woken.set)
            await self._woken.wait()
            alarm.cancel()

    def _see(self, observation: seen.Observation, *, taped: bool = True) -> None:
        if self._alive():
            self._witness.see(observation, taped=taped)


def _position(state: BarrierState) -> GatePosition:
    if state.moving:
        return GatePosition.OPENING if state.moving > 0 else GatePosition.CLOSING
    if state.closed_limit:
        return GatePosition.CLOSED
    return GatePosition.OPEN if state.open_limit else GatePosition.STOPPED
