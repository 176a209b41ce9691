"""Pulses that the gateway ("the host") has to end: outputs that stay on until a write switches them off.

Steps have guards: a step-by-step input answers a second pulse with the opposite movement. So a step is sent only where
its effect is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from drivers.contract import DriverError, Forbidden, GatePosition, MonotonicSeconds

RELEASE_SECONDS = 0.5
"""The longest wait for the line of a write that switches an output off."""
RELEASE_AGAIN_SECONDS = 0.1
"""The pause between two attempts to switch an output off."""

Pulse = TypeVar("Pulse")


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutput(Generic[Pulse]):
    """An output that is on, or may be.

    Attributes:
        pulse: the pulse that switched it on.
        due: the instant to switch it off.
        instead_of: earlier pulses of the same output that this one replaced; one release ends all of them.
    """

    pulse: Pulse
    due: MonotonicSeconds
    instead_of: tuple[HeldOutput[Pulse], ...] = ()


class HostPulses(Generic[Pulse]):
    """The outputs that are on. Each is switched off when its pulse is over, and tried again until it is off.

    Args:
        release: the function that switches a pulse's output off before the given deadline; raises DriverError.
        monotonic: the clock of pulses and deadlines.
    """

    def __init__(
        self, *, release: Callable[[Pulse, MonotonicSeconds], Awaitable[None]], monotonic: Callable[[], float]
    ) -> None:
        self._release = release
        self._monotonic = monotonic
        self._outputs: list[HeldOutput[Pulse]] = []

    @property
    def next_due(self) -> MonotonicSeconds:
        """The instant at which the next pulse ends; infinite when no output is on."""
        return min((output.due for output in self._outputs), default=float("inf"))

    @property
    def outputs(self) -> tuple[HeldOutput[Pulse], ...]:
        """The outputs that are on, or may be."""
        return tuple(self._outputs)

    def begin(self, pulse: Pulse, *, seconds: float) -> HeldOutput[Pulse]:
        """Note a pulse before it is sent, because its output may be on even when the answer is lost."""
        before = tuple(output for output in self._outputs if output.pulse == pulse)
        self._outputs = [output for output in self._outputs if output not in before]
        output = HeldOutput(pulse, self._monotonic() + seconds, before)
        self._outputs.append(output)
        return output

    def never_sent(self, output: HeldOutput[Pulse] | None) -> None:
        """Forget a pulse that was not sent after all, and restore the ones that it replaced."""
        if output is not None and output in self._outputs:
            self._outputs.remove(output)
            self._outputs += output.instead_of

    def found_on(self, pulse: Pulse, *, at: MonotonicSeconds) -> None:
        """Note an output that was found on without a pulse of this process; it is switched off at once."""
        if all(output.pulse != pulse for output in self._outputs):
            self._outputs.append(HeldOutput(pulse, at))

    async def end(self, output: HeldOutput[Pulse], *, deadline: MonotonicSeconds) -> None:
        """Switch off one output. Raises what `release` raises, and then keeps the output for another attempt."""
        await self._release(output.pulse, min(deadline, self._monotonic() + RELEASE_SECONDS))
        if output in self._outputs:  # otherwise a repeated command replaced this pulse meanwhile
            self._outputs.remove(output)

    async def end_due(self, *, until: MonotonicSeconds) -> None:
        """Switch off the outputs that are due by `until`. One that fails is due again 0.1 s later."""
        for output in [output for output in self._outputs if output.due <= until]:
            try:
                await self.end(output, deadline=float("inf"))
            except DriverError:
                # The error itself is dropped: the next poll reports a device that fails.
                if output in self._outputs:
                    self._outputs.remove(output)
                    self._outputs.append(HeldOutput(output.pulse, self._monotonic() + RELEASE_AGAIN_SECONDS))

    async def end_all(self) -> None:
        """Switch off all outputs; return only when all are off."""
        while self._outputs:
            await self.end_due(until=float("inf"))
            if self._outputs:
                await asyncio.sleep(RELEASE_AGAIN_SECONDS)


class Steps:
    """The last step that was sent to a gate.

    Attributes:
        last: where the gate was when the step was sent, and the instant; None when no step was sent.

    Args:
        name: the gate's name, for people.
        settle_seconds: for so long, a gate whose position has not changed since the last step gets no other one.
        position: returns the gate's present position.
        monotonic: the clock.
    """

    def __init__(
        self,
        *,
        name: str,
        settle_seconds: float,
        position: Callable[[], GatePosition],
        monotonic: Callable[[], MonotonicSeconds],
    ) -> None:
        self._name = name
        self._settle_seconds = settle_seconds
        self._position = position
        self._monotonic = monotonic
        self.last: tuple[GatePosition, MonotonicSeconds] | None = None

    def why_not(self) -> str:
        """Return why no step may be sent now; "" when one may."""
        if self.last is not None:
            position, at = self.last
            if position is self._position() and self._monotonic() - at < self._settle_seconds:
                return f"{self._name} has not been seen to move since the last step command"
        return ""

    def begin(self, *forbidden: Forbidden | None) -> StepAttempt:
        """Begin to send a step. `forbidden`: what may stand against it, besides the last step, in order."""
        return StepAttempt(self, tuple(one for one in forbidden if one is not None))

    def now(self) -> tuple[GatePosition, MonotonicSeconds]:
        """Return where the gate is, and the instant."""
        return self._position(), self._monotonic()


class StepAttempt:
    """One command that is a step, from its first question until the device has it."""

    def __init__(self, steps: Steps, forbidden: tuple[Forbidden, ...]) -> None:
        self._steps = steps
        self._forbidden = (*forbidden, steps.why_not)
        self._sent: tuple[GatePosition, MonotonicSeconds] | None = None

    def stands_against(self) -> str:
        """Return what forbids the step. If nothing does, note the step, which is sent right after this call."""
        self.not_taken()  # of an attempt before
        reason = next((reason for forbidden in self._forbidden if (reason := forbidden())), "")
        if not reason:
            self._steps.last = self._sent = self._steps.now()
        return reason

    def not_taken(self) -> None:
        """Forget the step, since the device has not got it."""
        if self._sent is not None and self._steps.last is self._sent:
            self._steps.last = None
