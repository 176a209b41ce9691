"""The envelope of lists: the same JSON as in one go, and other work goes on beside a long one."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import web

from gateway.web.http.errors import success, success_listed


@pytest.fixture
def listed(aiohttp_client):
    """Serves a list; the JSON of the answer."""

    async def ask(resource, records, **fields):
        async def answer(request):
            return await success_listed(request, resource, records, **fields)

        app = web.Application()
        app.router.add_get("/", answer)
        client = await aiohttp_client(app)
        return await (await client.get("/")).json()

    return ask


@pytest.mark.parametrize("records", [[], [{"id": 1}], [{"id": 1, "name": "é"}, {"id": 2, "more": [None]}]])
async def test_a_list_is_the_same_json_written_record_by_record(listed, records):
    found = await listed("devices", (record for record in records), count=7, next_cursor=None)
    assert found == json.loads(success(devices=records, count=7, next_cursor=None).body)


async def test_a_long_list_gives_way_to_others(listed):
    made, turns = [], set()

    def records():
        for number in range(100):
            made.append(number)
            yield {"id": number, "data": "x" * 40_000}

    async def other() -> None:
        while len(made) < 100:
            turns.add(len(made))
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(other())
        group.create_task(listed("entries", records(), count=100))
    assert turns == set(range(100))
