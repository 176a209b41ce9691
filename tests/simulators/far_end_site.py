"""One lane with a real driver at a simulated relay barrier over TCP, and a clock of its own."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from lanes_at_work import lanes_at_work
from waiting import until

from drivers.contract import CardPresented, GatePosition, PointState
from drivers.modbus.profile import load_profile, load_unit_profile
from drivers.profile_file import SHIPPED_PROFILES
from gateway.domain.credentials import Card
from gateway.domain.events import EventKind
from gateway.lanes import Lanes
from gateway.lanes.snapshots import LaneSnapshot
from gateway.runtime.clock import SystemClock
from gateway.site import Site
from gateway.store import Store
from gateway.store.events.passages import RecordedPassage
from simulation.far_ends.barrier import Barrier
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import ProfileWiring

GATE, READER, INPUTS = 101, 102, 103
_PROFILE = load_profile(SHIPPED_PROFILES / "relay-barrier.toml")
_INPUTS = load_unit_profile(SHIPPED_PROFILES / "inputs-8.toml")
_WITHIN = 30.0


def site_of(port: int, *, lane: Mapping[str, object], **sections: object) -> Site:
    """An entry lane with its barrier on a port of this machine."""
    wanted = {
        "id": "entry",
        "name": "Entry",
        "gate": GATE,
        "readers": [READER],
        "inputs": [
            {"role": "arming", "device": GATE, "point": "arming_loop"},
            {"role": "closing", "device": GATE, "point": "closing_loop"},
            {"role": "safety", "device": GATE, "point": "photocell"},
        ],
        "closes": "gateway",
        "opening_seconds": 2,
        "closing_seconds": 2,
        "waiting_seconds": 2,
        "back_out_seconds": 1,
        "clear_seconds": 0.3,
        "clear_after_loss_seconds": 0.3,
    }
    return Site.model_validate(
        {
            "site": {"name": "North"},
            "links": [
                {"id": "barrier", "url": f"tcp://127.0.0.1:{port}"},
                {"id": "desk", "url": "serial:/dev/no-such-port"},
            ],
            "devices": [
                {"id": GATE, "name": "Barrier", "driver": "modbus-gate", "link": "barrier", "profile": "relay-barrier"},
                {
                    "id": INPUTS,
                    "name": "Loops",
                    "driver": "modbus-io",
                    "link": "barrier",
                    "profile": "inputs-8",
                    "unit": 2,
                },
                {"id": READER, "name": "Reader", "driver": "serial-reader", "link": "desk"},
            ],
            "lanes": [wanted | dict(lane)],
            **sections,
        }
    )


class FarEndLane:
    """One life of the gateway's lanes. The barrier behind it, and the store's folder, outlive it."""

    def __init__(self, *, lanes: Lanes, store: Store, barrier: Barrier, clock: SystemClock) -> None:
        self.lanes = lanes
        self.store = store
        self.barrier = barrier
        self.clock = clock

    def arming(self, *, occupied: bool) -> None:
        """A vehicle comes to the loop in front, or leaves it."""
        self.barrier.set_arming_loop(occupied=occupied, now=time.monotonic())

    def under(self, *, occupied: bool) -> None:
        """A vehicle comes under the arm, or leaves."""
        self.barrier.set_closing_loop(occupied=occupied, now=time.monotonic())

    def present(self, number: str) -> None:
        """Hold a card before the reader."""
        self.lanes.report(CardPresented(READER, 0, 0, number, time.monotonic()))

    async def arrives(self, number: str) -> None:
        """A vehicle comes, and its card is held before the reader."""
        self.arming(occupied=True)
        await self.sees(lambda shown: shown.vehicle is PointState.ON)
        self.present(number)

    async def let_in(self, number: str) -> None:
        """A vehicle comes, and the gate opens for its card."""
        await self.arrives(number)
        await self.sees(lambda shown: shown.position is GatePosition.OPEN)

    async def drives_through(self) -> None:
        """A vehicle that stands on the arming loop drives under the open gate and away."""
        self.under(occupied=True)
        await self.sees(lambda shown: shown.under is PointState.ON)
        self.arming(occupied=False)
        await self.sees(lambda shown: shown.vehicle is PointState.OFF)
        self.under(occupied=False)
        await self.sees(lambda shown: shown.under is PointState.OFF)

    def shown(self) -> LaneSnapshot:
        """The lane as people see it."""
        return self.lanes.lanes()[0]

    async def sees(self, condition: Callable[[LaneSnapshot], object]) -> LaneSnapshot:
        """Wait until the lane is shown so."""
        await until(lambda: condition(self.shown()))
        return self.shown()

    async def granted(self, times: int) -> None:
        """Wait until so many were let in."""
        await self._recorded(EventKind.ACCESS_GRANTED, times)

    async def passed(self, times: int) -> None:
        """Wait until so many have passed."""
        await self._recorded(EventKind.VEHICLE_PASSED, times)

    async def _recorded(self, kind: EventKind, times: int) -> None:
        async def are_recorded() -> bool:
            return (await self.kinds()).count(kind) >= times

        await until(are_recorded)

    async def kinds(self) -> list[EventKind]:
        """Return what was recorded, the oldest first."""
        assert await self.lanes.recorder.drained(within=_WITHIN)
        return [EventKind(event.type) for event in reversed(await self.store.events.latest(limit=100))]

    async def told(self, kind: EventKind) -> str:
        """Wait until an event of this kind is recorded; its newest text."""

        async def texts() -> list[str]:
            return [event.description for event in await self.store.events.latest(limit=100) if event.type == kind]

        return (await until(texts))[0]

    async def passages(self) -> list[RecordedPassage]:
        """Passages, the oldest first."""
        assert await self.lanes.recorder.drained(within=_WITHIN)
        return list(reversed(await self.store.passages.page()))


@asynccontextmanager
async def a_barrier(*, warns_seconds: float = 0.0) -> AsyncIterator[tuple[Barrier, ModbusFarEnd, int]]:
    """A barrier with limit switches behind a relay module that listens on a port."""
    barrier = Barrier(travel_seconds=0.1, warns_seconds=warns_seconds)
    units = {1: ProfileWiring(profile=_PROFILE, barrier=barrier), 2: ProfileWiring(profile=_INPUTS, barrier=barrier)}
    far_end = ModbusFarEnd(units=units)
    async with far_end.tcp() as port:
        yield barrier, far_end, port


@asynccontextmanager
async def alive(
    folder: Path,
    *,
    barrier: Barrier,
    port: int,
    cards: tuple[Card, ...] = (),
    clock: SystemClock | None = None,
    lane: Mapping[str, object] | None = None,
    **sections: object,
) -> AsyncIterator[FarEndLane]:
    """The lanes of the site with their store and drivers, from start to stop."""
    clock = clock or SystemClock()
    site = site_of(port, lane=lane or {}, **sections)
    async with lanes_at_work(folder, site, clock=clock, cards=cards, devices={GATE, INPUTS}) as (lanes, store):
        yield FarEndLane(lanes=lanes, store=store, barrier=barrier, clock=clock)
