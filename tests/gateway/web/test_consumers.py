"""Programs that pull lists by cursor: nothing is missed, and how far they have come is remembered, never too far."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import sqlite3
from contextlib import closing

import pytest
from waiting import until

from gateway.domain.errors import StoreError
from gateway.domain.events import Event, EventKind
from gateway.domain.read_cursors import PageAnswered
from gateway.store import Consumer, Entry, EventFilter
from gateway.web.read_cursors import Consumers

WITHIN = 20.0


def on_disk(gateway) -> dict[tuple[str, str, str], int]:
    """The marks that a crash in this moment would leave."""
    with closing(sqlite3.connect(gateway.store.database.path)) as connection:
        rows = connection.execute("SELECT account, list, filter, read_to FROM read_cursor")
        return {(account, name, which): read_to for account, name, which, read_to in rows}


async def comes_to(gateway, mark: int, *, account: str = "chief", name: str = "event", which: str = "") -> None:
    await until(lambda: on_disk(gateway).get((account, name, which)) == mark)


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    monkeypatch.setattr("gateway.web.read_cursors.WRITE_SECONDS", 0.01)


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
                    description=f"Writer {number}.",
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
    await program.ask(0)
    await comes_to(gateway, max(written))


async def _together(*parts) -> None:
    await asyncio.gather(*parts)


async def test_a_mark_follows_what_is_certainly_fetched(gateway):
    ids = [await gateway.happened(f"Number {number}.") for number in range(12)]
    program = Program(gateway)
    page, following = await program.ask(0)
    assert on_disk(gateway) == {("chief", "event", ""): following - 1}  # before the answer goes; nothing is fetched yet
    await program.ask(following)
    await comes_to(gateway, ids[-1])
    assert page == ids[:-6:-1]
    more = [await gateway.happened(f"More {number}.") for number in range(12)]
    _, following = await program.ask(0)
    _, following = await program.ask(following)
    await program.ask(0)  # it has broken off: what is between was never asked for
    assert on_disk(gateway)["chief", "event", ""] == ids[-1]
    for _ in range(2):
        _, following = await program.ask(following)
    await program.walk()
    program.has = set(ids)
    await program.walk()
    await program.ask(0)
    await comes_to(gateway, more[-1])


async def test_what_a_crash_leaves_is_never_above_what_was_fetched(gateway):
    chance, program = random.Random(7), Program(gateway, page=4)
    fetched, cursor, began = set[int](), 0, None
    for _ in range(25):
        if count := chance.choice((0, 0, 1, 3, 9)):
            event = Event(kind=EventKind.GATE_OPENED, date_at=1, clock_trusted=True, description="Something.")
            await gateway.store.journal.record(Entry(events=(event,) * count))
        ids, following = await program.ask(cursor)
        mark = on_disk(gateway)["chief", "event", ""]
        began = mark if began is None else began
        fetched |= set(ids)
        known = {number for number in await _all(gateway) if began < number <= on_disk(gateway)["chief", "event", ""]}
        assert known <= fetched
        cursor = 0 if chance.random() < 0.4 else following


async def _all(gateway) -> list[int]:
    with closing(sqlite3.connect(gateway.store.database.path)) as connection:
        return [number for (number,) in connection.execute("SELECT id FROM event")]


async def test_an_answer_that_nobody_takes_moves_no_mark(gateway):
    program = Program(gateway, page=500)
    await program.walk()
    await program.ask(0)
    newest = max(await _all(gateway))
    await comes_to(gateway, newest)
    events = tuple(
        Event(kind=EventKind.GATE_OPENED, date_at=1, clock_trusted=True, description="x" * 900) for _ in range(400)
    )
    made = (await gateway.store.journal.record(Entry(events=events))).event_ids
    session = (await gateway.sign_in("chief"))["SessionID"]
    body = json.dumps({"cursor_id": 0, "page_limit": 500})
    head = (
        f"POST /v1/event/list HTTP/1.1\r\nHost: localhost\r\n"
        f"SessionID: {session}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(deaf, ("127.0.0.1", int(gateway.url.rpartition(":")[2])))
        await loop.sock_sendall(deaf, (head + body).encode())
        assert await loop.sock_recv(deaf, 100)  # it is being answered
    _, following = await program.ask(0)
    assert on_disk(gateway)["chief", "event", ""] == newest
    await program.ask(following)
    await comes_to(gateway, made[-1])


async def test_the_next_request_on_a_connection_waits_for_no_clock(gateway, monkeypatch):
    """It shows by itself that the answer before was taken."""
    monkeypatch.setattr("gateway.web.http.acknowledged.FIRST_LOOK_SECONDS", 3600.0)
    for number in range(60):
        await gateway.happened(f"Number {number}. {'x' * 900}")
    program = Program(gateway, page=50)
    async with asyncio.timeout(WITHIN):
        for _ in range(30):
            await program.walk()
    await program.ask(0)
    await comes_to(gateway, max(await _all(gateway)))


async def test_the_same_body_means_the_same_page_to_whoever_asks_it(gateway):
    """A parsed body is remembered; the consumer whose mark moves, and the page, are not."""
    first = await gateway.happened("The first.")
    program = Program(gateway)
    ids, _ = await program.ask(0)
    assert ids[0] == first
    second = await gateway.happened("The second.")
    for user in ("chief", "guard"):
        status, answer = await gateway.call("/v1/event/list", {"cursor_id": 0, "page_limit": 5}, user=user)
        assert status == 200
        assert answer["events"][0]["id"] == second
    assert {account for account, _, _ in on_disk(gateway)} == {"chief", "guard"}
    for user in ("", "nobody"):
        assert (await gateway.call("/v1/event/list", {"cursor_id": 0, "page_limit": 5}, user=user))[0] != 200


async def test_who_looks_at_pages_or_searches_is_no_consumer_and_each_filter_is_its_own(gateway):
    first = await gateway.happened("One.", kind=EventKind.DEVICE_LOST, device_id=101)
    newest = await gateway.happened("Two.")
    for body in ({}, {"page": 2}, {"cursor_id": 0, "search": "One"}, {"cursor_id": 0, "start_date": "2026-01-01"}):
        await gateway.call("/v1/event/list", body)
    assert on_disk(gateway) == {}
    program = Program(gateway)
    for _ in range(2):
        assert (await program.ask(0, types=[EventKind.DEVICE_LOST], device_ids=[101, 101]))[0] == [first]
    which = f"devices 101 types {int(EventKind.DEVICE_LOST)}"
    await comes_to(gateway, newest, which=which)  # nothing that it asks for is between
    assert set(on_disk(gateway)) == {("chief", "event", which)}


async def test_marks_live_on_and_a_consumer_goes_on_where_it_was(open_gateway):
    async with open_gateway() as gateway:
        program = Program(gateway)
        await program.walk()
        await program.ask(0)
        read = max(await _all(gateway))
    async with open_gateway() as gateway:
        assert on_disk(gateway) == {("chief", "event", ""): read}  # written at the stop
        more = [await gateway.happened("More.") for _ in range(7)]
        program = Program(gateway)
        _, following = await program.ask(0)
        await program.ask(0)
        assert on_disk(gateway) == {("chief", "event", ""): read}
        _, following = await program.ask(0)
        await program.ask(following)
        await program.ask(0)
        await comes_to(gateway, max(*more, *await _all(gateway)))


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
    for path, field, name in (
        ("/v1/entry/list", "entries", "entry"),
        ("/v1/camera/event/list", "events", "camera_event"),
    ):
        program = Program(gateway, page=3, path=path, field=field)
        assert await program.walk() > 2
        newest = max(program.has)
        _, answer = await gateway.call(path, {"page_limit": 500})
        assert {record["id"] for record in answer[field]} == program.has
        await comes_to(gateway, newest, name=name)


async def test_one_program_with_ever_other_filters_takes_no_other_ones_mark(gateway, monkeypatch):
    monkeypatch.setattr("gateway.web.read_cursors.MOST_CONSUMERS", 4)
    await gateway.happened("Something.")
    consumers = Consumers(read_cursors=gateway.store.read_cursors, changes=gateway.store.changes, clock=gateway.clock)
    assert await consumers.recall()
    page = PageAnswered(cursor=0, newest=1, following=1, is_end=False)
    central = Consumer("central", "event")
    await consumers.answered(central, page)
    for number in range(9):
        await consumers.answered(Consumer("till", "event", f"types {number}"), page)
    assert ("central", "event", "") in on_disk(gateway)
    assert len(on_disk(gateway)) == 4
    told = await gateway.store.events.page(EventFilter(types=(int(EventKind.CONSUMER_FORGOTTEN),)))
    assert all(event.description.startswith("the gateway (it follows at most") for event in told.events)
    assert all("deleted how far till has read" in event.description for event in told.events)
    assert len(told.events) == 6


async def test_a_mark_that_the_disk_did_not_forget_does_not_move_past_what_was_read(gateway, monkeypatch):
    for number in range(12):
        await gateway.happened(f"Number {number}.")
    program = Program(gateway)
    await program.ask(0)
    await program.ask(0)
    read_to = max(await _all(gateway))
    await comes_to(gateway, read_to)
    for number in range(12):
        await gateway.happened(f"More {number}.")

    async def refuse(*_, **__):
        raise StoreError("database or disk is full")

    with monkeypatch.context() as full:
        full.setattr(gateway.store.read_cursors, "forget", refuse)
        status, _ = await gateway.call("/status/consumer/forget", {"account": "chief"})
        assert status >= 500
    await program.ask(0)
    await program.ask(0)
    assert on_disk(gateway)["chief", "event", ""] == read_to
