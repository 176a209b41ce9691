"""The stream of snapshots: at once, on change, bounded in rate and number, and gone with its session."""

import asyncio
import json
import sqlite3
import time
from contextlib import asynccontextmanager, closing, suppress
from datetime import datetime

from drivers.contract import GatePosition
from gateway.lanes.snapshots import Phase
from gateway.web.http import server

KEYS = {
    "problems": lambda row: "/".join((row["kind"], row["part"], row["id"], row["subject"])),
    "lanes": lambda row: row["lane_id"],
    "areas": lambda row: row["area_id"],
    "devices": lambda row: str(row["device_id"]),
    "cameras": lambda row: str(row["camera_id"]),
    "events": lambda row: str(row["id"]),
}


def after(state: dict, change: dict) -> dict:
    """The state after a change, as the page makes it."""
    whole = {name: value for name, value in change.items() if name not in KEYS}
    lists = {name: change[name] for name in KEYS if name in change}
    for name, told in lists.items():
        rows = {KEYS[name](row): row for row in (*state[name], *told["put"])}
        lists[name] = [rows[key] for key in told.get("keys", rows)]
    return {**state, **whole, **lists}


class Stream:
    """The events of one stream; `next` gives the state after each change."""

    def __init__(self, answer) -> None:
        self._answer = answer
        self.state: dict = {}

    async def next(self, within: float = 30) -> tuple[str, dict]:
        async with asyncio.timeout(within):
            name = ""
            while line := await self._answer.content.readline():
                if line.startswith(b"event: "):
                    name = line[7:].strip().decode()
                if line.startswith(b"data: "):
                    told = json.loads(line[6:])
                    if name == "change":
                        told = after(self.state, told)
                    if name in {"snapshot", "change"}:
                        self.state = told
                    return name, told
            return "end", {}

    async def raw(self) -> bytes:
        """A whole event, however long."""
        parts = []
        while not (parts and (not parts[-1] or parts[-1].endswith(b"\n\n"))):
            parts.append(await self._answer.content.readany())
        return b"".join(parts)

    async def until(self, condition, within: float = 30) -> dict:
        async with asyncio.timeout(within):
            while True:
                name, snapshot = await self.next(within)
                if name == "change" and condition(snapshot):
                    return snapshot


@asynccontextmanager
async def stream(gateway, user="chief"):
    headers = await gateway.sign_in(user)
    async with gateway.client.get(f"{gateway.url}/status/live", headers=headers) as answer:
        assert answer.status == 200
        assert answer.content_type == "text/event-stream"
        yield Stream(answer)


async def test_a_snapshot_comes_at_once_and_holds_the_whole_site(gateway):
    async with stream(gateway) as live:
        name, snapshot = await live.next()
    assert name == "snapshot"
    assert snapshot["gateway"]["site"] == "North Yard"
    assert snapshot["gateway"]["clock_trusted"] is True
    assert snapshot["lanes"][0]["phase"] == "idle"
    assert [device["online"] for device in snapshot["devices"]] == [True, None]
    assert snapshot["cameras"][0]["bits_per_second"] == 1_843_000
    assert (snapshot["storage"]["full_in_days"], snapshot["storage"]["short"]) == (9.03, False)
    proof = {
        "id": gateway.camera_event_id,
        "camera_id": 201,
        "ready": True,
        "footage": "whole",
        "missing": "",
        "said": None,
        "moment": 5,
    }
    assert snapshot["events"][0]["footage"] == [proof]
    assert snapshot["central"]["reachable"] is True
    assert snapshot["books"].pop("oldest_at") <= snapshot["now"]
    assert snapshot["books"] == {
        "accepted": 1, "delivered": 0, "replaced": 0, "dropped": 0, "waiting": 1, "parked": 0, "balance": True,
    }  # fmt: skip
    assert snapshot["demo"] is None
    assert snapshot["user"]["control_devices"] is True


async def test_the_gateway_ran_as_long_before_and_after_its_clock_is_set(gateway):
    """The time in each message counts by the same setting of the clock as the times in the state."""

    def ran(told, state):
        now, begun = (datetime.fromisoformat(moment) for moment in (told["now"], state["gateway"]["started_at"]))
        return (now - begun).total_seconds()

    began = gateway.clock.monotonic()
    async with stream(gateway) as live:
        _, told = await live.next()
        first = ran(told, live.state)
        started = live.state["gateway"]["started_at"]
        gateway.clock.stepped += 3600
        while live.state["gateway"]["started_at"] == started:  # a look may be from before
            gateway.board.show(note=told["now"])  # something to say at once
            assert 0 <= ran(told, live.state) - first <= gateway.clock.monotonic() - began
            _, told = await live.next()
        assert datetime.fromisoformat(told["now"]).timestamp() * 1e6 > gateway.clock.wall().micros - 60_000_000


async def test_changes_arrive_by_themselves(gateway):
    async with stream(gateway) as live:
        await live.next()
        gateway.board.show(phase=Phase.OPENING, position=GatePosition.OPENING, note="card 0042")
        snapshot = await live.until(lambda seen: seen["lanes"][0]["phase"] == "opening")
        assert snapshot["lanes"][0]["note"] == "card 0042"
        await gateway.happened("A vehicle backed out.")
        await live.until(lambda seen: seen["events"][0]["description"] == "A vehicle backed out.")
        gateway.central.show(reachable=False)  # no one tells of this one
        await live.until(lambda seen: seen["central"]["reachable"] is False)


async def test_a_storm_of_changes_is_thinned_and_its_last_state_shown(gateway):
    async with stream(gateway) as live:
        await live.next()
        began, count = time.monotonic(), 0
        for number in range(200):
            gateway.board.show(note=f"number {number}")
            await asyncio.sleep(0.005)  # the pace of the changes
        while True:
            count += (await live.next())[0] == "change"
            if live.state["lanes"][0]["note"] == "number 199":
                break
        assert count <= (time.monotonic() - began) * 4 + 2


async def test_a_caller_sees_only_what_they_may(gateway):
    async with stream(gateway, "guard") as live:
        _, snapshot = await live.next()
    assert snapshot["lanes"]
    assert snapshot["cameras"] == []
    assert snapshot["storage"] is None
    assert snapshot["events"][0]["footage"] == []
    assert snapshot["user"]["control_devices"] is False
    async with stream(gateway, "nobody") as live:
        _, snapshot = await live.next()
    assert (snapshot["lanes"], snapshot["devices"], snapshot["events"]) == ([], [], [])


async def test_a_stream_ends_with_its_session(gateway):
    async with stream(gateway) as live:
        await live.next()
        await gateway.call("/v1/auth/logout", {})
        gateway.clock.pushed += 11  # the session is looked at every 10 s
        gateway.board.show(note="after")
        while (seen := await live.next())[0] in {"change", "here"}:
            pass
        assert seen == ("signed-out", {})
        assert (await live.next())[0] == "end"


async def test_streams_are_bounded(gateway):
    headers = await gateway.sign_in()
    answers = [await gateway.client.get(f"{gateway.url}/status/live", headers=headers) for _ in range(65)]
    assert [answer.status for answer in answers] == [200] * 64 + [503]
    for answer in answers:
        answer.close()


async def test_a_client_that_does_not_read_is_dropped_and_holds_up_nobody(gateway, monkeypatch):
    monkeypatch.setattr("gateway.web.status.live.WRITE_SECONDS", 0.2)
    headers = await gateway.sign_in()
    host, port = gateway.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
    writer.write(f"GET /status/live HTTP/1.1\r\nHost: {host}\r\nSessionID: {headers['SessionID']}\r\n\r\n".encode())
    await writer.drain()
    async with stream(gateway) as live:
        await live.next()
        padding = "x" * 1_500_000
        for number in range(5):
            gateway.board.show(note=f"{number} {padding}")
            note = f"{number} "
            while True:
                async with asyncio.timeout(30):
                    line = await live.raw()
                if note.encode() in line:
                    break
    async with asyncio.timeout(30):
        with suppress(ConnectionError):
            while await reader.read(65536):
                pass
    writer.close()


async def test_closing_the_gateway_does_not_wait_for_streams(open_gateway, monkeypatch):
    monkeypatch.setattr(server, "SHUTDOWN_SECONDS", 600.0)
    async with open_gateway() as gateway:
        headers = await gateway.sign_in()
        answer = await gateway.client.get(f"{gateway.url}/status/live", headers=headers)
        assert answer.status == 200
    answer.close()


async def test_streams_that_were_left_make_room(gateway):
    headers = await gateway.sign_in()
    opened = 0
    async with asyncio.timeout(20):
        while opened < 80:
            async with gateway.client.get(f"{gateway.url}/status/live", headers=headers) as answer:
                opened += answer.status == 200
                answer.close()
            await asyncio.sleep(0 if answer.status == 200 else 0.1)  # full until the gateway has noticed


async def test_a_store_that_fails_does_not_hide_the_lanes(gateway, tmp_path):
    async with stream(gateway) as live:
        await live.next()
        with closing(sqlite3.connect(tmp_path / "site.db")) as connection:
            connection.execute("PRAGMA legacy_alter_table = ON")
            connection.execute("ALTER TABLE event RENAME TO lost")
        gateway.board.show(note="still here")
        snapshot = await live.until(lambda seen: seen["lanes"][0]["note"] == "still here")
    assert snapshot["events"][0]["name"] == "Vehicle passed"
    assert "cannot be read" in snapshot["gateway"]["store_failing"]
