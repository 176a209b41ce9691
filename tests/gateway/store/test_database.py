from __future__ import annotations

import asyncio
import sqlite3
import threading

import pytest
from waiting import until

from gateway.domain.errors import StoreError
from gateway.store.engine import database as database_module
from gateway.store.engine import opening as opening_module
from gateway.store.engine.database import Database, is_id
from gateway.store.engine.migrations import Migration

STEPS = (
    Migration(number=1, name="first", sql="CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, n INTEGER UNIQUE);"),
)


def insert(number):
    return lambda connection: connection.execute("INSERT INTO t (n) VALUES (?)", (number,)).lastrowid


def numbers(connection):
    return [n for (n,) in connection.execute("SELECT n FROM t ORDER BY n")]


@pytest.fixture
async def database(tmp_path):
    database = Database(path=tmp_path / "x.db", steps=STEPS)
    await database.open()
    yield database
    await database.close()


async def held(database):
    """Hold the writing thread inside a commit until the returned event is set."""
    go, inside = threading.Event(), threading.Event()

    def job(connection):
        inside.set()
        assert go.wait(20)

    task = asyncio.get_running_loop().create_task(database.write(job))
    await asyncio.to_thread(inside.wait, 20)
    return go, task


async def test_writers_of_the_same_turn_share_one_commit(database):
    before = database.commits
    ids = await asyncio.gather(*(database.write(insert(n)) for n in range(100)))
    assert sorted(ids) == list(range(1, 101))
    assert database.commits == before + 1


async def test_what_waits_while_a_commit_runs_is_committed_together(database):
    go, first = await held(database)
    before = database.commits
    assert database.waiting == 1
    writers = [asyncio.get_running_loop().create_task(database.write(insert(n))) for n in range(50)]
    await asyncio.sleep(0)
    assert database.waiting == 51
    go.set()
    await asyncio.gather(first, *writers)
    assert database.waiting == 0
    assert database.commits == before + 1


async def test_a_failing_job_undoes_only_its_own_work(database):
    def half(connection):
        connection.execute("INSERT INTO t (n) VALUES (500)")
        raise KeyError("mine")

    def mistaken(connection):
        connection.execute("INSERT INTO t (n) VALUES (501)")
        connection.execute("SELECT * FROM nowhere")

    def twice(connection):
        connection.execute("INSERT INTO t (n) VALUES (502)")
        connection.execute("INSERT INTO t (n) VALUES (502)")

    def too_large(connection):
        connection.execute("INSERT INTO t (n) VALUES (?)", (2**70,))

    outcomes = await asyncio.gather(
        *(database.write(job) for job in (insert(1), half, insert(2), mistaken, twice, too_large, insert(3))),
        return_exceptions=True,
    )
    assert isinstance(outcomes[1], KeyError)
    assert [type(outcome) for outcome in outcomes[3:6]] == [StoreError, StoreError, OverflowError]
    assert isinstance(outcomes[3].__cause__, sqlite3.OperationalError)
    assert await database.read(numbers) == [1, 2, 3]
    assert database.failing == ""


async def test_a_cancelled_writer_neither_loses_its_row_nor_disturbs_others(database):
    go, first = await held(database)
    moved = []
    loop = asyncio.get_running_loop()
    cancelled = loop.create_task(database.write(insert(1), then=lambda: moved.append(1)))
    other = loop.create_task(database.write(insert(2)))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    go.set()
    await asyncio.gather(first, other)
    assert await database.read(numbers) == [1, 2]
    assert moved == [1]


async def test_a_read_sees_what_a_write_just_returned_for(database):
    async def write_and_look(n):
        await database.write(insert(n))
        assert n in await database.read(numbers)

    await asyncio.gather(*(write_and_look(n) for n in range(200)))


async def test_the_statements_of_one_read_see_one_moment(database):
    counted, written = threading.Event(), threading.Event()

    def twice(connection):
        (before,) = connection.execute("SELECT count(*) FROM t").fetchone()
        counted.set()
        assert written.wait(20)
        (after,) = connection.execute("SELECT count(*) FROM t").fetchone()
        return before, after

    reading = asyncio.get_running_loop().create_task(database.read(twice))
    await asyncio.to_thread(counted.wait, 20)
    await database.write(insert(1))
    written.set()
    assert await reading == (0, 0)


async def test_a_reader_cannot_write(database):
    with pytest.raises(StoreError):
        await database.read(insert(1))


async def test_close_commits_what_is_queued_and_refuses_what_found_no_room(tmp_path, monkeypatch):
    monkeypatch.setattr(database_module, "QUEUE", 5)
    database = Database(path=tmp_path / "x.db", steps=STEPS)
    await database.open()
    loop = asyncio.get_running_loop()
    go, first = await held(database)
    writers = [loop.create_task(database.write(insert(n))) for n in range(10)]
    reader = loop.create_task(database.read(numbers))
    await asyncio.sleep(0)
    closing = loop.create_task(database.close())
    await asyncio.sleep(0)
    go.set()
    outcomes = await asyncio.wait_for(asyncio.gather(*writers, return_exceptions=True), 20)
    await asyncio.gather(first, reader, closing)
    assert [isinstance(outcome, StoreError) for outcome in outcomes] == [False] * 4 + [True] * 6
    await database.open()
    assert await database.read(numbers) == [0, 1, 2, 3]
    assert not database.was_unclean
    await database.close()


async def test_close_waits_for_readers_without_holding_up_the_loop(database):
    go, inside = threading.Event(), threading.Event()

    def slow(connection):
        inside.set()
        assert go.wait(20)
        return "read"

    loop = asyncio.get_running_loop()
    reading = loop.create_task(database.read(slow))
    await asyncio.to_thread(inside.wait, 20)
    closing = loop.create_task(database.close())
    await asyncio.sleep(0.02)  # would never return, were the loop held up
    assert not closing.done()
    go.set()
    assert await reading == "read"
    await closing


@pytest.mark.parametrize("when", ["never opened", "closed"])
async def test_use_of_a_file_that_is_not_open_is_refused_at_once(tmp_path, when):
    database = Database(path=tmp_path / "x.db", steps=STEPS)
    if when == "closed":
        await database.open()
        await database.close()
    for use in (database.write(insert(1)), database.read(numbers)):
        with pytest.raises(StoreError, match=r"x\.db is not open"):
            await asyncio.wait_for(use, 30)
    await database.close()


async def test_no_thread_is_left_after_close_or_a_failed_open(tmp_path):
    database = Database(path=tmp_path / "x.db", steps=STEPS)
    await database.open()
    await asyncio.gather(*(database.read(numbers) for _ in range(20)), database.write(insert(1)))
    assert {"write-x", "read-x", "search-x"} <= {thread.name for thread in threading.enumerate()}
    await database.close()
    await threads_have_ended("x")
    missing = Database(path=tmp_path / "missing" / "gone.db", steps=STEPS)
    with pytest.raises(StoreError, match="the data folder does not exist"):
        await missing.open()
    await threads_have_ended("gone")


async def threads_have_ended(file):
    """Wait for the threads of a file that were told to end."""
    await until(lambda: not any(file in thread.name.split("-") for thread in threading.enumerate()))


async def reading(database):
    """Begin a read; return the event that ends it, and its task."""
    ended, inside = threading.Event(), threading.Event()

    def query(connection):
        connection.execute("SELECT count(*) FROM t").fetchone()
        inside.set()
        assert ended.wait(20)

    task = asyncio.get_running_loop().create_task(database.read(query))
    await asyncio.to_thread(inside.wait, 20)
    return ended, task


async def next_reading(database, present):
    """Begin another read, then end the present one."""
    following = await reading(database)
    ended, task = present
    ended.set()
    await task
    return following


@pytest.mark.parametrize("last_commit_is_read", [True, False])
async def test_overlapping_readers_do_not_let_the_wal_grow_without_end(tmp_path, monkeypatch, last_commit_is_read):
    monkeypatch.setattr(database_module, "TEND_SECONDS", 0.01)
    monkeypatch.setattr(database_module, "LONG_WAL_PAGES", 20)
    monkeypatch.setattr(opening_module, "WAL_PAGES", 5)
    database = Database(path=tmp_path / "x.db", steps=STEPS)
    await database.open()
    loop = asyncio.get_running_loop()
    present = await reading(database)
    await database.write(lambda connection: [insert(n)(connection) for n in range(20_000)])
    sizes = []
    for n in (-1, -2):
        present = await next_reading(database, present)
        if not last_commit_is_read:
            await database.write(insert(100 * n))
        before = database.commits
        tending = loop.create_task(database.run())
        await until(lambda before=before: database.commits > before)
        tending.cancel()  # after this checkpoint, which goes on
        writing = loop.create_task(database.write(insert(n)))
        while not writing.done():
            await asyncio.wait({writing}, timeout=0.05)  # a checkpoint that waits for the present reader holds it up
            present = await next_reading(database, present)
        await asyncio.gather(writing, tending, return_exceptions=True)
        sizes.append((tmp_path / "x.db-wal").stat().st_size)
    ended, task = present
    ended.set()
    await task
    await database.close()
    # The first commit may come before the log is restarted. The second is written over its beginning.
    assert sizes[1] == sizes[0]


async def test_tending_is_the_writers_progress(tmp_path, monkeypatch):
    monkeypatch.setattr(database_module, "TEND_SECONDS", 0.01)
    database = Database(path=tmp_path / "x.db", steps=STEPS)
    await database.open()
    tending = asyncio.get_running_loop().create_task(database.run())
    await until(lambda: database.commits >= 3)
    tending.cancel()
    await asyncio.gather(tending, return_exceptions=True)
    await database.close()


def test_ids_are_positive_and_of_64_bits():
    assert [is_id(n) for n in (0, -1, 1, 2**63 - 1, 2**63)] == [False, False, True, True, False]
