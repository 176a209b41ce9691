"""An input module on Modbus, which has points and no gate."""

from __future__ import annotations

import time
from collections.abc import Callable

from drivers.bus.bus import Bus
from drivers.contract import DriverError, MonotonicSeconds, Report, Reports
from drivers.gates.pace import PollPace
from drivers.gates.polls import Watch, poll_deadline
from drivers.modbus.frames import Framing
from drivers.modbus.points_and_position import points_of
from drivers.modbus.polled_unit import PolledUnit
from drivers.modbus.profile import UnitProfile
from drivers.modbus.unit_requests import ModbusRequests


class ModbusInputs:
    """A `drivers.contract.Driver` over Modbus that reports points.

    Args:
        device_id: the id that its reports carry.
        bus: the line, which the caller runs.
        profile: the description of the module; with a gate's profile only the points are used.
        unit: the module's address on the line.
        framing: `tcp` (MBAP) or `rtu`; each is possible over serial ports and TCP.
        monotonic: the clock of stamps.
    """

    def __init__(
        self,
        *,
        device_id: int,
        bus: Bus,
        profile: UnitProfile,
        unit: int,
        framing: Framing,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._device_id = device_id
        self._profile = profile
        self._monotonic = monotonic
        self._pace = PollPace(poll_seconds=profile.poll_ms / 1000, monotonic=monotonic)
        self._requests = ModbusRequests(
            bus=bus, unit=unit, framing=framing, timeout=profile.reply_ms / 1000, pause=profile.pause_ms / 1000
        )
        self._unit = PolledUnit(requests=self._requests, profile=profile, monotonic=monotonic)

    @property
    def device_id(self) -> int:
        """The device's id in the site file."""
        return self._device_id

    async def run(self, reports: Reports) -> None:
        """Poll and report until cancelled."""
        watch = Watch(device_id=self._device_id, started_at=self._monotonic(), stale=self._profile.stale_seconds())
        with self._requests.telling_interruptions(lambda: self._interrupted(watch, reports)):
            while True:
                due = self._pace.begin()
                for report in await self._poll(watch):
                    reports(report)
                await self._pace.rest(until=due)

    def watch_closely(self, *, until: MonotonicSeconds) -> None:
        """Poll as fast as the line allows until `until`."""
        self._pace.watch_closely(until=until)

    async def _poll(self, watch: Watch) -> tuple[Report, ...]:
        try:
            held, at = await self._unit.ask(deadline=lambda: poll_deadline(watch, now=self._monotonic()))
        except DriverError as error:
            told = watch.failed(error, at=self._monotonic())
            if not watch.is_online:
                self._unit.forget()
            return told
        return watch.answered(None, points_of(self._profile, held), at=at)

    def _interrupted(self, watch: Watch, reports: Reports) -> None:
        self._unit.forget()
        for report in watch.interrupted(at=self._monotonic()):
            reports(report)
