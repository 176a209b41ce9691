"""aiosqlite's connection with jobs: fails when an upgrade of aiosqlite takes away what `SqliteConnection.run` needs."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import threading
import tomllib
import weakref
from importlib.metadata import version
from pathlib import Path

import pytest
from waiting import until

from gateway.store.engine.connection import SqliteConnection


@pytest.fixture
async def connection(tmp_path):
    connection = SqliteConnection(lambda: sqlite3.connect(tmp_path / "x.db", isolation_level=None), name="write-x")
    await connection.open()
    yield connection
    await connection.close()


def test_the_pin_is_exact():
    """A protected name of aiosqlite is used: an upgrade is looked at, and this file is run."""
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert f"aiosqlite=={version('aiosqlite')}" in project["dependencies"]


async def test_a_job_runs_whole_in_the_connections_own_thread(connection):
    def job(handle):
        handle.execute("BEGIN")
        handle.execute("CREATE TABLE t (n)")
        handle.execute("INSERT INTO t VALUES (7)")
        handle.execute("COMMIT")
        return threading.current_thread(), handle.execute("SELECT n FROM t").fetchall()

    thread, rows = await connection.run(job)
    assert (thread.name, rows) == ("write-x", [(7,)])
    assert thread is not threading.current_thread()
    assert (await connection.run(job_of_thread))[0] is thread


def job_of_thread(_handle):
    return (threading.current_thread(),)


async def test_a_job_is_one_hop(connection):
    """Statements and jobs given before do not come in between, and the loop is not needed until the end."""
    order = []

    def job(number):
        def statements(handle):
            for _ in range(3):
                order.append(number)
                handle.execute("SELECT 1").fetchone()
            return number

        return statements

    assert await asyncio.gather(*(connection.run(job(n)) for n in range(50))) == list(range(50))
    assert order == [n for n in range(50) for _ in range(3)]


async def test_the_jobs_error_is_the_callers(connection):
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        await connection.run(lambda handle: handle.execute("SELECT * FROM nowhere"))
    assert connection.waiting == 0
    assert await connection.run(lambda _: "goes on") == "goes on"


def test_a_file_that_does_not_open_leaves_no_thread_that_answers_a_closed_loop():
    threads = []

    def refuse():
        threads.append(threading.current_thread())
        raise sqlite3.DatabaseError("not a database")

    class Slow(SqliteConnection):
        def stop(self):
            self._tx.put_nowait((None, lambda: threading.Event().wait(0.1)))
            return super().stop()

    with pytest.raises(sqlite3.DatabaseError):
        asyncio.run(Slow(refuse, name="write-refused").open())
    (thread,) = threads
    thread.join(20)
    # the runner makes an error of what a thread raises
    assert not thread.is_alive()


async def test_a_cancelled_callers_job_runs_all_the_same_and_close_waits_for_it(connection):
    go, done = threading.Event(), []

    def job(_handle):
        assert go.wait(20)
        done.append(True)

    running = asyncio.get_running_loop().create_task(connection.run(job))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    closing = asyncio.get_running_loop().create_task(connection.close())
    await asyncio.sleep(0.01)  # a close that did not wait would be done
    assert not closing.done()
    go.set()
    await closing
    assert done == [True]


async def test_what_was_read_is_not_kept_by_the_thread(connection):
    class Large:
        """Can be watched."""

    result = await connection.run(lambda _: Large())
    watched = weakref.ref(result)
    del result
    gc.collect()
    assert watched() is None


async def test_a_connector_that_fails_leaves_no_thread(tmp_path):
    before = threading.active_count()
    connection = SqliteConnection(lambda: sqlite3.connect(tmp_path / "gone" / "x.db"), name="write-gone")
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        await connection.open()
    await until(lambda: threading.active_count() <= before)
