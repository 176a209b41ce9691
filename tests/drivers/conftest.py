"""Far ends and listeners that the tests of drivers share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import at_work
import pytest

from drivers.contract import GateMoved, GatePosition, Report
from drivers.modbus.profile import GateProfile, load_profile

PROFILES = Path(__file__).parents[2] / "drivers" / "profiles"


class Listener:
    """Keeps reports, and waits for them."""

    def __init__(self):
        self.reports: list[Report] = []
        self._changed = asyncio.Event()

    def __call__(self, report: Report) -> None:
        self.reports.append(report)
        self._changed.set()

    def of(self, kind: type) -> list:
        return [report for report in self.reports if isinstance(report, kind)]

    def positions(self) -> list[GatePosition]:
        """The positions of the gate, each time that it changed."""
        return [position for position, _ in groupby(moved.position for moved in self.of(GateMoved))]

    async def hears(self, condition: Callable[[], object], within: float) -> None:
        """Wait for reports that make it true. Raises TimeoutError."""
        async with asyncio.timeout(within):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def until(self, condition: Callable[[], object], within: float = 20.0) -> None:
        try:
            await self.hears(condition, within)
        except TimeoutError:
            pytest.fail(f"not within {within} s; reports: {self.reports[-12:]}")


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def running():
    """A context in which the given coroutines run; they are cancelled at its end."""
    return at_work.running


@pytest.fixture
def relay_profile() -> GateProfile:
    return load_profile(PROFILES / "relay-barrier.toml")


@pytest.fixture
def came_profile() -> GateProfile:
    return load_profile(PROFILES / "came-gard-ptx.toml")


@pytest.fixture
def profiles() -> Path:
    return PROFILES
