"""A gate controller on Modbus, driven by a profile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from drivers.bus.bus import Bus
from drivers.contract import (
    DeadlinePassed,
    DeviceFault,
    DriverError,
    Forbidden,
    GatePosition,
    LineDown,
    MonotonicSeconds,
    NotPermitted,
    Report,
    Reports,
)
from drivers.gates.polls import PollWatch, poll_deadline
from drivers.gates.profiled_gate import ProfiledGate
from drivers.gates.pulses import RELEASE_AGAIN_SECONDS, RELEASE_SECONDS, HeldOutput, StepAttempt
from drivers.modbus.frames import Framing, Read, Write, WriteMany
from drivers.modbus.polled_unit import PolledUnit, kept_value, points_of, position_of
from drivers.modbus.profile import Command, GateProfile
from drivers.modbus.unit_requests import DeviceBusy, ModbusRequests

_STEP_SECONDS = 3.0
_BUSY_PAUSE = 0.1
"""Seconds between two attempts of a command that a busy device has not taken."""
_P = GatePosition
_NO_STEP: dict[GatePosition, frozenset[GatePosition]] = {
    _P.OPENING: frozenset({_P.OPEN, _P.OPENING, _P.UNKNOWN}),
    _P.CLOSING: frozenset({_P.CLOSED, _P.CLOSING, _P.UNKNOWN}),
    _P.STOPPED: frozenset({_P.OPEN, _P.CLOSED, _P.STOPPED, _P.UNKNOWN}),
}
"""For each position that a command leads to: the positions from which a step command could do something else."""


@dataclass(frozen=True, slots=True, eq=False)
class _Pulse:
    """A pulse that the gateway ends, with the write that ends it.

    Compared by identity, so that two pulses of one command end separately.
    """

    name: str
    release: Write | WriteMany


class ModbusGate(ProfiledGate[Command, _Pulse]):
    """A `drivers.contract.Gate` over Modbus.

    Args:
        device_id: the id that its reports carry.
        bus: the line, which the caller runs.
        profile: the description of the controller.
        unit: the controller's address on the line.
        framing: `tcp` (MBAP) or `rtu`; each is possible over serial ports and TCP.
        monotonic: the clock of deadlines and stamps.
    """

    def __init__(
        self,
        *,
        device_id: int,
        bus: Bus,
        profile: GateProfile,
        unit: int,
        framing: Framing,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._profile = profile
        self._requests = ModbusRequests(
            bus=bus, unit=unit, framing=framing, timeout=profile.reply_ms / 1000, pause=profile.pause_ms / 1000
        )
        self._unit = PolledUnit(requests=self._requests, profile=profile, monotonic=monotonic)
        super().__init__(
            device_id=device_id,
            profile=profile,
            requests=self._requests,
            settle_seconds=_STEP_SECONDS,
            release=lambda pulse, deadline: self._requests.write(pulse.release, deadline=deadline),
            monotonic=monotonic,
        )
        self._one_output = asyncio.Lock()
        self._pulsed = tuple(command for command in self._commands.values() if command.pulse_seconds is not None)
        self._outputs_are_known = not self._pulsed

    async def _command(
        self,
        name: str,
        command: Command,
        leads_to: GatePosition,
        deadline: MonotonicSeconds,
        forbidden: Forbidden | None,
    ) -> None:
        if self._has_ended:
            raise LineDown("the gateway stops: nobody would end what begins now")
        step: StepAttempt | None = None
        if not command.idempotent:
            if reason := self._why_no_step(name, leads_to) or self._steps.why_not():
                raise NotPermitted(reason)
            step = self._steps.begin(forbidden, partial(self._why_no_step, name, leads_to))
            forbidden = step.stands_against
        busy: DeviceBusy | None = None
        while True:
            try:
                if not self._pulsed:
                    await self._send(name, command, leads_to, deadline, forbidden, step=step)
                    return
                async with self._one_output:
                    await self._release_others(name, deadline)
                    await self._send(name, command, leads_to, deadline, forbidden, step=step)
                    return
            except DeviceBusy as refusal:
                if self._has_ended:
                    raise
                busy = refusal
            except DeadlinePassed as passed:
                if busy is None:
                    raise
                raise busy from passed
            await asyncio.sleep(_BUSY_PAUSE)

    async def _send(
        self,
        name: str,
        command: Command,
        leads_to: GatePosition,
        deadline: MonotonicSeconds,
        forbidden: Forbidden | None,
        *,
        step: StepAttempt | None,
    ) -> None:
        held: HeldOutput[_Pulse] | None = None
        if command.pulse_seconds is not None:
            pulse = _Pulse(name, self._profile.release_of(command))
            held = self._pulses.begin(pulse, seconds=command.pulse_seconds)
        try:
            with self._sending(held, leads_to):
                await self._requests.write(self._profile.write_of(command), deadline=deadline, forbidden=forbidden)
        except (DeviceBusy, DeadlinePassed, LineDown, NotPermitted) as error:
            if isinstance(error, DeviceBusy):
                self._pulses.never_sent(held)
            if step is not None:
                step.not_taken()
            raise

    def _why_no_step(self, name: str, leads_to: GatePosition) -> str:
        """Return why a step would do another thing where the gate is now; "" when it would not."""
        if self._position in _NO_STEP[leads_to]:
            return f"{name} is a step command and the gate is {self._position}: a step would do another thing"
        return ""

    def _interrupted(self, watch: PollWatch, reports: Reports) -> None:
        self._forget()
        super()._interrupted(watch, reports)

    def _forget(self) -> None:
        """Have the device prepared and its outputs read again with the next poll: it may have been without power."""
        self._unit.forget()
        self._outputs_are_known = not self._pulsed

    async def _poll(self, watch: PollWatch) -> tuple[Report, ...]:
        try:
            await self._release_what_is_found_on(watch)
            held, at = await self._unit.ask(deadline=lambda: poll_deadline(watch, now=self._monotonic()))
        except DriverError as error:
            told = watch.failed(error, at=self._monotonic())
            if not watch.is_online:
                self._forget()
            return told
        points = points_of(self._profile, held)
        position = position_of(self._profile, held, points, before=watch.position, commanded=self._commanded)
        self._commanded = None
        return watch.answered(position, points, at=at)

    async def _release_others(self, name: str, deadline: MonotonicSeconds) -> None:
        """End the pulses of other commands before this one is sent, so that two opposite outputs are never on together.

        Raises NotPermitted when that did not succeed before the deadline, and LineDown.
        """
        while others := [output for output in self._pulses.outputs if output.pulse.name != name]:
            try:
                await self._pulses.end(others[0], deadline=deadline)
            except LineDown:
                raise
            except DriverError as error:
                if self._monotonic() + RELEASE_AGAIN_SECONDS >= deadline:
                    other = others[0].pulse.name
                    raise NotPermitted(f"the output to {other} could not be switched off: {error}") from error
                await asyncio.sleep(RELEASE_AGAIN_SECONDS)

    async def _release_what_is_found_on(self, watch: PollWatch) -> None:
        """Switch off outputs that are on when the device connects: a gateway that died in a pulse left them on."""
        if self._outputs_are_known:
            return
        for command in self._pulsed:
            release = self._profile.release_of(command)
            is_ours = any(output.pulse.release == release for output in self._pulses.outputs)
            if not is_ours and await self._may_be_on(command, watch):
                await self._requests.write(release, deadline=self._monotonic() + RELEASE_SECONDS)
        self._outputs_are_known = True

    async def _may_be_on(self, command: Command, watch: PollWatch) -> bool:
        write = self._profile.write_of(command)
        read = Read(command.write, write.address, 1)
        try:
            (found,), _ = await self._requests.read(read, deadline=poll_deadline(watch, now=self._monotonic()))
        except DeviceFault:
            return True  # its outputs cannot be read, and switching one off that is off does no harm
        return found == kept_value(write)
