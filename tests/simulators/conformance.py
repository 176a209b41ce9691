"""The conformance kit: what every driver must do on a bad line. A family's tests inherit it:

    from conformance import Conformance, Driven

    class TestMyGate(Conformance):
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

Every test also watches the event loop: a driver that blocks it fails. Class attributes bend the kit to a device.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from faulty_line import Fault, FaultyLine

from drivers.contract import DeviceConnected, DeviceLost, Driver, GateMoved, PointChanged, PointState, Report
from drivers.link import LinkSpec

_LONGEST_BLOCK = 0.1
_TICK = 0.005


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

    async def until(self, condition: Callable[[], object], *, within: float, what: str) -> None:
        try:
            async with asyncio.timeout(within):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pytest.fail(f"{what}: not within {within:g} s; the last reports: {self.reports[-8:]}")


@dataclass
class Rig:
    """A driver at work over a faulty line."""

    line: FaultyLine
    heard: Heard


class Conformance:
    """Inherit, and say how the device and its driver are made.

    Attributes:
        lines: the kinds of line to try: `serial` (a port under a name that stays), `tcp`.
        offline_seconds: within that, a device that does not answer must be reported lost.
        online_seconds: within that of its return, a device must be reported connected and be served.
        late_seconds: an answer that late still counts.
        steady_under: faults that must not even be noticed.
        recovers_from: faults that may cost the connection, but neither truth nor recovery.
        loses_when_silent: False for a device that says nothing by itself and is not asked (a plain card reader).
    """

    lines: ClassVar[tuple[str, ...]] = ("serial", "tcp")
    offline_seconds: ClassVar[float] = 3.0
    online_seconds: ClassVar[float] = 6.0
    late_seconds: ClassVar[float] = 0.05
    steady_under: ClassVar[tuple[Fault, ...]] = (Fault.BYTEWISE, Fault.SPLIT, Fault.LATE)
    recovers_from: ClassVar[tuple[Fault, ...]] = (Fault.DUPLICATED, Fault.CORRUPTED, Fault.ECHOED)
    fault_seconds: ClassVar[float] = 0.4
    loses_when_silent: ClassVar[bool] = True

    def far_end(self, folder: Path) -> AbstractAsyncContextManager[LinkSpec]:
        """The simulated device, and where it is reached."""
        raise NotImplementedError

    def driven(self, near: LinkSpec) -> Driven:
        """The driver for the device at `near`."""
        raise NotImplementedError

    async def stir(self) -> None:
        """Make the device say something. Nothing to do where the driver polls."""

    def serves(self, report: Report) -> bool:
        """Whether a report proves that the device's own words arrive."""
        return isinstance(report, GateMoved) or (
            isinstance(report, PointChanged) and report.state is not PointState.UNKNOWN
        )

    def is_true(self, report: Report) -> bool:
        """Whether the device may be reported like this; nothing moves or changes in these tests unless stirred."""
        return True

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "kind_of_line" in metafunc.fixturenames:
            metafunc.parametrize("kind_of_line", self.lines)
        if "steady_fault" in metafunc.fixturenames:
            metafunc.parametrize("steady_fault", self.steady_under, ids=str)
        if "fault" in metafunc.fixturenames:
            metafunc.parametrize("fault", self.recovers_from, ids=str)

    @asynccontextmanager
    async def at_work(self, folder: Path, kind: str, *, plugged_in: bool = True) -> AsyncIterator[Rig]:
        """The driver at work. On leaving it is stopped: in under a second, whatever the line does then."""
        async with self.far_end(folder) as far:
            path = folder / "usb-by-id-port" if kind == "serial" else None
            async with FaultyLine(far=far, path=path, late_seconds=self.late_seconds) as line:
                if plugged_in:
                    await line.plug_in()
                heard = Heard()
                driven = self.driven(line.near)
                async with asyncio.TaskGroup() as group, _never_blocks():
                    tasks = [group.create_task(body()) for body in driven.beside]
                    tasks.append(group.create_task(driven.driver.run(heard)))
                    try:
                        yield Rig(line, heard)
                    finally:
                        asked = time.monotonic()
                        for task in tasks:
                            task.cancel()
                        await asyncio.wait(tasks, timeout=5)
                        took = time.monotonic() - asked
                    assert took < 1.0, f"stopping took {took:.2f} s"
                false = [report for report in heard.reports if not self.is_true(report)]
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
        await self.stir()
        await rig.heard.until(
            lambda: any(self.serves(report) for report in rig.heard.reports[since:]),
            within=self.online_seconds,
            what="served",
        )

    async def test_connects_late(self, tmp_path, kind_of_line):
        async with self.at_work(tmp_path, kind_of_line, plugged_in=False) as rig:
            await rig.heard.until(
                lambda: rig.heard.count(DeviceLost), within=self.offline_seconds, what="lost from the start"
            )
            assert rig.heard.count(DeviceConnected) == 0
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

    async def test_does_not_mind(self, tmp_path, kind_of_line, steady_fault):
        async with self.at_work(tmp_path, kind_of_line) as rig:
            rig.line.fault = steady_fault
            await self.connected(rig)
            since = len(rig.heard.reports)
            await self.served(rig, since=since)
            assert rig.heard.count(DeviceLost) == 0

    async def test_survives(self, tmp_path, kind_of_line, fault):
        async with self.at_work(tmp_path, kind_of_line) as rig:
            await self.connected(rig)
            rig.line.fault = fault
            await self.stir()
            await asyncio.sleep(self.fault_seconds)  # for as long, the line is bad
            rig.line.fault = Fault.NONE
            await asyncio.sleep(0.05)  # what was on its way has arrived
            if rig.heard.count(DeviceLost) == rig.heard.count(DeviceConnected):
                await self.connected(rig, times=rig.heard.count(DeviceConnected) + 1)
            else:
                await self.served(rig, since=len(rig.heard.reports))

    async def test_is_lost_in_time_when_it_falls_silent(self, tmp_path, kind_of_line):
        if not self.loses_when_silent:
            pytest.skip("this device is not asked: its silence says nothing")
        async with self.at_work(tmp_path, kind_of_line) as rig:
            await self.connected(rig)
            rig.line.fault = Fault.SILENT
            await rig.heard.until(lambda: rig.heard.count(DeviceLost), within=self.offline_seconds, what="lost")
            rig.line.fault = Fault.NONE
            await self.connected(rig, times=2)
            assert (rig.heard.count(DeviceLost), rig.heard.count(DeviceConnected)) == (1, 2)


@asynccontextmanager
async def _never_blocks() -> AsyncIterator[None]:
    """Fails when the loop stood still for long. Waiting for a processor or for garbage collection does not count."""
    worst = [0.0]

    async def watch() -> None:
        while True:
            before, waited = time.monotonic(), _waited_for_processor()
            await asyncio.sleep(_TICK)
            stood = time.monotonic() - before - _TICK - (_waited_for_processor() - waited)
            worst[0] = max(worst[0], stood)

    gc.disable()
    try:
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(watch())
            try:
                yield
            finally:
                watching.cancel()
    finally:
        gc.enable()
    assert worst[0] < _LONGEST_BLOCK, f"the event loop stood still for {worst[0] * 1000:.0f} ms"


def _waited_for_processor() -> float:
    """Seconds for which this thread was ready to run and others had the processor."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except OSError:  # a kernel without these figures
        return 0.0
