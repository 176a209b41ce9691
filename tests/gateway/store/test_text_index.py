"""Searches in the text of events by the index, beside what reading every event says."""

from __future__ import annotations

import pytest

from gateway.store import EventFilter
from gateway.store.events import pages
from gateway.store.events.text_index import BLOCK

EVENTS = (1 << BLOCK) + 5_000
"""A full block, and the beginning of another."""
FILL = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
INSERT INTO event SELECT i, i % 5, 101 + i % 3, 1, 0, CASE i % 3 WHEN 0 THEN 'Access denied' ELSE 'Vehicle passed' END,
 CASE WHEN i % 9001 = 7 THEN 'Plate FL-T ' || i || ' was read.' WHEN i % 7001 = 3 THEN 'Élodie Ößterreich, gâche ' || i
  ELSE 'Card 00' || (i * 7919) % 5000 || ' passed.' END, i, 1, 'entry', '{}', NULL FROM n
"""
SEARCHES = (
    "flt 7", "FLT-9008", "fl-t 18009", "gâche", "ÖSSTERREICH", "card 001234", "001234 passed", "denied", "passed",
    "a", "..", "zzzz", "ß", "Card 00%", "élodie ö",
)  # fmt: skip


@pytest.fixture
async def filled(store):
    await store.database.write(lambda connection: connection.execute(FILL, (EVENTS,)))
    return store


async def built(store) -> int:
    """Index all that can be; how many blocks that were."""
    blocks = 0
    while await store.text_index.build_block(portion=4096):
        blocks += 1
    return blocks


def few_are_read(monkeypatch) -> None:
    monkeypatch.setattr(pages, "EXACT_SEARCH", 100)
    monkeypatch.setattr(pages, "MOST_SEARCHED", 6_000)


async def found(store, **wanted):
    """The pages of a search, followed by its cursor: all ids, and whether the first page was of all events."""
    ids, before, complete = [], 0, None
    while True:
        page = await store.events.page(EventFilter(**wanted), before=before, limit=EVENTS)
        ids += [event.id for event in page.events]
        complete = page.complete if complete is None else complete
        if page.next_cursor is None:
            return ids, complete
        before = page.next_cursor


async def test_the_index_finds_what_reading_every_event_finds(filled):
    filters = ({"types": (102,)}, {"device_ids": (1, 3)}, {"date_from": 5_000, "date_until": 19_000})
    asked = [{"search": search, **((*filters, {})[place % 4])} for place, search in enumerate(SEARCHES)]
    before = [(await found(filled, **wanted))[0] for wanted in asked]
    assert await built(filled) == 1
    after = [(await found(filled, **wanted))[0] for wanted in asked]
    assert after == before
    assert sum(map(bool, before)) > len(asked) // 2


async def test_what_is_rare_is_found_by_looking_at_few_events(filled, monkeypatch):
    few_are_read(monkeypatch)
    assert await found(filled, search="flt 7 ") == ([7], False)
    await built(filled)
    assert await found(filled, search="flt 7 ") == ([7], True)
    assert await found(filled, search="flt-18009") == ([18_009], True)
    assert await found(filled, search="nothing of it") == ([], True)


async def test_an_event_of_a_block_that_is_not_full_is_found(filled, entry, monkeypatch):
    few_are_read(monkeypatch)
    await built(filled)
    recorded = await filled.journal.record(entry(description="Plate XY 99 was read."))
    assert (await found(filled, search="xy99"))[0] == list(recorded.event_ids)


async def test_blocks_of_expired_events_are_forgotten(filled):
    await built(filled)

    def count(connection):
        return [connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in TABLES]

    tables = await filled.database.read(count)
    await filled.database.write(lambda connection: connection.execute("DELETE FROM event WHERE id <= ?", (1 << BLOCK,)))
    while await filled.text_index.forget_expired():
        pass
    assert min(tables) > 0
    assert await filled.database.read(count) == [0, 0]
    assert await built(filled) == 0


TABLES = ("event_text", "event_text_block")
