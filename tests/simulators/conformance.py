"""The conformance kit: what every driver must do on a bad line. A family's tests inherit it:

    from conformance import Conformance, Driven

    class TestMyGate(Conformance):
        drives = (MyGate,)
        lines = ("serial", "tcp")

        @asynccontextmanager
        async def far_end(self, folder):          # the simulated device; well-behaved, the line misbehaves
            far = MyFarEnd()
            async with far.tcp() as port:         # or a PseudoTerminal: LinkSpec(f"serial:{terminal.path}")
                yield LinkSpec(f"tcp://127.0.0.1:{port}")

        def driven(self, near):                   # the driver on `near`, and whatever must run beside it
            bus = Bus(name="line", spec=near)
            return Driven(MyGate(device_id=101, bus=bus), beside=(bus.run,))

        def is_true(self, report):                # nothing else may ever be reported; a bad line makes no news
            return not isinstance(report, GateMoved) or report.position in {CLOSED, UNKNOWN}

        def commanded(self):                      # for a gate: how many commands have reached the device
            return len(self.far.commands)

Each class has one test in real time, of the long suite: it holds the loop for no time, and stops within a second.
Class attributes bend the kit to a device.
`tests/drivers/test_conformance_kit.py` shows that each rule can fail, and that no driver is forgotten.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, cast

import pytest
from faulty_line import Fault, FaultyLine
from loop_watch import watch_callbacks
from stopwatch import Stopwatch
from waiting import GENEROUS, Patience

from drivers.contract import (
    DeadlinePassed,
    DeviceConnected,
    DeviceFault,
    DeviceLost,
    Driver,
    DriverError,
    Gate,
    GateMoved,
    LinkError,
    NotPermitted,
    PointChanged,
    PointState,
    Report,
)
from drivers.link import LinkSpec

_LOOK_SECONDS = 0.2
_OTHER = {PointState.ON: PointState.OFF, PointState.OFF: PointState.ON}


@dataclass(frozen=True)
class Driven:
    """A driver, and what must run beside it (its bus)."""

    driver: Driver
    beside: tuple[Callable[[], Awaitable[None]], ...] = ()


class Heard:
    """The driver's reports, waited for with a deadline."""

    def __init__(self):
        self.reports: list[Report] = []
        self._changed = asyncio.Event()

    def __call__(self, report: Report) -> None:
        self.reports.append(report)
        self._changed.set()

    def count(self, kind: type) -> int:
        return sum(isinstance(report, kind) for report in self.reports)

    async def next(self) -> None:
        """Wait for another report, without limit."""
        self._changed.clear()
        await self._changed.wait()

    async def until(self, condition: Callable[[], object], *, within: float, what: str) -> None:
        patience = Patience(within, clock=time.monotonic)
        while not condition():
            if patience.is_over():
                pytest.fail(f"{what}: not within {within:g} s; the last reports: {self.reports[-8:]}")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self.next()


@dataclass
class Rig:
    """A driver at work over a faulty line."""

    line: FaultyLine
    heard: Heard
    driver: Driver
    stopped_in: float = 0.0


class Conformance:
    """Inherit, and say how the device and its driver are made.

    Attributes:
        drives: the driver under test; several when the tests of one class take turns.
        lines: the kinds of line to try: `serial` (a port under a name that stays), `tcp`.
        offline_seconds: within that, a device that does not answer must be reported lost.
        online_seconds: within that of its return, a device must be reported connected and be served.
        late_seconds: an answer that late still counts.
        steady_under: faults that must not even be noticed.
        recovers_from: faults that may cost the connection, but neither truth nor recovery.
        fault_seconds: for as long, the line is bad.
        vain_seconds: for as long, a device that was never there stays away; some tries fall into that.
        loses_when_silent: False for a device that says nothing by itself and is not asked (a plain card reader).
        told_once: whether each stir is one happening, which must not be reported twice, whatever the line does.
        fresh_within: so many times may the device be asked from a stir to its report; more means that old answers are
            taken for new ones. None where asking and telling have nothing to do with each other.
        numbered: whether an answer says which request it answers, so that a late one cannot be taken for another's; or
            nothing is asked at all.
        lag_seconds: so late is everything, where answers bear no numbers, in the test of that.
        longest_block: for so many seconds may one callback hold up the loop: what the house allows.
    """

    drives: ClassVar[tuple[type, ...]] = ()
    lines: ClassVar[tuple[str, ...]] = ("serial", "tcp")
    offline_seconds: ClassVar[float] = 3.0
    online_seconds: ClassVar[float] = 6.0
    late_seconds: ClassVar[float] = 0.05
    steady_under: ClassVar[tuple[Fault, ...]] = (Fault.BYTEWISE, Fault.SPLIT, Fault.LATE)
    recovers_from: ClassVar[tuple[Fault, ...]] = (Fault.DUPLICATED, Fault.CORRUPTED, Fault.ECHOED)
    fault_seconds: ClassVar[float] = 0.4
    vain_seconds: ClassVar[float] = 0.4
    loses_when_silent: ClassVar[bool] = True
    told_once: ClassVar[bool] = False
    fresh_within: ClassVar[int | None] = 3
    numbered: ClassVar[bool] = False
    lag_seconds: ClassVar[float] = 1.15
    longest_block: ClassVar[float] = 0.005

    def far_end(self, folder: Path) -> AbstractAsyncContextManager[LinkSpec]:
        """The simulated device, and where it is reached."""
        raise NotImplementedError

    def driven(self, near: LinkSpec) -> Driven:
        """The driver for the device at `near`."""
        raise NotImplementedError

    async def stir(self) -> None:
        """Make the device say something. Nothing to do where the driver polls."""

    def commanded(self) -> int:
        """Return how many commands have reached the device. Needed where the driver can close a gate."""
        raise NotImplementedError

    def serves(self, report: Report) -> bool:
        """Return whether a report proves that the device's own words arrive."""
        return isinstance(report, GateMoved) or (
            isinstance(report, PointChanged) and report.state is not PointState.UNKNOWN
        )

    def is_true(self, report: Report) -> bool:
        """Return whether this report of the device is true; nothing moves or changes in these tests unless stirred."""
        return True

    def denies(self, report: Report) -> bool:
        """Return whether a report says that the last stir has not happened."""
        return (
            isinstance(report, PointChanged)
            and report.state is not PointState.UNKNOWN
            and self.serves(replace(report, state=_OTHER[report.state]))
        )

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "kind_of_line" in metafunc.fixturenames:
            metafunc.parametrize("kind_of_line", self.lines)
        if "steady_fault" in metafunc.fixturenames:
            metafunc.parametrize("steady_fault", self.steady_under, ids=str)
        if "fault" in metafunc.fixturenames:
            metafunc.parametrize("fault", self.recovers_from, ids=str)

    @asynccontextmanager
    async def at_work(self, folder: Path, kind: str, *, plugged_in: bool = True) -> AsyncIterator[Rig]:
        """The driver at work. On leaving it is stopped, whatever the line does then."""
        async with self.far_end(folder) as far:
            path = folder / "usb-by-id-port" if kind == "serial" else None
            async with FaultyLine(far=far, path=path, late_seconds=self.late_seconds) as line:
                if plugged_in:
                    await line.plug_in()
                heard = Heard()
                driven = self.driven(line.near)
                assert type(driven.driver) in self.drives, "`drives` names the driver under test"
                rig = Rig(line, heard, driven.driver)
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(body()) for body in driven.beside]
                    tasks.append(group.create_task(driven.driver.run(heard)))
                    try:
                        yield rig
                    finally:
                        watch = Stopwatch()
                        for task in tasks:
                            task.cancel()
                        _, at_work = await asyncio.wait(tasks, timeout=GENEROUS)
                        rig.stopped_in = watch.seconds()
                    assert not at_work, "it does not stop"
                false = [report for report in heard.reports if not (_says_unknown(report) or self.is_true(report))]
                assert not false, f"reported, though the device never said so: {false[:3]}"

    async def connected(self, rig: Rig, *, times: int = 1) -> None:
        """Wait until the device is connected for that many times, and served since."""
        await rig.heard.until(
            lambda: rig.heard.count(DeviceConnected) >= times, within=self.online_seconds, what="connected"
        )
        since = max(n for n, report in enumerate(rig.heard.reports) if isinstance(report, DeviceConnected))
        await self.served(rig, since=since)

    async def served(self, rig: Rig, *, since: int) -> None:
        """Wait for a proof among the reports from number `since` on."""
        asked = rig.line.asked
        await self.stir()
        await rig.heard.until(
            lambda: any(self.serves(report) for report in rig.heard.reports[since:]),
            within=self.online_seconds,
            what="served",
        )
        asked = rig.line.asked - asked
        if self.fresh_within is not None:
            assert asked <= self.fresh_within, f"old answers were taken for new ones: it had to be asked {asked} times"

    @pytest.mark.long("the loop's delay and the length of a stop, in real time")
    async def test_holds_the_loop_for_no_time_and_stops_within_a_second(self, tmp_path, kind_of_line):
        await asyncio.to_thread(int)  # starts the first thread of the pool, for which the loop has to wait
        with watch_callbacks(limit=self.longest_block) as watched:
            async with self.at_work(tmp_path, kind_of_line) as rig:
                await self.connected(rig)
                await rig.line.unplug()
                await rig.heard.until(lambda: rig.heard.count(DeviceLost), within=self.offline_seconds, what="lost")
                await rig.line.plug_in()
                await self.connected(rig, times=2)
                rig.line.fault = Fault.SILENT
                await asyncio.sleep(self.fault_seconds)  # for as long, the line is bad
        worst = watched.worst()
        assert worst is None, f"the event loop stood still for {worst.seconds * 1000:.1f} ms in {watched.too_long}"
        assert rig.stopped_in < 1.0, f"stopping took {rig.stopped_in:.2f} s"

    async def test_connects_late(self, tmp_path, kind_of_line):
        async with self.at_work(tmp_path, kind_of_line, plugged_in=False) as rig:
            await rig.heard.until(
                lambda: rig.heard.count(DeviceLost), within=self.offline_seconds, what="lost from the start"
            )
            assert rig.heard.count(DeviceConnected) == 0
            await asyncio.sleep(self.vain_seconds)  # the driver tries in vain
            await rig.line.plug_in()
            await self.connected(rig)
            assert rig.heard.count(DeviceLost) == 1, "lost is said once"

    async def test_comes_back_after_it_was_pulled_out(self, tmp_path, kind_of_line):
        async with self.at_work(tmp_path, kind_of_line) as rig:
            await self.connected(rig)
            await rig.line.unplug()
            await rig.heard.until(lambda: rig.heard.count(DeviceLost), within=self.offline_seconds, what="lost")
            await rig.line.plug_in()
            await self.connected(rig, times=2)
            assert (rig.heard.count(DeviceLost), rig.heard.count(DeviceConnected)) == (1, 2)

    async def test_comes_back_as_another_port_under_the_same_name(self, tmp_path, kind_of_line):
        if kind_of_line != "serial":
            pytest.skip("a network address is no name of a port")
        async with self.at_work(tmp_path, kind_of_line) as rig:
            await self.connected(rig)
            before = rig.line.device
            with open(before, "rb", buffering=0, opener=_as_a_guest):  # the system gives the name to no other port
                await rig.line.unplug()
                await rig.heard.until(lambda: rig.heard.count(DeviceLost), within=self.offline_seconds, what="lost")
                await rig.line.plug_in()
                assert rig.line.device != before
                await self.connected(rig, times=2)

    async def test_does_not_mind(self, tmp_path, kind_of_line, steady_fault):
        async with self.at_work(tmp_path, kind_of_line) as rig:
            rig.line.fault = steady_fault
            await self.connected(rig)
            since = len(rig.heard.reports)
            await self.served(rig, since=since)
            assert rig.heard.count(DeviceLost) == 0, "it was lost by what it is not to mind"

    async def test_survives(self, tmp_path, kind_of_line, fault):
        async with self.at_work(tmp_path, kind_of_line) as rig:
            await self.connected(rig)
            since = len(rig.heard.reports)
            rig.line.fault = fault
            await self.stir()
            await asyncio.sleep(self.fault_seconds)  # for as long, the line is bad
            told = sum(self.serves(report) for report in rig.heard.reports[since:])
            assert told <= 1 or not self.told_once, f"one happening was reported {told} times"
            rig.line.fault = Fault.NONE
            await asyncio.sleep(0.05)  # what was on its way has arrived
            if rig.heard.count(DeviceLost) == rig.heard.count(DeviceConnected):
                await self.connected(rig, times=rig.heard.count(DeviceConnected) + 1)
            else:
                await self.served(rig, since=len(rig.heard.reports))

    @pytest.mark.long("the seconds after which a silent device is lost")
    async def test_is_lost_in_time_when_it_falls_silent(self, tmp_path, kind_of_line):
        if not self.loses_when_silent:
            pytest.skip("this device is not asked: its silence says nothing")
        async with self.at_work(tmp_path, kind_of_line) as rig:
            await self.connected(rig)
            rig.line.fault = Fault.SILENT
            await rig.heard.until(lambda: rig.heard.count(DeviceLost), within=self.offline_seconds, what="lost")
            rig.line.fault = Fault.NONE
            await self.connected(rig, times=2)
            assert rig.heard.count(DeviceLost) == 1, "lost is said once"
            assert rig.heard.count(DeviceConnected) == 2

    async def refuses(
        self, rig: Rig, *errors: type[DriverError], seconds: float | None = None, forbidden: str = ""
    ) -> None:
        """Give each command of a gate, with a deadline in so many seconds, and see it refused."""
        gate = cast("Gate", rig.driver)
        deadline = time.monotonic() + (self.online_seconds if seconds is None else seconds)
        for command in (gate.close, gate.open, gate.stop):
            with pytest.raises((*errors, DeviceFault)):  # a command that the device lacks is its fault
                await command(deadline=deadline, forbidden=lambda: forbidden)

    def _closes(self) -> None:
        if not all(_can_close(driver) for driver in self.drives):
            pytest.skip("it commands no gate")

    async def test_sends_no_command_that_is_forbidden(self, tmp_path, kind_of_line):
        self._closes()
        async with self.at_work(tmp_path, kind_of_line) as rig:
            await self.connected(rig)
            await self.refuses(rig, NotPermitted, forbidden="a loop is active")
            await self.served(rig, since=len(rig.heard.reports))
            assert self.commanded() == 0, "a forbidden command was sent"

    async def test_sends_no_command_after_its_deadline(self, tmp_path, kind_of_line):
        self._closes()
        async with self.at_work(tmp_path, kind_of_line) as rig:
            await self.connected(rig)
            await self.refuses(rig, DeadlinePassed, seconds=-0.001)
            await self.served(rig, since=len(rig.heard.reports))
            assert self.commanded() == 0, "a command was sent after its deadline"

    async def test_keeps_no_command_for_a_line_that_comes_back(self, tmp_path, kind_of_line):
        self._closes()
        async with self.at_work(tmp_path, kind_of_line) as rig:
            await self.connected(rig)
            await rig.line.unplug()
            await self.refuses(rig, LinkError, DeadlinePassed)
            await rig.heard.until(lambda: rig.heard.count(DeviceLost), within=self.offline_seconds, what="lost")
            await self.refuses(rig, LinkError, DeadlinePassed)
            await rig.line.plug_in()
            await self.connected(rig, times=2)
            assert self.commanded() == 0, "a command was kept for a device that was away"

    @pytest.mark.long("the seconds by which a line lags")
    async def test_tells_nothing_old_as_new_on_a_line_that_lags(self, tmp_path, kind_of_line):
        if self.numbered:
            pytest.skip("its answers bear numbers, or nothing is asked")
        async with self.at_work(tmp_path, kind_of_line) as rig:
            await self.connected(rig)
            rig.line.late_seconds, rig.line.fault = self.lag_seconds, Fault.LATE
            await asyncio.sleep(self.lag_seconds + 0.3)  # what comes from now on is late
            since = len(rig.heard.reports)
            await self.stir()
            stirred_at = time.monotonic()
            await asyncio.sleep(self.lag_seconds + 0.5)  # what was asked before has come, late
            rig.line.fault = Fault.NONE
            await rig.heard.until(
                lambda: any(self.serves(report) for report in rig.heard.reports[since:]),
                within=self.online_seconds,
                what="served once the line is well again",
            )
            old = [r for r in rig.heard.reports[since:] if r.at > stirred_at and self.denies(r)]
            assert not old, f"an answer that came late was told as fresh: {old[:3]}"


def _as_a_guest(path: str, flags: int) -> int:
    """Open a terminal, which does not become that of this process."""
    return os.open(path, flags | os.O_NOCTTY | os.O_NONBLOCK)


def _can_close(driver: type) -> bool:
    close = getattr(driver, "close", None)
    return close is not None and "forbidden" in inspect.signature(close).parameters


def _says_unknown(report: Report) -> bool:
    """Return whether the report says no more than that a point is not known, as after each loss of the line."""
    return isinstance(report, PointChanged) and report.state is PointState.UNKNOWN
