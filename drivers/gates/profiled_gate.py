"""The base of gates that a profile describes, over any protocol."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Generic, TypeVar

from drivers.contract import (
    DeadlinePassed,
    DeviceFault,
    Forbidden,
    GatePosition,
    LineDown,
    MonotonicSeconds,
    NotPermitted,
    Reports,
)
from drivers.gates.limits import Limits
from drivers.gates.pace import PollPace
from drivers.gates.polls import Watch
from drivers.gates.pulses import HeldOutput, HostPulses

_LAST_RELEASES_SECONDS = 0.8

Command = TypeVar("Command")
Pulse = TypeVar("Pulse")


class ProfiledGate(ABC, Generic[Command, Pulse]):
    """A gate with the commands of its profile, regular polls, and pulses that the gateway ends.

    `limits` are the gate's own limit switches; None where its position comes from elsewhere. `has_position` says
    whether the profile tells where the gate is.

    Args:
        device_id: the id that its reports carry.
        name: the profile's name, for people.
        commands: the profile's commands by name.
        poll_seconds: the interval between two polls.
        release: the function that switches off a pulse's output; see `HostPulses`.
        monotonic: the clock of deadlines and stamps.
    """

    limits: Limits | None
    has_position: bool

    def __init__(
        self,
        *,
        device_id: int,
        name: str,
        commands: Mapping[str, Command],
        poll_seconds: float,
        release: Callable[[Pulse, MonotonicSeconds], Awaitable[None]],
        monotonic: Callable[[], float],
    ) -> None:
        self._device_id = device_id
        self._name = name
        self._commands = commands
        self._monotonic = monotonic
        self._pace = PollPace(poll_seconds=poll_seconds, monotonic=monotonic)
        self._pulses = HostPulses(release=release, monotonic=monotonic)
        self._position = GatePosition.UNKNOWN
        self._commanded: GatePosition | None = None

    @property
    def device_id(self) -> int:
        """The device's id in the site file."""
        return self._device_id

    @property
    def stops(self) -> bool:
        """True when the profile has a command to stop."""
        return "stop" in self._commands

    def watch_closely(self, *, until: MonotonicSeconds) -> None:
        """Poll as fast as the line allows until `until`."""
        self._pace.watch_closely(until=until)

    async def open(self, *, deadline: MonotonicSeconds, forbidden: Forbidden | None = None) -> None:
        """Command the gate to open. Returns once the controller acknowledged it; errors as `drivers.contract.Gate`."""
        await self._command("open", self._named("open"), GatePosition.OPENING, deadline, forbidden)

    async def close(self, *, deadline: MonotonicSeconds, forbidden: Forbidden) -> None:
        """Command the gate to close. Returns once the controller acknowledged it; errors as `drivers.contract.Gate`."""
        await self._command("close", self._named("close"), GatePosition.CLOSING, deadline, forbidden)

    async def stop(self, *, deadline: MonotonicSeconds, forbidden: Forbidden | None = None) -> None:
        """Command the gate to stop. Returns once the controller acknowledged it; errors as `drivers.contract.Gate`."""
        await self._command("stop", self._named("stop"), GatePosition.STOPPED, deadline, forbidden)

    @abstractmethod
    async def _command(
        self,
        name: str,
        command: Command,
        leads_to: GatePosition,
        deadline: MonotonicSeconds,
        forbidden: Forbidden | None,
    ) -> None:
        """Send a command of the profile. `leads_to` is the position that the gate moves towards when it obeys."""

    def _named(self, name: str) -> Command:
        command = self._commands.get(name)
        if command is None:
            raise DeviceFault(f"{self._name} has no command to {name}")
        return command

    @contextlib.contextmanager
    def _sending(self, pulse: HeldOutput[Pulse] | None, leads_to: GatePosition) -> Iterator[None]:
        """Note the position that the command sent in this context leads to; forget its pulse if it was not sent."""
        try:
            yield
            self._commanded = leads_to
        except (DeadlinePassed, LineDown, NotPermitted):
            self._pulses.never_sent(pulse)
            raise
        finally:
            self._pace.wake()

    def _interrupted(self, watch: Watch, reports: Reports) -> None:
        """Report the points that a lost line made unknown, and poll again at once."""
        for report in watch.interrupted(at=self._monotonic()):
            reports(report)
        self._pace.wake()

    async def _end_all_pulses(self) -> None:
        """Switch off the outputs that are still on when the gateway stops. Gives up after 0.8 s."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_RELEASES_SECONDS):
                await self._pulses.end_all()
