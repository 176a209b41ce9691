"""A store that was damaged after a clean stop: lanes work, the damage is told once it is met, and a start mends it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import asynccontextmanager, closing

import aiohttp
import pytest
from far_end_site import a_barrier
from running_house import CHIEF, running
from waiting import until

from gateway.domain.events import Event, EventKind
from gateway.store import Entry, Store
from gateway.web.auth.accounts import hash_password
from simulation.far_ends.barrier import Wish

EVENTS = 1000


async def fill(folder):
    """Write events and an account, and close the store."""
    folder.mkdir()
    store = Store(folder=folder, site_name="Small", sends=False)
    await store.open()
    lines = (Event(EventKind.VEHICLE_PASSED, n, clock_trusted=True, text=f"vehicle {n}") for n in range(EVENTS))
    chief = {"password_hash": hash_password(CHIEF["password"]), "role": "administrator", "now": 1}
    await store.accounts.add(CHIEF["username"], **chief)
    await asyncio.gather(*(store.journal.record(Entry(events=(one,))) for one in lines))
    await store.close()


def damage(file):
    """Overwrite a page of old events."""
    with closing(sqlite3.connect(file)) as connection:
        size = connection.execute("PRAGMA page_size").fetchone()[0]
        pages = connection.execute("SELECT pageno FROM dbstat WHERE name = 'event' AND pagetype = 'leaf' ORDER BY path")
        number = pages.fetchall()[3][0]
    with file.open("r+b") as raw:
        raw.seek((number - 1) * size)
        raw.write(b"\xa5" * size)


@asynccontextmanager
async def signed_in(folder):
    """A running gateway: its barrier's far end, and a function that sends a request as the administrator."""
    async with a_barrier() as (_, far_end, port), running(folder, port) as url, aiohttp.ClientSession() as client:

        async def ask(method, path, body=None):
            async with client.request(method, url + path, json=body, headers=headers) as answer:
                return answer.status, await answer.json()

        headers = {}
        _, answer = await ask("POST", "/v1/auth/login", CHIEF)
        headers["SessionID"] = answer["session"]
        yield far_end, ask


async def events_of(ask):
    """Return the descriptions of all passages, and the error at which the list ended, "" without one."""
    seen, page = [], 1
    while True:
        status, answer = await ask("POST", "/v1/event/list", {"page": page})
        if status != 200:
            return seen, answer["error"]
        if not answer["events"]:
            return seen, ""
        seen += [one["description"] for one in answer["events"] if one["type"] == EventKind.VEHICLE_PASSED]
        page += 1


async def test_damage_after_a_clean_stop_is_told_and_mended_while_lanes_work(tmp_path):
    await fill(tmp_path / "data")
    damage(tmp_path / "data" / "site.db")
    async with signed_in(tmp_path) as (far_end, ask):

        async def told():
            _, answer = await ask("GET", "/health/ready")
            return [one for one in answer["problems"] if one["kind"].startswith("store_")]

        before, error = await events_of(ask)
        assert "site.db: the file is damaged" in error
        (problem,) = await until(told)
        assert problem["kind"] == "store_damaged", "events are recorded all the same"
        assert "mended at the next start" in problem["text"]
        assert any("Restart the gateway" in step for step in problem["steps"])
        status, _ = await ask("POST", "/v1/device/open", {"id": 101})
        assert status == 200
        await until(lambda: [one.wish for one in far_end.commands] == [Wish.OPEN])
    async with signed_in(tmp_path) as (_, ask):
        after, error = await events_of(ask)
        assert error == ""
        assert set(before) < set(after) < {f"vehicle {n}" for n in range(EVENTS)}
        _, answer = await ask("POST", "/v1/event/list", {"type": int(EventKind.STORE_DAMAGED)})
        (event,) = [one for one in answer["events"] if one["type"] == EventKind.STORE_DAMAGED]
        assert "site.db was damaged" in event["description"]
        assert "rows were saved" in event["description"]


@pytest.mark.parametrize("left", [None, b""], ids=["missing", "empty"])
async def test_a_card_list_that_is_gone_after_a_power_cut_is_a_problem(tmp_path, left):
    folder = tmp_path / "data"
    await fill(folder)
    for part in folder.glob("cards.db*"):
        part.unlink()
    if left is not None:
        (folder / "cards.db").write_bytes(left)
    async with signed_in(tmp_path) as (_, ask):

        async def told():
            _, answer = await ask("GET", "/health/ready")
            return [one for one in answer["problems"] if one["kind"] == "cards_lost"]

        (problem,) = await until(told)
        assert "cards.db was missing or empty" in problem["text"]
        _, answer = await ask("POST", "/v1/event/list", {"types": [int(EventKind.STORE_DAMAGED)]})
        assert "cards.db was missing or empty" in answer["events"][0]["description"]
    async with signed_in(tmp_path) as (_, ask):
        (problem,) = await until(told)  # the list is still empty
        assert "cards.db was missing or empty" in problem["text"]
        _, answer = await ask("POST", "/v1/event/list", {"types": [int(EventKind.STORE_DAMAGED)]})
        assert len(answer["events"]) == 1
