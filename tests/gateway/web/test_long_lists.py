"""Long lists of large records hold nobody up."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC

import pytest
from loop_watch import watch_callbacks

from gateway.central.field_map import CardFieldMap, map_card
from gateway.domain.events import Event, EventKind
from gateway.domain.passages import Moment
from gateway.domain.writes import ENTRY_CREATE
from gateway.store import Entry, StoredCard

MOST = 500
LIMIT = 0.005


async def large_events(gateway, now):
    events = tuple(
        Event(
            kind=EventKind.ACCESS_DENIED, date_at=now, clock_trusted=True, text=f"Card {number} was denied.",
            data={"trace": f"{number:04} " * 2000},
        )
        for number in range(MOST)
    )  # fmt: skip
    await gateway.store.journal.record(Entry(events=events))


async def large_camera_events(gateway, now):
    event = Event(kind=EventKind.VEHICLE_PASSED, date_at=now, clock_trusted=True, text="x")
    moments = tuple(
        Moment(201, "Passed", f"{number:04} " * 180, now + number * 1000, now + number * 1000 + 9, clock_trusted=True)
        for number in range(MOST)
    )
    await gateway.store.journal.record(Entry(events=(event,), moments=moments))


async def large_entries(gateway, now):
    body = {"device_id": 101, "date_at": "2026-01-31T12:00:00.000Z", "data": "0123 " * 3000}
    await asyncio.gather(
        *(gateway.store.pending_writes.hold(ENTRY_CREATE, None, body, now=now, sends=False) for _ in range(MOST))
    )


async def large_cards(gateway, now):
    records = [{"id": 5000 + number, "number": f"{number:08}", "note": "0123 " * 4000} for number in range(MOST)]
    known = [(map_card(record["id"], record, CardFieldMap(), UTC), json.dumps(record)) for record in records]
    await gateway.store.cards.apply(put=[StoredCard(card, text) for card, text in known], now=now)


async def answer_of(gateway, path):
    """The whole body, read piece by piece: this loop is the gateway's too."""
    host, port = gateway.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    sent = json.dumps({"page_limit": MOST})
    session = (await gateway.sign_in())["SessionID"]
    writer.write(
        (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\n"
            f"SessionID: {session}\r\nContent-Length: {len(sent)}\r\n\r\n{sent}"
        ).encode()
    )
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    assert " 200 " in head
    left = int(head.split("content-length:")[1].split("\r\n")[0])
    parts = []
    while left:
        parts.append(await reader.read(min(left, 65_536)))
        left -= len(parts[-1])
    writer.close()
    return parts


@pytest.mark.long("the loop's own delay, in real time")
@pytest.mark.parametrize(
    ("fill", "path", "resource"),
    [
        (large_events, "/v1/event/list", "events"),
        (large_camera_events, "/v1/camera/event/list", "events"),
        (large_entries, "/v1/entry/list", "entries"),
        (large_cards, "/v1/access/list", "access_cards"),
    ],
)
async def test_a_long_list_of_large_records_holds_nobody_up(gateway, fill, path, resource):
    await fill(gateway, gateway.clock.wall().micros)
    await gateway.sign_in()
    parts = []
    with watch_callbacks(limit=LIMIT) as watched:
        for _ in range(3):
            await gateway.happened("A vehicle passed.")  # until something happens a list of events is kept
            parts = await answer_of(gateway, path)
    assert watched.worst() is None, watched.too_long
    answer = json.loads(b"".join(parts))
    assert (answer["success"], len(answer[resource])) == (True, MOST)
