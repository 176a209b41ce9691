"""The envelope of lists: the same JSON as in one go, and other work goes on beside a long one."""

from __future__ import annotations

import asyncio
import json

import pytest

from gateway.web.http.envelope import list_parts, success


@pytest.mark.parametrize("records", [[], [{"id": 1}], [{"id": 1, "name": "é"}, {"id": 2, "more": [None]}]])
async def test_a_list_is_the_same_json_written_record_by_record(records):
    parts = await list_parts("devices", (record for record in records), count=7, next_cursor=None)
    assert json.loads(b"".join(parts)) == json.loads(success(devices=records, count=7, next_cursor=None).body)


async def test_a_long_list_gives_way_to_others():
    made, turns = [], []

    def records():
        for number in range(100):
            made.append(number)
            yield {"id": number, "data": "x" * 40_000}

    async def other() -> None:
        while len(made) < 100:
            turns.append(len(made))
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(other())
        group.create_task(list_parts("entries", records(), count=100))
    assert turns == list(range(100))
