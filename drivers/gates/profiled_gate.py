"""The base of gates that a profile describes, over any protocol."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from typing import Generic, Protocol, TypeVar

from drivers.bus.bus import UnitRequests
from drivers.contract import (
    DeadlinePassed,
    DeviceFault,
    Forbidden,
    GatePosition,
    LineDown,
    MonotonicSeconds,
    NotPermitted,
    Report,
    Reports,
)
from drivers.gates.limits import Limits, limits_of
from drivers.gates.polls import PollPace, PollWatch
from drivers.gates.profile_parts import Commands
from drivers.gates.pulses import HeldOutput, HostPulses, Steps
from drivers.profile_file import Part

_LAST_RELEASES_SECONDS = 0.8

Command = TypeVar("Command", bound=Part)
Pulse = TypeVar("Pulse")


class DescribedGate(Protocol[Command]):
    """A profile of a gate, of any family."""

    @property
    def name(self) -> str:
        """The profile's name, for people."""

    @property
    def poll_ms(self) -> int:
        """The interval between two polls."""

    @property
    def position(self) -> Part | None:
        """The source of the position; None where the device does not know it."""

    @property
    def commands(self) -> Commands[Command]:
        """The commands that the device takes."""

    def stale_seconds(self) -> dict[str, float]:
        """Return the age limits, in seconds, of the points that set their own."""


class ProfiledGate(ABC, Generic[Command, Pulse]):
    """A gate with the commands of its profile, regular polls, and pulses that the gateway ends.

    `limits` are the gate's own limit switches; None where its position comes from elsewhere. `has_position` says
    whether the profile tells where the gate is.

    Args:
        device_id: the id that its reports carry.
        profile: the description of the controller.
        requests: the requests to its unit.
        settle_seconds: for so long, a gate that has not moved since the last step gets no other one; see `Steps`.
        release: the function that switches off a pulse's output; see `HostPulses`.
        monotonic: the clock of deadlines and stamps.
    """

    def __init__(
        self,
        *,
        device_id: int,
        profile: DescribedGate[Command],
        requests: UnitRequests,
        settle_seconds: float,
        release: Callable[[Pulse, MonotonicSeconds], Awaitable[None]],
        monotonic: Callable[[], float],
    ) -> None:
        self._device_id = device_id
        self._name = profile.name
        self._commands = dict(profile.commands.named())
        self._stale = profile.stale_seconds()
        self.limits: Limits | None = limits_of(device_id, profile.position)
        self.has_position = profile.position is not None
        self._unit_requests = requests
        self._monotonic = monotonic
        self._pace = PollPace(poll_seconds=profile.poll_ms / 1000, monotonic=monotonic)
        self._pulses = HostPulses(release=release, monotonic=monotonic)
        self._steps = Steps(
            name=profile.name, settle_seconds=settle_seconds, position=lambda: self._position, monotonic=monotonic
        )
        self._position = GatePosition.UNKNOWN
        self._commanded: GatePosition | None = None
        self._has_ended = False

    @property
    def device_id(self) -> int:
        """The device's id in the site file."""
        return self._device_id

    @property
    def stops(self) -> bool:
        """True when the profile has a command to stop."""
        return "stop" in self._commands

    async def run(self, reports: Reports) -> None:
        """Poll and report until cancelled. Before it ends, switch off outputs whose pulses the gateway must end."""
        self._has_ended = False
        watch = PollWatch(device_id=self._device_id, started_at=self._monotonic(), stale=self._stale)
        try:
            with self._unit_requests.telling_interruptions(lambda: self._interrupted(watch, reports)):
                while True:
                    due = self._pace.begin()
                    await self._pulses.end_due(until=self._monotonic())
                    told = await self._poll(watch)
                    self._position = watch.position
                    for report in told:
                        reports(report)
                    await self._pace.rest(until=min(due, self._pulses.next_due))
        finally:
            self._has_ended = True
            self._position = GatePosition.UNKNOWN
            await self._end_all_pulses()

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
    async def _poll(self, watch: PollWatch) -> tuple[Report, ...]:
        """Ask the device for its state, and return the reports that are due."""

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

    def _interrupted(self, watch: PollWatch, reports: Reports) -> None:
        """Report the points that a lost line made unknown, and poll again at once."""
        for report in watch.interrupted(at=self._monotonic()):
            reports(report)
        self._pace.wake()

    async def _end_all_pulses(self) -> None:
        """Switch off the outputs that are still on when the gateway stops. Gives up after 0.8 s."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_RELEASES_SECONDS):
                await self._pulses.end_all()
