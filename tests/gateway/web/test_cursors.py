"""Programs that pull lists by cursor: nothing is missed."""

from __future__ import annotations

import asyncio
import random

import pytest

from gateway.domain.events import Event, EventKind
from gateway.store import Entry


class Program:
    """Reads as the interface says: from the newest down, until something comes that it has."""

    def __init__(self, gateway, *, page: int = 5, path: str = "/v1/event/list", field: str = "events") -> None:
        self.gateway, self.page, self.path, self.field = gateway, page, path, field
        self.has: set[int] = set()

    async def ask(self, cursor: int, **more: object) -> tuple[list[int], int | None]:
        body = {"cursor_id": cursor, "page_limit": self.page, **more}
        status, answer = await self.gateway.call(self.path, body)
        assert status == 200, answer
        return [record["id"] for record in answer[self.field]], answer.get("next_cursor")

    async def walk(self, **more: object) -> int:
        """One whole walk; how many pages it took."""
        cursor, pages, found = 0, 0, list[int]()
        while True:
            ids, following = await self.ask(cursor, **more)
            pages += 1
            found += ids
            if not ids or self.has & set(ids):
                self.has |= set(found)
                return pages
            cursor = following or 0


@pytest.mark.parametrize("seed", range(3))
async def test_a_consumer_by_cursor_misses_no_event_whoever_writes_meanwhile(gateway, seed):
    chance = random.Random(seed)
    program, written = Program(gateway, page=chance.randint(1, 6)), set[int]()

    async def write(number: int) -> None:
        for _ in range(12):
            late = chance.random() < 0.3
            events = tuple(
                Event(
                    kind=EventKind.GATE_OPENED,
                    date_at=gateway.clock.wall().micros - (3_600_000_000 if late else 0),
                    clock_trusted=chance.random() < 0.9,
                    text=f"Writer {number}.",
                )
                for _ in range(chance.randint(1, 4))
            )
            written.update((await gateway.store.journal.record(Entry(events=events))).event_ids)
            await asyncio.sleep(chance.random() * 0.005)  # writers come between the pages of the readers

    async def read(writers: asyncio.Task) -> None:
        while not writers.done():
            before = frozenset(written)  # on disk before the walk begins
            await program.walk()
            assert before <= program.has
        await program.walk()

    async with asyncio.TaskGroup() as group:
        writers = group.create_task(_together(*(write(number) for number in range(3))))
        group.create_task(read(writers))
    assert written <= program.has


async def _together(*parts) -> None:
    await asyncio.gather(*parts)


async def test_the_same_body_means_the_same_page_to_whoever_asks_it(gateway):
    """A parsed body is remembered; the caller and the page are not."""
    first = await gateway.happened("The first.")
    program = Program(gateway)
    ids, _ = await program.ask(0)
    assert ids[0] == first
    second = await gateway.happened("The second.")
    for user in ("chief", "guard"):
        status, answer = await gateway.call("/v1/event/list", {"cursor_id": 0, "page_limit": 5}, user=user)
        assert status == 200
        assert answer["events"][0]["id"] == second
    for user in ("", "nobody"):
        assert (await gateway.call("/v1/event/list", {"cursor_id": 0, "page_limit": 5}, user=user))[0] != 200


async def test_a_late_event_is_told_as_late_and_comes_at_the_end_of_the_cursors_order(open_gateway):
    async with open_gateway(tells_late=True) as gateway:
        program = Program(gateway)
        await program.walk()
        at_once = await gateway.happened("Now.")
        late = await gateway.happened("An hour ago.", date_at=gateway.clock.wall().micros - 3_600_000_000)
        await program.walk()
        assert late in program.has
        _, answer = await gateway.call("/v1/event/list", {"cursor_id": 0})
        told = {event["id"]: event for event in answer["events"]}
        assert told[late]["late"] is True
        assert told[late]["recorded_at"] > told[late]["date_at"]
        assert told[at_once]["late"] is False
        assert "recorded_at" not in told[at_once]
        assert answer["events"][0]["id"] == late


async def test_entries_and_camera_events_are_read_by_cursor_too(gateway):
    for number in range(7):
        await gateway.call("/v1/entry", {"device_id": 101, "type": "entry", "plate": f"AB {number}"}, method="PUT")
        await gateway.passed()
    for path, field in (("/v1/entry/list", "entries"), ("/v1/camera/event/list", "events")):
        program = Program(gateway, page=3, path=path, field=field)
        assert await program.walk() > 2
        _, answer = await gateway.call(path, {"page_limit": 500})
        assert {record["id"] for record in answer[field]} == program.has
