"""A gate controller on a serial line, driven by a profile."""

from __future__ import annotations

import time
from collections.abc import Callable

from drivers.bus.bus import Bus
from drivers.contract import (
    DeadlinePassed,
    DeviceConnected,
    DriverError,
    Forbidden,
    GatePosition,
    LineDown,
    MonotonicSeconds,
    NotPermitted,
    Report,
)
from drivers.gates.polls import PollWatch, poll_deadline
from drivers.gates.profiled_gate import ProfiledGate
from drivers.serial_line.profile import Command, GateProfile, Query
from drivers.serial_line.status import position_in
from drivers.serial_line.unit_requests import FrameRequests

_SETTLE_SECONDS = 2.0


class SerialGate(ProfiledGate[Command, Command]):
    """A `drivers.contract.Gate` over frames on a serial line.

    A device that cannot be asked for its state counts as connected while its line is open; its position is UNKNOWN.

    Args:
        device_id: the id that its reports carry.
        bus: the line, which the caller runs.
        profile: the description of the controller.
        unit: the controller's address on the line; ignored for devices without addresses.
        monotonic: the clock of deadlines and stamps.
    """

    def __init__(
        self,
        *,
        device_id: int,
        bus: Bus,
        profile: GateProfile,
        unit: int,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._profile = profile
        self._requests = FrameRequests(bus=bus, profile=profile, unit=unit)
        super().__init__(
            device_id=device_id,
            profile=profile,
            requests=self._requests,
            settle_seconds=_SETTLE_SECONDS,
            release=lambda command, deadline: self._requests.release(command, deadline=deadline),
            monotonic=monotonic,
        )

    def _note_pulses_of_before(self, told: tuple[Report, ...]) -> None:
        """Have all outputs with a release switched off when the device connects: they may be on since before."""
        for report in told:
            for command in self._commands.values():
                if isinstance(report, DeviceConnected) and command.release is not None:
                    self._pulses.found_on(command, at=report.at)

    async def _command(
        self,
        name: str,  # noqa: ARG002 (the base's signature)
        command: Command,
        leads_to: GatePosition,
        deadline: MonotonicSeconds,
        forbidden: Forbidden | None,
    ) -> None:
        def stands_against() -> str:
            return self._why_not_from_here(command) or ("" if forbidden is None else forbidden())

        step = None if command.idempotent else self._steps.begin(stands_against)
        asked = stands_against if step is None else step.stands_against
        seconds = command.pulse_ms
        pulse = None if seconds is None else self._pulses.begin(command, seconds=seconds / 1000)
        try:
            with self._sending(pulse, leads_to):
                await self._requests.command(command, deadline=deadline, forbidden=asked)
        except (DeadlinePassed, LineDown, NotPermitted):
            if step is not None:
                step.not_taken()
            raise

    def _why_not_from_here(self, command: Command) -> str:
        """Return why a command that is safe only from certain positions must not be sent now; "" when it may."""
        if command.only_from and self._position not in command.only_from:
            places = " or ".join(command.only_from)
            return f"{self._profile.name} takes this command only when {places}; it is {self._position}"
        return ""

    async def _poll(self, watch: PollWatch) -> tuple[Report, ...]:
        told = await self._state(watch)
        self._note_pulses_of_before(told)
        return told

    async def _state(self, watch: PollWatch) -> tuple[Report, ...]:
        now = self._monotonic()
        status = self._profile.status
        if status is None:
            down = self._requests.down_reason
            return (
                watch.answered(GatePosition.UNKNOWN, {}, at=now)
                if down is None
                else watch.missed(down, at=now, asked=True)
            )
        try:
            return await self._ask(status, watch)
        except DriverError as error:
            return watch.failed(error, at=self._monotonic())

    async def _ask(self, status: Query, watch: PollWatch) -> tuple[Report, ...]:
        deadline = poll_deadline(watch, now=self._monotonic())
        frame, at = await self._requests.ask(status, deadline=deadline)
        points = {name: point.state_in(frame) for name, point in self._profile.points.items()}
        position = position_in(frame, self._profile.position, points, before=watch.position, commanded=self._commanded)
        self._commanded = None
        return watch.answered(position, points, at=at)
