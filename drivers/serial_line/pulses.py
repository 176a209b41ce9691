"""Outputs that stay on until they are told otherwise: pulses that the host has to end."""

from __future__ import annotations

from dataclasses import dataclass

from drivers.contract import DriverError, MonotonicSeconds
from drivers.serial_line.profile import Command
from drivers.serial_line.session import Session

_RELEASE_SECONDS = 0.5
_RELEASE_AGAIN = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutput:
    """An output that is, or may be, on.

    Attributes:
        command: what switched it on.
        due: when it is to be off.
        instead_of: what the same command had left on before; one release ends both.
    """

    command: Command
    due: MonotonicSeconds
    instead_of: tuple[HeldOutput, ...] = ()


class HostPulses:
    """Remembers which outputs are on, and switches each off when its pulse is over; never forgets one."""

    def __init__(self, *, session: Session, commands: tuple[Command, ...]) -> None:
        self._session = session
        self._pulsed = tuple(command for command in commands if command.release is not None)
        self._held: list[HeldOutput] = []

    @property
    def next_due(self) -> MonotonicSeconds:
        """When the next pulse ends; infinite when none is on."""
        return min((output.due for output in self._held), default=float("inf"))

    def begin(self, command: Command, *, now: MonotonicSeconds) -> HeldOutput | None:
        """The command is about to be sent. Noted before: an output whose answer is lost may be on all the same."""
        if command.pulse_ms is None:
            return None
        before = tuple(output for output in self._held if output.command == command)
        self._held = [output for output in self._held if output not in before]
        output = HeldOutput(command, now + command.pulse_ms / 1000, before)
        self._held.append(output)
        return output

    def never_sent(self, output: HeldOutput | None) -> None:
        """The command was not sent after all."""
        if output is not None and output in self._held:
            self._held.remove(output)
            self._held += output.instead_of

    def came_up(self, *, now: MonotonicSeconds) -> None:
        """The device is there anew: what was on when somebody lost sight of it is to be off."""
        busy = [output.command for output in self._held]
        self._held += [HeldOutput(command, now) for command in self._pulsed if command not in busy]

    async def end_due(self, *, now: MonotonicSeconds, until: MonotonicSeconds) -> None:
        """Switch off what is due by `until`; what cannot be switched off now is tried again until it is."""
        for output in [output for output in self._held if output.due <= until]:
            again: tuple[HeldOutput, ...] = ()
            try:
                await self._session.release(output.command, deadline=now + _RELEASE_SECONDS)
            except DriverError:
                # The poll beside it reports the device's state; what matters here is that the output is not forgotten.
                again = (HeldOutput(output.command, now + _RELEASE_AGAIN),)
            if output in self._held:  # else the command was given once more meanwhile, and its own pulse is on
                self._held.remove(output)
                self._held += again
