"""Simulated input modules: their inputs reported, their losses counted, at the pace of the real driver."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from drivers.contract import DeviceConnected, DeviceLost, PointChanged, PointState, Reports
from simulation.virtual_site import observations as seen
from simulation.virtual_site.lane_field import LaneField
from simulation.virtual_site.witness import Witness

_NO_ANSWER = 0.4
_CHATTER_POLL = 0.15
_MISSED_POLL = 0.15
_MODULE_REST = 7.0
_REFRESH = 1.85
_EARLY = 0.1
_LOST_AFTER = 3


class SimulatedInputs:
    """The driver of an input module, which fulfils `drivers.contract.Driver`.

    Each life of the gateway has a new one; the field stays. A module without power is reported as lost. A silent one is
    not: its task hangs and its readings go stale, which the lane must notice by itself.
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
        """Make the driver of one life. `alive` returns whether that life goes on; reports of a dead one are dropped."""
        self._field = field
        self._module_id = module_id
        self._points = field.modules[module_id]
        self._witness = witness
        self._monotonic = monotonic
        self._dice = dice
        self._alive = alive
        self._online: bool | None = None
        self._misses = 0
        self._reported: dict[str, PointState] = {}
        self._woken = asyncio.Event()
        self._refreshed_at = float("-inf")

    @property
    def device_id(self) -> int:
        """The device's id in the site file."""
        return self._module_id

    async def run(self, reports: Reports) -> None:
        """Poll and report until cancelled."""
        self._field.barrier.watchers[self.device_id] = self._woken.set
        while True:
            await asyncio.sleep(self._dice.uniform(0.02, 0.08))
            self._woken.clear()
            await self._poll(reports)
            await self._pause()

    async def _poll(self, reports: Reports) -> None:
        now, troubles = self._monotonic(), self._field.troubles
        if (silent_until := troubles.modules_silent.get(self._module_id, now)) > now:
            await asyncio.sleep(silent_until - now)
        elif troubles.modules_away.get(self._module_id, now) > now:
            await asyncio.sleep(_NO_ANSWER)
            self._miss(reports)
        else:
            self._look(reports)

    def _next_poll(self, now: float) -> float | None:
        if any(self._field.troubles.chattering.get(point, now) > now for point in self._points):
            return _CHATTER_POLL
        return _MISSED_POLL if self._misses else None

    def _away(self, now: float, *, away: bool) -> seen.Observation:
        return seen.ModuleAway(now, self._field.lane_id, away=away, points=self._points)

    def _look(self, reports: Reports) -> None:
        """Report the inputs that changed, and all of them again once the refresh is due."""
        now, lane = self._monotonic(), self._field.lane_id
        self._misses = 0
        if self._online is not True:
            self._online = True
            self._reported.clear()
            self._see(self._away(now, away=False))
            reports(DeviceConnected(self.device_id, now))
        _, inputs = self._field.shown(now, self._points)
        self._field.read_at.update(dict.fromkeys(inputs, now))
        refresh = now - self._refreshed_at >= _REFRESH - _EARLY
        if refresh:
            self._refreshed_at = now
            self._see(seen.Refreshed(now, lane, tuple(inputs)), taped=False)
        for point, on in inputs.items():
            shown = PointState.ON if on else PointState.OFF
            if self._reported.get(point) is not shown:
                self._reported[point] = shown
                self._see(seen.PointReported(now, lane, point, shown))
            elif not refresh:
                continue
            reports(PointChanged(self.device_id, point, shown, now))

    def _miss(self, reports: Reports) -> None:
        self._misses += 1
        if self._misses >= _LOST_AFTER and self._online is not False:
            self._online = False
            now = self._monotonic()
            self._see(self._away(now, away=True))
            reports(DeviceLost(self.device_id, "no answer", now))

    async def _pause(self) -> None:
        """Wait until something changes in the field, or the next poll is due. A quiet lane is not polled."""
        now = self._monotonic()
        wait = self._next_poll(now)
        if wait is None:
            wait = self._refreshed_at + _REFRESH - now
        if self._field.is_quiet(now, _MODULE_REST):
            await self._woken.wait()
        elif wait > 0:
            alarm = asyncio.get_running_loop().call_later(wait, self._woken.set)
            await self._woken.wait()
            alarm.cancel()

    def _see(self, observation: seen.Observation, *, taped: bool = True) -> None:
        if self._alive():
            self._witness.see(observation, taped=taped)
