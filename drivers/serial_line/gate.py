"""A gate controller on a serial line, driven by a profile."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

from drivers.bus.bus import Bus
from drivers.bus.transactions import UnitRests
from drivers.contract import (
    DeadlinePassed,
    DeviceConnected,
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
from drivers.gates.polls import CLOSE_WATCH_SECONDS, Watch, poll_deadline
from drivers.losses import is_answering
from drivers.serial_line.profile import Command, GateProfile, Query
from drivers.serial_line.pulses import HostPulses
from drivers.serial_line.session import Session
from drivers.serial_line.status import position_in

_SETTLE_SECONDS = 2.0
_LAST_RELEASES_SECONDS = 0.8


class SerialGate:
    """`drivers.contract.Gate` over frames on a serial line.

    A device that cannot be asked for its state counts as connected while its line is open, and its position is unknown.

    Args:
        device_id: the id that its reports carry.
        bus: the line; whoever wires runs it.
        profile: what the controller looks like.
        unit: its address on the line; without meaning for devices that have none.
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
        self._device_id = device_id
        self._profile = profile
        self._monotonic = monotonic
        self._session = Session(bus=bus, profile=profile, unit=unit)
        self._pulses = HostPulses(
            session=self._session, commands=tuple(command for _, command in profile.commands.named())
        )
        self._wake = asyncio.Event()
        self._close_watch_until = float("-inf")
        self._commanded: GatePosition | None = None
        self._position = GatePosition.UNKNOWN
        self._stepped: tuple[GatePosition, MonotonicSeconds] | None = None

    @property
    def device_id(self) -> int:
        """The device's id in the site file."""
        return self._device_id

    async def run(self, reports: Reports) -> None:
        """Poll and report until cancelled. A host's pulse still on then is ended first, if the line works."""
        watch = Watch(device_id=self._device_id, started_at=self._monotonic(), stale=self._profile.stale_seconds())
        try:
            with self._session.telling_interruptions(lambda: self._interrupted(watch, reports)):
                while True:
                    self._wake.clear()
                    due = self._monotonic() + self._poll_seconds()
                    now = self._monotonic()
                    await self._pulses.end_due(now=now, until=now)
                    told = await self._poll(watch)
                    self._position = watch.position
                    for report in told:
                        reports(report)
                        if isinstance(report, DeviceConnected):
                            self._pulses.came_up(now=report.at)
                    await self._rest(until=min(due, self._pulses.next_due))
        finally:
            self._position = GatePosition.UNKNOWN
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_RELEASES_SECONDS):
                    await self._pulses.end_due(now=self._monotonic(), until=float("inf"))

    def watch_closely(self, *, until: MonotonicSeconds) -> None:
        """Poll as fast as the line allows until then."""
        if self._close_watch_until < self._monotonic():
            self._wake.set()
        self._close_watch_until = until

    def _poll_seconds(self) -> float:
        closely = self._monotonic() < self._close_watch_until
        return CLOSE_WATCH_SECONDS if closely else self._profile.poll_ms / 1000

    async def open(self, *, deadline: MonotonicSeconds, forbidden: Forbidden | None = None) -> None:
        """Command the gate to open; returns once the controller acknowledged it, if it ever does."""
        await self._command("open", self._profile.commands.open, GatePosition.OPENING, deadline, forbidden)

    async def close(self, *, deadline: MonotonicSeconds, forbidden: Forbidden) -> None:
        """Command the gate to close; returns once the controller acknowledged it, if it ever does."""
        await self._command("close", self._profile.commands.close, GatePosition.CLOSING, deadline, forbidden)

    async def stop(self, *, deadline: MonotonicSeconds, forbidden: Forbidden | None = None) -> None:
        """Command the gate to stop; returns once the controller acknowledged it, if it ever does."""
        await self._command("stop", self._profile.commands.stop, GatePosition.STOPPED, deadline, forbidden)

    async def _command(
        self,
        name: str,
        command: Command | None,
        leads_to: GatePosition,
        deadline: MonotonicSeconds,
        forbidden: Forbidden | None,
    ) -> None:
        if command is None:
            raise DeviceFault(f"{self._profile.name} has no command to {name}")

        def stands_against() -> str:
            """Asked right before the first byte; whoever is asked last lets the command go, so a step is noted here."""
            reason = self._why_no_step(command)
            if not reason and forbidden is not None:
                reason = forbidden()
            if not reason and not command.idempotent:
                self._stepped = (self._position, self._monotonic())
            return reason

        asked = forbidden if command.idempotent and not command.only_from else stands_against
        pulse = self._pulses.begin(command, now=self._monotonic())
        try:
            await self._session.command(command, deadline=deadline, forbidden=asked)
            self._commanded = leads_to
        except (DeadlinePassed, LineDown, NotPermitted):
            self._pulses.never_sent(pulse)
            raise
        finally:
            self._wake.set()

    def _why_no_step(self, command: Command) -> str:
        """Why a command that is safe only from known positions cannot be sent now; "" when it can."""
        if command.only_from and self._position not in command.only_from:
            places = " or ".join(command.only_from)
            return f"{self._profile.name} takes this command only when {places}; it is {self._position}"
        if self._stepped is not None and not command.idempotent:
            before, at = self._stepped
            if self._position is before and self._monotonic() - at < _SETTLE_SECONDS:
                return f"{self._profile.name} has not been seen to move since the last step command"
        return ""

    def _interrupted(self, watch: Watch, reports: Reports) -> None:
        for report in watch.interrupted(at=self._monotonic()):
            reports(report)
        self._wake.set()

    async def _poll(self, watch: Watch) -> tuple[Report, ...]:
        now = self._monotonic()
        status = self._profile.status
        if status is None:
            down = self._session.down_reason
            return (
                watch.heard(GatePosition.UNKNOWN, {}, at=now)
                if down is None
                else watch.missed(down, at=now, asked=True)
            )
        try:
            return await self._ask(status, watch)
        except DriverError as error:
            return watch.missed(
                str(error), at=self._monotonic(), asked=not isinstance(error, UnitRests), answers=is_answering(error)
            )

    async def _ask(self, status: Query, watch: Watch) -> tuple[Report, ...]:
        deadline = poll_deadline(watch, now=self._monotonic())
        frame, at = await self._session.ask(status, deadline=deadline)
        points = {name: point.state_in(frame) for name, point in self._profile.points.items()}
        position = position_in(frame, self._profile.position, points, before=watch.position, commanded=self._commanded)
        self._commanded = None
        return watch.heard(position, points, at=at)

    async def _rest(self, *, until: MonotonicSeconds) -> None:
        try:
            async with asyncio.timeout(max(0.0, until - self._monotonic())):
                await self._wake.wait()
        except TimeoutError:
            return
