"""The number of a data folder."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing

from gateway.domain.events import Event, EventKind
from gateway.domain.passages import Passage, PassageOutcome
from gateway.domain.writes import site_id_in
from gateway.store import Entry

NOON = 1_767_268_800_000_000


async def sources(store, moment):
    """Let a vehicle pass; return the `source_id` of its entry and of its camera event."""
    event = Event(EventKind.VEHICLE_PASSED, NOON, clock_trusted=True, text="Passed.", device_id=101)
    passed = Passage("in", "entry", PassageOutcome.PASSED, NOON, NOON, clock_trusted=True, credential="7")
    await store.journal.record(Entry(events=(event,), passage=passed, moments=(moment(),)))
    rows = (await store.outbox.due(now=2**62))[-2:]
    return [json.loads(row.body)["source_id"] for row in rows]


async def number(store, moment):
    """Return the box's number, which all that it makes carries."""
    (box,) = {source - site_id_in(source) for source in await sources(store, moment)}
    return box


async def test_each_data_folder_has_a_number_of_its_own_and_keeps_it(opened, tmp_path, moment):
    drawn = []
    for name in "abcd":
        (tmp_path / name).mkdir()
        async with opened(tmp_path / name) as store:
            drawn.append(await number(store, moment))
        async with opened(tmp_path / name) as store:
            assert await number(store, moment) == drawn[-1]
    assert 0 not in drawn
    assert len(set(drawn)) > 1  # twenty bits: two folders may have the same one, four do not


async def test_a_data_folder_that_is_copied_to_another_box_keeps_its_number(opened, tmp_path, moment):
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    async with opened(old) as store:
        drawn = await number(store, moment)
    shutil.copytree(old, new)
    async with opened(new) as store:
        assert await number(store, moment) == drawn


async def test_the_number_outlives_a_damaged_file(opened, tmp_path, moment):
    async with opened(tmp_path) as store:
        drawn = await number(store, moment)
    with closing(sqlite3.connect(tmp_path / "site.db")) as connection:
        page_size = connection.execute("PRAGMA page_size").fetchone()[0]
        query = "SELECT pageno FROM dbstat WHERE name = 'event' LIMIT 1"
        (page,) = connection.execute(query).fetchone()
    with (tmp_path / "site.db").open("r+b") as file:
        file.seek((page - 1) * page_size)
        file.write(b"\xa5" * page_size)
    for mark in tmp_path.glob("*.closed"):
        mark.unlink()
    async with opened(tmp_path) as store:
        assert store.salvaged
        assert await number(store, moment) == drawn
