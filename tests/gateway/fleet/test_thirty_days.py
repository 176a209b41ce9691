"""Thirty days without a server on virtual time, then everything is in the stream, each once and in order.

Days pass on a clock of the test. Each day brings events with and without footage, and retention that removes whatever
nobody holds. Afterwards the real server is killed, the line is cut, and the read mark on disk is lost again and again.
Two planted faults show that the check finds what is lost and what is there twice.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import nats
import pytest
from fleet_scene import NAME, connection, events_up, running
from nats_server import NatsServer
from waiting import until

from gateway.app.expiry import EventKeeping
from gateway.domain.events import Event, EventKind
from gateway.domain.passages import Moment
from gateway.fleet.events_up import SENT
from gateway.fleet.names import STREAM
from gateway.runtime.clock import Stamp
from gateway.store import Consumer, Entry, ExpiryLimits, ReadCursor, Store

DAY = 86_400_000_000
DAYS = 30
WITH_FOOTAGE, EVENTS = 3, 20
"""So many times a day a camera sees something, with so many events each."""
TROUBLES = 3
LIMITS = ExpiryLimits(days=2, most_days=800, most_events=1_000_000, transaction_days=2, incident_days=2)


@pytest.fixture
def server(real_server) -> NatsServer:
    return real_server


class Days:
    """A trusted clock that the test sets."""

    def __init__(self) -> None:
        self.day = 0.0

    def monotonic(self) -> float:
        return self.day * 86_400

    def wall(self) -> Stamp:
        return Stamp(20_454 * DAY + int(self.day * DAY), trusted=True)


class House:
    """A gateway's store, what was recorded in it, and its retention."""

    def __init__(self, store: Store, clock: Days) -> None:
        self.store, self.clock = store, clock
        self.made: dict[str, list[int]] = {name: [] for name in SENT}
        self.expired = 0
        self._keeping = EventKeeping(
            expiry=store.expiry,
            read_cursors=store.read_cursors,
            journal=store.journal,
            clock=clock,
            limits=LIMITS,
            consumer_days=DAYS + 1,
            forget=self._forget,
        )

    async def _forget(self, number: int) -> None:
        self.expired += 1

    async def pass_day(self) -> None:
        """Let a day go by: events happen, and what has expired goes."""
        for _ in range(WITH_FOOTAGE):
            self.clock.day += 1 / WITH_FOOTAGE
            now = self.clock.wall().micros
            event = Event(EventKind.VEHICLE_PASSED, now, clock_trusted=True, description="passed", lane_id="entry")
            seen = Moment(201, "Vehicle passed", "", now - 5_000_000, now + 5_000_000, clock_trusted=True)
            recorded = await self.store.journal.record(Entry(events=(event,) * EVENTS, moments=(seen,)))
            self.made["event"] += recorded.event_ids
            self.made["camera_event"] += recorded.camera_event_ids
            for number in recorded.camera_event_ids:
                await self.store.camera_events.mark_ready(number)
        await self._keeping.look()

    async def lose_marks(self) -> None:
        """Put the read marks on disk back, as a crash does before they are written."""
        for name in SENT:
            consumer, now = Consumer("fleet", name, "stream"), self.clock.wall().micros
            await self.store.read_cursors.forget([consumer])
            await self.store.read_cursors.save([ReadCursor(consumer, 0, read_at=now, began_at=now)])


@asynccontextmanager
async def house(folder) -> AsyncIterator[House]:
    clock = Days()
    store = Store(folder=folder, site_name="North", sends=False, now=lambda: clock.wall().micros)
    await store.open()
    try:
        async with running(store.run()):
            yield House(store, clock)
    finally:
        await store.close()


async def faults_of(broker: nats.NATS, made: dict[str, list[int]]) -> list[str]:
    """Compare the stream with what was recorded: what is lost, what is there twice, what stands out of order."""
    found = []
    for name in SENT:
        there = await in_stream(broker, NAME.events(name))
        if lost := set(made[name]) - set(there):
            found.append(f"{name}: {len(lost)} lost")
        if twice := [number for number, count in Counter(there).items() if count > 1]:
            found.append(f"{name}: {len(twice)} twice")
        if not found and there != made[name]:
            found.append(f"{name}: not in order")
    return found


async def in_stream(broker: nats.NATS, subject: str) -> list[int]:
    js = broker.jetstream()
    count = ((await js.stream_info(STREAM, subjects_filter=subject)).state.subjects or {}).get(subject, 0)
    subscription = await js.subscribe(subject, ordered_consumer=True)
    try:
        return [json.loads((await subscription.next_msg(timeout=30)).data)["id"] for _ in range(count)]
    finally:
        await subscription.unsubscribe()


async def return_to_server(scene: House, server, relay, **more) -> None:
    """Send everything, while the line is cut, marks are lost, and the server is killed."""
    url, newest = f"nats://127.0.0.1:{relay.port}", scene.made["event"][-1]
    for trouble in range(TROUBLES):
        up = events_up(scene.store, clock=scene.clock, **more)
        async with running(connection(url, up).run()):
            share = newest * (trouble + 1) // (TROUBLES + 1)
            await until(lambda up=up, share=share: up.sent_to >= share)
            await relay.cut()
            if trouble == 1:
                server.kill()
                server.start()
            await relay.join()
        await scene.lose_marks()
    up = events_up(scene.store, clock=scene.clock, **more)
    async with running(connection(url, up).run()):
        await until(lambda: up.sent_to == newest and everything_sent(up))


async def everything_sent(up) -> bool:
    await up.count()
    return up.waiting == 0


@pytest.mark.long("a real NATS server")
async def test_after_thirty_days_everything_is_in_the_stream_once_and_in_order(server, broker, relay, tmp_path):
    async with house(tmp_path) as scene:
        await events_up(scene.store, clock=scene.clock).hold()
        for _ in range(DAYS):
            await scene.pass_day()
        assert scene.expired == 0
        await return_to_server(scene, server, relay)
        async with await nats.connect(server.url) as client:
            assert await faults_of(client, scene.made) == []
        scene.clock.day += 3
        await scene.pass_day()
        assert scene.expired == DAYS * WITH_FOOTAGE, "what is in the stream expires as usual"


@pytest.mark.long("a real NATS server")
@pytest.mark.parametrize(("fault", "said"), [("no mark", "lost"), ("another box each time", "twice")])
async def test_a_planted_fault_is_found(server, broker, relay, tmp_path, fault, said):
    numbers = itertools.count(1)

    async def another() -> int:
        return next(numbers)

    async with house(tmp_path) as scene:
        if fault == "another box each time":
            await events_up(scene.store, clock=scene.clock).hold()
        for _ in range(5):
            await scene.pass_day()
        more = {"box_number": another} if fault == "another box each time" else {}
        await return_to_server(scene, server, relay, **more)
        async with await nats.connect(server.url) as client:
            assert any(said in one for one in await faults_of(client, scene.made))
