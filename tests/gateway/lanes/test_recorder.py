"""The recorder writes the lanes' entries in order, whatever the disk does."""

from __future__ import annotations

import asyncio
import time

import pytest
from at_work import opened_store
from waiting import until

from drivers.bus.bus import Bus
from drivers.bus.wire import Direction
from drivers.link import LinkSpec
from drivers.modbus.frames import Table, Write, coil_word
from drivers.modbus.unit_requests import ModbusRequests
from gateway.domain.errors import StoreError
from gateway.domain.events import Event, EventKind
from gateway.lanes.recorder import Recorder
from gateway.runtime.clock import SystemClock
from gateway.runtime.supervision import Supervisor
from gateway.store import Entry, EventFilter, Recorded
from simulation.far_ends.barrier import Barrier
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import relay_module

OPEN = Write(Table.COIL, 0, coil_word(on=True))


def entry(text: str) -> Entry:
    return Entry(events=(Event(EventKind.GATE_OPENED, 1, clock_trusted=True, text=text),))


class FlakyJournal:
    """A real journal before which a disk can be taken away."""

    def __init__(self, journal):
        self.journal = journal
        self.broken = False
        self.skips = False
        self.tried = 0

    async def record(self, item: Entry) -> Recorded:
        self.tried += 1
        if self.broken:
            raise StoreError("site.db: the disk is full; nothing was recorded")
        if self.skips:
            return Recorded()
        if item.events[0].description == "poison":
            raise TypeError("cannot be written")
        return await self.journal.record(item)


@pytest.fixture
async def house(tmp_path):
    async with opened_store(tmp_path) as store, Supervisor(clock=SystemClock()) as supervisor:
        journal = FlakyJournal(store.journal)
        recorder = Recorder(journal=journal, clock=SystemClock())
        supervisor.keep("recorder", recorder.run)
        yield recorder, journal, store


async def written(store) -> list[str]:
    page = await store.events.page(EventFilter(), limit=100)
    return [event.description for event in reversed(page.events)]


async def test_entry_waits_until_the_command_that_came_with_it_is_on_a_free_line(house):
    recorder, journal, _ = house
    tried: list[int] = []
    far_end = ModbusFarEnd(units={1: relay_module(Barrier())})
    async with far_end.tcp() as port, asyncio.TaskGroup() as group:
        bus = Bus(
            name="gates",
            spec=LinkSpec(f"tcp://127.0.0.1:{port}"),
            trace=lambda direction, *_: tried.append(journal.tried) if direction is Direction.SENT else None,
        )
        running = group.create_task(bus.run())
        await until(lambda: bus.down_reason is None)
        requests = ModbusRequests(bus=bus, unit=1, framing="tcp", timeout=5)
        sending = group.create_task(requests.write(OPEN, deadline=time.monotonic() + 5, forbidden=lambda: ""))
        recorder.put(entry("granted"))
        await sending
        running.cancel()
    assert tried == [0]
    assert await recorder.drained(within=30)


async def test_everything_is_written_in_order(house):
    recorder, _, store = house
    for number in range(50):
        recorder.put(entry(str(number)))
    assert await recorder.drained(within=30)
    assert await written(store) == [str(number) for number in range(50)]


async def test_a_disk_that_refuses_delays_and_loses_nothing(house):
    recorder, journal, store = house
    journal.broken = True
    recorder.put(entry("a"))
    recorder.put(entry("b"))
    await until(lambda: recorder.failing)
    assert not await recorder.drained(within=0.05)
    assert recorder.waiting == 2
    journal.broken = False
    assert await recorder.drained(within=30)
    first, told, second = await written(store)
    assert (first, second) == ("a", "b")
    assert told.startswith("nothing could be recorded from ")
    assert told.endswith("; 2 records waited, 0 were lost")
    assert recorder.failing == ""
    assert recorder.lost == 0


async def test_one_entry_that_cannot_be_written_holds_up_no_other(house):
    recorder, _, store = house
    for text in ("a", "poison", "b"):
        recorder.put(entry(text))
    assert await recorder.drained(within=30)
    assert await written(store) == ["a", "b"]
    assert recorder.lost == 1


async def test_what_does_not_fit_is_counted(house):
    recorder, journal, _ = house
    journal.broken = True
    for number in range(6000):
        recorder.put(entry(str(number)))
    assert recorder.waiting == 5000
    assert recorder.lost == 1000
    journal.broken = False


async def test_only_what_is_on_disk_is_called_recorded(house):
    recorder, journal, _ = house
    lost = recorder.lost
    recorder.put(entry("a"))
    assert await recorder.recorded(lost=lost, within=30)
    recorder.put(entry("poison"))
    assert not await recorder.recorded(lost=lost, within=5), "it can never be written"
    lost = recorder.lost
    journal.broken = True
    recorder.put(entry("b"))
    assert not await recorder.recorded(lost=lost, within=0.05)
    journal.broken = False
    assert await recorder.recorded(lost=lost, within=30)


async def test_what_did_not_fit_is_not_called_recorded(house):
    recorder, journal, store = house
    journal.broken = True
    for number in range(5000):
        recorder.put(entry(str(number)))
    lost = recorder.lost
    recorder.put(entry("the order"))
    journal.broken, journal.skips = False, True  # thousands of commits would take a slow disk minutes
    assert not await recorder.recorded(lost=lost, within=300)
    assert recorder.waiting == 0
    page = await store.events.page(EventFilter(search="the order"), limit=1)
    assert page.events == ()


async def test_what_is_told_in_between_lets_nobody_seem_recorded_early(house):
    recorder, journal, store = house
    journal.broken = True
    for text in ("a", "b", "c"):
        recorder.put(entry(text))
    await until(lambda: recorder.failing)
    journal.broken = False
    assert await recorder.recorded(lost=recorder.lost, within=30)
    assert [text for text in await written(store) if len(text) == 1] == ["a", "b", "c"]


async def test_a_queue_that_never_empties_fails_nobody(house):
    recorder, _, _ = house
    ended = asyncio.Event()

    async def talk():
        while not ended.is_set():
            while recorder.waiting < 100:
                recorder.put(entry("more"))
            await asyncio.sleep(0.001)  # the pace of the others

    async with asyncio.TaskGroup() as group:
        group.create_task(talk())
        await until(lambda: recorder.waiting)
        recorder.put(entry("mine"))
        assert await recorder.recorded(lost=recorder.lost, within=30)
        ended.set()
