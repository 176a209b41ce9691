"""Outputs that stay on until they are switched off: pulses that the host has to end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from drivers.contract import DriverError, MonotonicSeconds

RELEASE_SECONDS = 0.5
"""The longest wait of an output's release for the line."""
RELEASE_AGAIN_SECONDS = 0.1
"""Between two tries to release an output."""

Pulse = TypeVar("Pulse")


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutput(Generic[Pulse]):
    """An output that is, or may be, on.

    Attributes:
        pulse: the pulse that switched it on.
        due: the instant to switch it off.
        instead_of: outputs that an equal pulse had left on before; one release ends both.
    """

    pulse: Pulse
    due: MonotonicSeconds
    instead_of: tuple[HeldOutput[Pulse], ...] = ()


class HostPulses(Generic[Pulse]):
    """The outputs that are on, each switched off when its pulse is over; none is ever forgotten.

    Args:
        release: switches off what a pulse switched on, by the deadline given; raises DriverError.
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
        """The end of the next pulse; infinite when none is on."""
        return min((output.due for output in self._outputs), default=float("inf"))

    @property
    def outputs(self) -> tuple[HeldOutput[Pulse], ...]:
        """The outputs that are, or may be, on."""
        return tuple(self._outputs)

    def begin(self, pulse: Pulse, *, seconds: float) -> HeldOutput[Pulse]:
        """Note a pulse before it is sent: an output whose answer is lost may be on all the same."""
        before = tuple(output for output in self._outputs if output.pulse == pulse)
        self._outputs = [output for output in self._outputs if output not in before]
        output = HeldOutput(pulse, self._monotonic() + seconds, before)
        self._outputs.append(output)
        return output

    def never_sent(self, output: HeldOutput[Pulse] | None) -> None:
        """Forget a pulse that was not sent after all; an output that it replaced is on as before."""
        if output is not None and output in self._outputs:
            self._outputs.remove(output)
            self._outputs += output.instead_of

    def found_on(self, pulse: Pulse, *, at: MonotonicSeconds) -> None:
        """Note an output that may be on, and that only the host will switch off; it is due at once."""
        if all(output.pulse != pulse for output in self._outputs):
            self._outputs.append(HeldOutput(pulse, at))

    async def end(self, output: HeldOutput[Pulse], *, deadline: MonotonicSeconds) -> None:
        """Switch off one output. Raises what `release` raises; the output is not forgotten then."""
        await self._release(output.pulse, min(deadline, self._monotonic() + RELEASE_SECONDS))
        if output in self._outputs:  # else the command was given once more meanwhile, and its own pulse is on
            self._outputs.remove(output)

    async def end_due(self, *, until: MonotonicSeconds) -> None:
        """Switch off the outputs that are due by `until`; each is tried again until it is off."""
        for output in [output for output in self._outputs if output.due <= until]:
            try:
                await self.end(output, deadline=float("inf"))
            except DriverError:
                # The poll beside it reports the device's state; what matters here is that the output is not forgotten.
                if output in self._outputs:
                    self._outputs.remove(output)
                    self._outputs.append(HeldOutput(output.pulse, self._monotonic() + RELEASE_AGAIN_SECONDS))

    async def end_all(self) -> None:
        """Switch off all that is on, and try until it is off."""
        while self._outputs:
            await self.end_due(until=float("inf"))
            if self._outputs:
                await asyncio.sleep(RELEASE_AGAIN_SECONDS)
