"""Driver of a simulated input module beside the gate."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from drivers.contract import DeviceConnected, DeviceLost, PointChanged, PointState, Reports
from gateway.simulation import observations as seen
from gateway.simulation.lane_field import LaneField
from gateway.simulation.witness import Witness

_REFRESH = 1.85
_LOST_AFTER = 3
_NO_ANSWER = 0.4
_MISSED_POLL = 0.15
_CHATTER_POLL = 0.15
_REST = 7.0


class SimulatedInputs:
    """Fulfils `drivers.contract.Driver`. One per life of the gateway; the field behind it stays.

    A module without power is reported as lost. One that is silent is not: its task hangs, so that what was read of it
    goes stale, which the lane must notice by itself.
    """

    def __init__(
        self,
        *,
        field: LaneField,
        module_id: int,
        witness: Witness,
        monotonic: Callable[[], float],
        dice: random.Random,
        alive: Callable[[], bool],
    ) -> None:
        """`alive`: whether this life of the gateway still goes on; a dead one's reports reach nobody."""
        self._field = field
        self._module_id = module_id
        self._points = field.modules[module_id]
        self._witness = witness
        self._monotonic = monotonic
        self._dice = dice
        self._alive = alive
        self._woken = asyncio.Event()
        self._online: bool | None = None
        self._misses = 0
        self._told: dict[str, PointState] = {}
        self._refreshed_at = float("-inf")

    @property
    def device_id(self) -> int:
        """See `Driver`."""
        return self._module_id

    async def run(self, reports: Reports) -> None:
        """See `Driver`."""
        self._field.barrier.watchers[self._module_id] = self._woken.set
        troubles = self._field.troubles
        while True:
            await asyncio.sleep(self._dice.uniform(0.02, 0.08))
            self._woken.clear()
            now = self._monotonic()
            if (silent_until := troubles.modules_silent.get(self._module_id, now)) > now:
                await asyncio.sleep(silent_until - now)
            elif troubles.modules_away.get(self._module_id, now) > now:
                await asyncio.sleep(_NO_ANSWER)
                self._miss(reports)
            else:
                self._look(reports)
            await self._pause()

    def _look(self, reports: Reports) -> None:
        now, lane = self._monotonic(), self._field.lane_id
        self._misses = 0
        if self._online is not True:
            self._online = True
            self._told.clear()
            self._see(seen.ModuleAway(now, lane, away=False, points=self._points))
            reports(DeviceConnected(self._module_id, now))
        _, inputs = self._field.shown(now, self._points)
        self._field.read_at.update(dict.fromkeys(inputs, now))
        refresh = now - self._refreshed_at >= _REFRESH - 0.1
        if refresh:
            self._refreshed_at = now
            self._see(seen.Refreshed(now, lane, tuple(inputs)), taped=False)
        for point, on in inputs.items():
            shown = PointState.ON if on else PointState.OFF
            changed = self._told.get(point) is not shown
            if changed:
                self._told[point] = shown
                self._see(seen.PointReported(now, lane, point, shown))
            if changed or refresh:
                reports(PointChanged(self._module_id, point, shown, now))

    def _miss(self, reports: Reports) -> None:
        self._misses += 1
        if self._misses >= _LOST_AFTER and self._online is not False:
            self._online = False
            now = self._monotonic()
            self._see(seen.ModuleAway(now, self._field.lane_id, away=True, points=self._points))
            reports(DeviceLost(self._module_id, "no answer", now))

    async def _pause(self) -> None:
        """Wait until something changes there, or it is time to look again; a quiet lane is not looked at."""
        now = self._monotonic()
        wait = self._refreshed_at + _REFRESH - now
        if any(self._field.troubles.chattering.get(point, now) > now for point in self._points):
            wait = _CHATTER_POLL
        elif self._misses:
            wait = _MISSED_POLL
        if self._field.is_quiet(now, _REST):
            await self._woken.wait()
        elif wait > 0:
            alarm = asyncio.get_running_loop().call_later(wait, self._woken.set)
            await self._woken.wait()
            alarm.cancel()

    def _see(self, observation: seen.Observation, *, taped: bool = True) -> None:
        if self._alive():
            self._witness.see(observation, taped=taped)
