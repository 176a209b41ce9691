"""`/v1/event/list` over HTTP among ten million events; and requests per second beside a bare aiohttp handler.

EVENTS=1000000 makes it smaller; EVENT_STORE names a folder that keeps the events for the next run.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import pytest
from figures import show
from large_store import APART, FIRST_AT, fill_events

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]

EVENTS = int(os.environ.get("EVENTS", "10000000"))
HOUSE = Path(__file__).with_name("event_house.py")
DEVICES = 40
LIMIT_MS = 5.0
SECONDS = 3.0
CLIENTS = 8


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of so many events, 40 devices and 8 kinds of them, the rarest one in 5,000."""
    kept = os.environ.get("EVENT_STORE")
    folder = Path(kept) if kept else tmp_path_factory.mktemp("events")
    if not (folder / "site.db").exists():
        folder.mkdir(parents=True, exist_ok=True)
        asyncio.run(fill_events(folder, events=EVENTS, devices=DEVICES))
    return folder


@dataclass(frozen=True)
class Address:
    port: int
    token: str


@contextmanager
def serving(kind: str, given: Path, *, watched: bool = False) -> Iterator[Address]:
    """A house in a process of its own; when `watched`, no callback of its loop may have taken longer than 5 ms."""
    command = [sys.executable, str(HOUSE), kind, str(given), *(["watched"] if watched else [])]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "simulators")}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin
        assert process.stdout
        port, token = process.stdout.readline().split()
        try:
            yield Address(int(port), token)
        finally:
            process.stdin.close()
            held = json.loads(process.stdout.readline() or "[]")
            if held:
                print(f"callbacks of the loop over 5 ms: {held}")
    assert len(held) <= 1, held  # one short wait is let go, as in loop_watch


class Client(asyncio.Protocol):
    """One connection that asks the same again and again. Answers are known by their length alone after the first."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.got = bytearray()
        self.answered: asyncio.Future[bytes] | None = None
        self.length = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.got += data
        if not self.length and (end := self.got.find(b"\r\n\r\n")) > 0:
            head = bytes(self.got[:end]).lower()
            self.length = end + 4 + int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        if self.length and len(self.got) >= self.length:
            whole, self.got, self.length = bytes(self.got), bytearray(), 0
            assert self.answered
            self.answered.set_result(whole)

    async def ask(self, request: bytes) -> bytes:
        assert self.transport
        self.answered = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self.answered


def request_of(address: Address, body: object) -> bytes:
    sent = json.dumps(body).encode()
    return (
        f"POST /v1/event/list HTTP/1.1\r\nHost: 127.0.0.1:{address.port}\r\nSessionID: {address.token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(sent)}\r\n\r\n"
    ).encode() + sent


async def connected(address: Address) -> Client:
    _, client = await asyncio.get_running_loop().create_connection(Client, "127.0.0.1", address.port)
    return client


async def waits_of(address: Address, bodies: list[object]) -> tuple[list[float], dict]:
    """Return the time of each request in ms, one after the other, and the last answer."""
    client = await connected(address)
    waits = []
    answer = b""
    for body in bodies:
        request = request_of(address, body)
        start = time.perf_counter()
        answer = await client.ask(request)
        waits.append((time.perf_counter() - start) * 1000)
    client.transport.close()
    head, _, sent = answer.partition(b"\r\n\r\n")
    assert b" 200 " in head[:20], answer[:300]
    return sorted(waits), json.loads(sent)


async def rate_of(address: Address, bodies: list[object]) -> float:
    """Requests per second of some connections that ask at once."""
    requests = cycle([request_of(address, body) for body in bodies])
    clients = [await connected(address) for _ in range(CLIENTS)]
    done, end = 0, time.perf_counter() + SECONDS

    async def ask(client: Client) -> None:
        nonlocal done
        while time.perf_counter() < end:
            await client.ask(next(requests))
            done += 1

    await asyncio.gather(*(ask(client) for client in clients))
    for client in clients:
        client.transport.close()
    return done / SECONDS


def test_pages_among_many_events(folder):
    middle = EVENTS // 2
    day = 86_400 * 1_000_000 // APART

    def at(event):
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime((FIRST_AT + event * APART) / 1e6))

    some = {"start_date": at(EVENTS // 4), "end_date": at(EVENTS // 2)}
    kinds = {
        "first page again": lambda n: {"cursor_id": 0},
        "first page": lambda n: {"page_limit": 15 + n % 20},
        "by cursor, deep": lambda n: {"cursor_id": middle - 25 * n},
        "by page number, deep": lambda n: {"page": middle // 25 - n},
        "one device": lambda n: {"device_ids": [101 + n % DEVICES]},
        "one device, deep": lambda n: {"device_ids": [101 + n % DEVICES], "page": middle // 25 // DEVICES},
        "five devices, deep": lambda n: {"device_ids": [101 + (n + k) % DEVICES for k in range(5)], "page": 9_000},
        "one type": lambda n: {"types": [(101, 102, 103, 104, 106)[n % 5]]},
        "a rare type, deep": lambda n: {"types": [202], "page": 40 - n % 20},
        "device and type": lambda n: {"device_ids": [101 + n % DEVICES], "types": [103]},
        "some dates": lambda n: {"start_date": at(middle - n % 50 * day), "end_date": at(middle - (n % 50 - 3) * day)},
        "some dates, deep": lambda n: {**some, "page": middle // 100 - n},
        "dates and device": lambda n: {**some, "device_ids": [101 + n % DEVICES], "page": 20},
        "search, common": lambda n: {"search": ("passed", "card 00", "lane 3")[n % 3]},
    }
    rare = {
        "search, a card": lambda n: {"search": f"card 00{(n * 37) % 5000}."},
        "search, a plate": lambda n: {"search": f"DM{(n * 35 + 7) % 20_000:05d}"},
        "search, nothing": lambda n: {"search": f"none {n}"},
    }
    slowest, medians = {}, {}
    print(f"\n{EVENTS:,} events; ms        p50      p99     most   count")
    with serving("real", folder, watched=True) as address:
        for name, body in (kinds | rare).items():
            times = 40 if name in rare else 400
            asyncio.run(waits_of(address, [body(n) for n in range(0, times, 10)]))
            waits, answer = asyncio.run(waits_of(address, [body(n) for n in range(times)]))
            slowest[name] = waits[int(len(waits) * 0.99) - 1]
            middle_wait = waits[len(waits) // 2]
            print(f"{name:22} {middle_wait:8.2f} {slowest[name]:8.2f} {waits[-1]:8.2f}   {answer['count']:,}")
            medians[name] = middle_wait
            assert answer["events"] or name in rare
    deep = max(slowest["by cursor, deep"], slowest["by page number, deep"])
    print(f"deep over first, p99: {deep / slowest['first page']:.2f}")
    for name in ("by cursor, deep", "by page number, deep"):
        show(f"a page of events {name}", medians[name], "ms", peer=medians["first page"], beside="the first", aim=1.2)
    for name in ("search, common", *rare):
        show(f"events: {name}, among {EVENTS:,}", medians[name], "ms", aim=50 if name not in rare else 1000)
    assert deep < 2 * slowest["first page"]
    assert all(wait < LIMIT_MS for name, wait in slowest.items() if name in kinds), slowest


@pytest.mark.parametrize("kind", ["the same page", "another page each time"])
def test_requests_per_second_beside_a_bare_handler(folder, tmp_path, kind):
    first = {"cursor_id": 0}
    others = [{"cursor_id": EVENTS // 2 + n} for n in range(1000)]
    bodies = [first] if kind == "the same page" else others
    with serving("real", folder) as address:
        _, answer = asyncio.run(waits_of(address, [bodies[0]]))
        real = max(asyncio.run(rate_of(address, bodies)) for _ in range(2))
    body = tmp_path / "body.json"
    body.write_text(json.dumps(answer, separators=(",", ":"), ensure_ascii=False))
    with serving("bare", body) as address:
        bare = max(asyncio.run(rate_of(address, bodies)) for _ in range(2))
    aim = 0.6 if kind == "the same page" else 0.3
    print(f"\npages of {body.stat().st_size:,} bytes")
    show(f"list of events, {kind}", real, "requests/s", peer=bare, beside="a bare handler", aim=aim, more=True)
    if kind == "the same page":
        assert real / bare >= 0.4
