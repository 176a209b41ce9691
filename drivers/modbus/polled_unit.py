"""One polled unit: its preparation when it connects, its heartbeat, and the reads of each poll.

A gate is built upon it. An input module, which has points and no gate, is nothing else.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping

from drivers.bus.bus import Bus
from drivers.contract import (
    DeviceFault,
    DriverError,
    GatePosition,
    LineDown,
    MonotonicSeconds,
    PointState,
    Report,
    Reports,
)
from drivers.gates.polls import PollPace, PollWatch, limit_position, poll_deadline
from drivers.modbus.frames import Framing, Read, Table, Write, WriteMany
from drivers.modbus.profile import GateProfile, Preparation, RegisterPosition, UnitProfile
from drivers.modbus.unit_requests import ModbusRequests

Held = Mapping[tuple[Table, int], int]
"""The values of a device, by table and wire address."""


class PolledUnit:
    """A unit that is polled for everything that its profile names.

    Args:
        requests: the requests to the unit.
        profile: the unit's profile.
        monotonic: the clock of the heartbeat.
    """

    def __init__(
        self, *, requests: ModbusRequests, profile: UnitProfile, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._requests = requests
        self._profile = profile
        self._monotonic = monotonic
        self._reads = profile.reads()
        self._is_prepared = not profile.prepare
        self._beats = itertools.cycle(() if profile.heartbeat is None else profile.heartbeat.values)
        self._beat_due: MonotonicSeconds = float("-inf")

    def forget(self) -> None:
        """Have the next `ask` prepare the device again, because it was lost and may have been without power."""
        self._is_prepared = not self._profile.prepare
        self._beat_due = float("-inf")

    async def ask(self, *, deadline: Callable[[], MonotonicSeconds]) -> tuple[Held, MonotonicSeconds]:
        """Poll the device: prepare it if needed, send the heartbeat if due, and read everything.

        Return the values by table and wire address, and the instant of the first read, so that no value is older.
        `deadline` is called for each request. Raises what `ModbusRequests` raises, and DeviceFault when the device does
        not keep a setting of its preparation, or when its watchdog ran out (the next call prepares it again).
        """
        try:
            if not self._is_prepared:
                for part in self._profile.prepare:
                    await self._prepare(part, deadline)
                self._is_prepared = True
            await self._beat(deadline)
            held: dict[tuple[Table, int], int] = {}
            first_at: MonotonicSeconds | None = None
            for read in self._reads:
                values, at = await self._requests.read(read, deadline=deadline())
                first_at = at if first_at is None else first_at
                held.update(self._by_address(read, values))
        except LineDown:
            self.forget()
            raise
        self._check_watchdog(held)
        return held, self._monotonic() if first_at is None else first_at

    def _by_address(self, read: Read, values: tuple[int, ...]) -> Held:
        ordered = self._profile.ordered
        return {(read.table, read.address + place): ordered(read.table, value) for place, value in enumerate(values)}

    async def _prepare(self, part: Preparation, deadline: Callable[[], MonotonicSeconds]) -> None:
        write = self._profile.write(part.write, part.address, part.value, many=part.many)
        if not part.read_back:
            await self._requests.put(write, deadline=deadline())
            return
        wanted = kept_value(write)
        read = Read(part.write, write.address, 1)
        (found,), _ = await self._requests.read(read, deadline=deadline())
        if found == wanted:
            return
        await self._requests.put(write, deadline=deadline())
        (found,), _ = await self._requests.read(read, deadline=deadline())
        if found != wanted:
            raise DeviceFault(f"{part.what} cannot be set: it reads {found} where {wanted} was written")

    async def _beat(self, deadline: Callable[[], MonotonicSeconds]) -> None:
        beat = self._profile.heartbeat
        now = self._monotonic()
        if beat is None or now < self._beat_due:
            return
        await self._requests.put(self._profile.write(beat.write, beat.address, next(self._beats)), deadline=deadline())
        self._beat_due = now + beat.every_ms / 1000

    def _check_watchdog(self, held: Held) -> None:
        expired = None if self._profile.heartbeat is None else self._profile.heartbeat.expired
        if expired is None:
            return
        value = held[expired.table, self._profile.wire_address(expired.address)]
        if value & expired.mask == expired.equals:
            self.forget()
            raise DeviceFault("its watchdog ran out: its outputs are off until it is prepared again")


def kept_value(write: Write | WriteMany) -> int:
    """Return the value that a read returns after this write."""
    if isinstance(write, WriteMany):
        return write.values[0]
    return int(bool(write.value)) if write.table is Table.COIL else write.value


def points_of(profile: UnitProfile, held: Held) -> dict[str, PointState]:
    """Return the named points, inverted where the profile says so; UNKNOWN where `held` lacks the value."""
    states: dict[str, PointState] = {}
    for name, point in profile.points.items():
        value = held.get((point.table, profile.wire_address(point.address)))
        if value is None:
            states[name] = PointState.UNKNOWN
        else:
            states[name] = PointState.ON if point.is_on(value) else PointState.OFF
    return states


def position_of(
    profile: GateProfile,
    held: Held,
    points: Mapping[str, PointState],
    *,
    before: GatePosition,
    commanded: GatePosition | None,
) -> GatePosition:
    """Derive the position from a poll.

    Args:
        profile: the gate's profile, which names the source of the position.
        held: the values of the poll.
        points: the named points of the same poll.
        before: the position that the poll before showed.
        commanded: the position to which the last command acknowledged since then leads: OPENING, CLOSING or STOPPED;
            None when there was no command.
    """
    source = profile.position
    if source is None:
        return GatePosition.UNKNOWN
    if isinstance(source, RegisterPosition):
        value = held.get((source.table, profile.wire_address(source.address)))
        return GatePosition.UNKNOWN if value is None else source.position(value)
    return limit_position(
        closed=points[source.closed_point], opened=points[source.open_point], before=before, commanded=commanded
    )


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
        watch = PollWatch(device_id=self._device_id, started_at=self._monotonic(), stale=self._profile.stale_seconds())
        with self._requests.telling_interruptions(lambda: self._interrupted(watch, reports)):
            while True:
                due = self._pace.begin()
                for report in await self._poll(watch):
                    reports(report)
                await self._pace.rest(until=due)

    def watch_closely(self, *, until: MonotonicSeconds) -> None:
        """Poll as fast as the line allows until `until`."""
        self._pace.watch_closely(until=until)

    async def _poll(self, watch: PollWatch) -> tuple[Report, ...]:
        try:
            held, at = await self._unit.ask(deadline=lambda: poll_deadline(watch, now=self._monotonic()))
        except DriverError as error:
            told = watch.failed(error, at=self._monotonic())
            if not watch.is_online:
                self._unit.forget()
            return told
        return watch.answered(None, points_of(self._profile, held), at=at)

    def _interrupted(self, watch: PollWatch, reports: Reports) -> None:
        self._unit.forget()
        for report in watch.interrupted(at=self._monotonic()):
            reports(report)
