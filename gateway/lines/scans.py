"""Scans for units on lines in use: one at a time on each line, limited in time, and only in the line's idle turns.

A silent address is asked twice, because a frame may be lost or a unit busy.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from drivers.bus.bus import Bus
from drivers.contract import DeadlinePassed, LineDown
from drivers.modbus.scan import Sighting, sight
from gateway.domain.errors import CommandRefused, NotFoundError
from gateway.lines.frames import PolledLine
from gateway.runtime.clock import Clock
from gateway.texts import text

LOWEST_UNIT, HIGHEST_UNIT = 1, 247
LONGEST_SECONDS = 600.0
_EACH_SECONDS = 2.5
_MOST_UNASKED_IN_A_ROW = 8
_MOST_FAILURES = 2
_LOOK_SECONDS = 0.2
_TIMES = 2

DONE = "every address was asked"


@dataclass(frozen=True, slots=True)
class ScannedUnit:
    """A unit on the line: one that was found, or one that the site uses, which the scan does not ask.

    Attributes:
        unit: its address.
        devices: the names of the site's devices at this address; empty for a new unit.
        answer: how it answered, in words.
        identity: how it identifies itself, "" when it does not.
        is_clear: False when its answer was garbled.
    """

    unit: int
    devices: tuple[str, ...]
    answer: str
    identity: str = ""
    is_clear: bool = True


@dataclass(frozen=True, slots=True)
class Scan:
    """A scan, under way or ended.

    Attributes:
        line: the link's id.
        began_at: when it began, in wall micros.
        total: number of addresses to scan.
        asked: number of addresses that were asked so far, or are known from their polls.
        unasked: addresses that were not asked because the line had no turn to spare.
        units: the units that are there.
        ended: why it ended, "" while it goes on.
    """

    line: str
    began_at: int
    total: int
    asked: int = 0
    unasked: tuple[int, ...] = ()
    units: tuple[ScannedUnit, ...] = ()
    ended: str = ""


class LineScans:
    """The scans of the site's lines. `run` carries them out; the last one of each line is kept in memory."""

    def __init__(self, *, lines: Mapping[str, PolledLine], clock: Clock) -> None:
        self._lines = lines
        self._clock = clock
        self._scans: dict[str, Scan] = {}
        self._asked: asyncio.Queue[tuple[str, tuple[int, ...]]] = asyncio.Queue()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def of(self, line: str) -> Scan | None:
        """Return the last scan of a line, None before the first."""
        return self._scans.get(line)

    def start(self, name: str, units: Iterable[int], *, through_converter: bool = False) -> Scan:
        """Begin a scan of these addresses; it goes on in `run`.

        `through_converter`: scan a Modbus TCP line too, whose converter waits for each absent unit and so delays the
        others. Raises NotFoundError for an unknown line, CommandRefused for one that cannot be scanned now.
        """
        line = self._lines.get(name)
        if line is None:
            raise NotFoundError(text("refused.line_unpolled", line=repr(name)))
        if line.framing is None:
            raise CommandRefused(text("refused.line_without_modbus", line=name))
        if line.framing == "tcp" and not through_converter:
            raise CommandRefused(text("refused.scan_delays", line=name))
        known = self._scans.get(name)
        if known is not None and not known.ended:
            raise CommandRefused(text("refused.scan_under_way", line=name))
        if line.bus.down_reason is not None:
            raise CommandRefused(f"line {name} is down: {line.bus.down_reason}")
        wanted = tuple(dict.fromkeys(units))
        scan = Scan(line=name, began_at=self._clock.wall().micros, total=len(wanted))
        self._scans[name] = scan
        self._asked.put_nowait((name, wanted))
        return scan

    def stop(self, name: str) -> Scan:
        """End the scan of a line and return it with what was found. Raises NotFoundError when there is none."""
        scan = self._scans.get(name)
        if scan is None:
            raise NotFoundError(text("refused.line_not_scanned", line=repr(name)))
        if not scan.ended:
            scan = self._scans[name] = replace(scan, ended="it was stopped")
            if (task := self._tasks.get(name)) is not None:
                task.cancel()
        return scan

    async def run(self) -> None:
        """Carry out scans until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    name, units = await self._asked.get()
                    if not self._scans[name].ended:
                        task = group.create_task(self._scan(name, units), name=f"scan-{name}")
                        self._tasks[name] = task
        finally:
            for name, scan in self._scans.items():
                if not scan.ended:
                    self._scans[name] = replace(scan, ended="the gateway stops")

    async def _scan(self, name: str, units: tuple[int, ...]) -> None:
        line = self._lines[name]
        ended = "it took too long"
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                ended = await self._ask_all(name, line, units)
        except TimeoutError:
            pass
        except LineDown as error:
            ended = f"the line was lost: {error}"
        if not self._scans[name].ended:
            self._scans[name] = replace(self._scans[name], ended=ended)

    async def _ask_all(self, name: str, line: PolledLine, units: tuple[int, ...]) -> str:
        """Ask each address; return why the scan ended.

        It ends early when units that answered well before begin to fail. One that failed already does not end it: it
        may be the very unit that is looked for.
        """
        well = {one.unit for one in line.bus.quality().units if one.reply_seconds is not None and one.failing is None}
        before = _failed(line.bus)
        unasked_in_a_row = 0
        for unit in units:
            if unit in line.names:
                self._note(name, _in_use(line, unit))
                continue
            try:
                seen = await _seen(line, unit)
            except DeadlinePassed:
                unasked_in_a_row += 1
                self._skip(name, unit)
                if unasked_in_a_row >= _MOST_UNASKED_IN_A_ROW:
                    return "the line has no turn to spare: its units need all of its time; a higher speed would help"
                continue
            unasked_in_a_row = 0
            self._note(name, None if seen is None else _new(seen))
            now = _failed(line.bus)
            if sum(now[used] - before[used] for used in well) >= _MOST_FAILURES:
                return "units of the site answered worse meanwhile, so that it was stopped"
        return DONE

    def _note(self, name: str, unit: ScannedUnit | None) -> None:
        scan = self._scans[name]
        units = scan.units if unit is None else (*scan.units, unit)
        self._scans[name] = replace(scan, asked=scan.asked + 1, units=units)

    def _skip(self, name: str, unit: int) -> None:
        scan = self._scans[name]
        self._scans[name] = replace(scan, unasked=(*scan.unasked, unit))


async def _seen(line: PolledLine, unit: int) -> Sighting | None:
    for _ in range(_TIMES):
        await _at_rest(line)
        seen = await sight(line.bus, unit, framing=line.framing or "rtu", within=_EACH_SECONDS)
        if seen is not None:
            return seen
    return None


async def _at_rest(line: PolledLine) -> None:
    """Wait until no gate on the line moves."""
    while True:
        if not line.is_moving():
            return
        await asyncio.sleep(_LOOK_SECONDS)


def _new(seen: Sighting) -> ScannedUnit:
    return ScannedUnit(seen.unit, (), seen.answer, seen.identity, seen.is_clear)


def _in_use(line: PolledLine, unit: int) -> ScannedUnit:
    """Return a unit that the site polls, described by its polls."""
    polled = next((one for one in line.bus.quality().units if one.unit == unit), None)
    if polled is None or polled.reply_seconds is None:
        answer = "does not answer its polls"
    elif polled.failing is not None:
        answer = f"fails now: {polled.failing.value}"
    else:
        answer = f"answers its polls after {polled.reply_seconds * 1000:.0f} ms"
    return ScannedUnit(unit, line.names[unit], answer)


def _failed(bus: Bus) -> Counter[int]:
    """Count the failed requests of each unit."""
    return Counter({unit.unit: sum(unit.failed.values()) for unit in bus.quality().units})
