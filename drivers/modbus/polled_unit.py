"""One polled unit: its preparation when it connects, its heartbeat, and the reads of each poll."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

from drivers.contract import DeviceFault, LineDown, MonotonicSeconds
from drivers.modbus.messages import Read, Table, Write, WriteMany
from drivers.modbus.points_and_position import Held
from drivers.modbus.profile import UnitProfile
from drivers.modbus.profile_parts import Preparation
from drivers.modbus.unit_requests import ModbusRequests


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
