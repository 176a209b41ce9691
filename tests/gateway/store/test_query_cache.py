from __future__ import annotations

import asyncio

from gateway.store.engine.query_cache import QueryCache


async def test_what_is_asked_again_is_read_once_until_something_is_written(store, entry):
    kept: QueryCache[str, int] = QueryCache(database=store.database, most=2)
    reads = []

    async def count(question):
        def query(connection):
            reads.append(question)
            return connection.execute("SELECT count(*) FROM event").fetchone()[0]

        return await kept.read(question, query)

    assert [await count("a"), await count("a")] == [0, 0]
    assert reads == ["a"]
    await store.journal.record(entry())
    assert [await count("a"), await count("b"), await count("c"), await count("b")] == [1, 1, 1, 1]
    assert reads == ["a", "a", "b", "c"]
    await count("a")  # it had to make room
    assert reads == ["a", "a", "b", "c", "a"]


async def test_what_was_read_before_a_commit_is_not_kept_after_it(store, entry):
    kept: QueryCache[str, int] = QueryCache(database=store.database, most=2)
    generation = store.database.generation
    await store.journal.record(entry())
    kept.keep("a", 0, generation=generation)
    assert kept.known("a") is None
    kept.keep("a", 1, generation=store.database.generation)
    assert kept.known("a") == 1


async def test_pages_tell_of_each_new_event_at_once(store, entry):
    async def walk():
        for _ in range(30):
            before = (await store.events.page(event_filter)).count
            await store.journal.record(entry())
            assert (await store.events.page(event_filter)).count > before

    from gateway.store import EventFilter

    event_filter = EventFilter()
    await asyncio.gather(walk(), walk(), walk())
