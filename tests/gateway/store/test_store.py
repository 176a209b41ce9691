from __future__ import annotations

import asyncio
import gc
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from waiting import until

from gateway.domain.errors import StoreError
from gateway.store import Store


def open_files(folder):
    """Return the files in the folder that this process holds open."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the descriptor of this very look is gone
            found.append(str(link.readlink()))
    return [target for target in found if target.startswith(str(folder))]


async def test_nothing_is_left_after_close(opened, tmp_path, entry):
    threads = threading.active_count()
    async with opened(tmp_path) as store:
        await asyncio.gather(*(store.journal.record(entry()) for _ in range(50)), store.cards.count())
        await asyncio.gather(*(store.events.get(n) for n in range(20)))
        assert open_files(tmp_path)
    await store.close()
    gc.collect()
    # a thread that has told of its end may still be on its way out
    await until(lambda: threading.active_count() <= threads)
    assert open_files(tmp_path) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "access.log",
        "cards.db",
        "cards.db.closed",
        "site.db",
        "site.db.closed",
        "site.db.ids",
    ]


async def test_a_store_that_does_not_open_leaves_nothing_behind(opened, tmp_path, entry):
    (tmp_path / "cards.db").mkdir()
    store = Store(folder=tmp_path, site_name="North", sends=True)
    with pytest.raises(StoreError, match=r"cards\.db is not a file; it cannot be opened"):
        await store.open()
    with pytest.raises(StoreError, match=r"site\.db is not open"):
        await store.journal.record(entry())
    assert open_files(tmp_path) == []
    (tmp_path / "cards.db").rmdir()
    async with opened(tmp_path) as other:
        await other.journal.record(entry())


async def test_a_missing_folder_is_named(tmp_path):
    store = Store(folder=tmp_path / "gone", site_name="North", sends=True)
    with pytest.raises(StoreError, match="gone: the data folder does not exist"):
        await store.open()


async def test_writing_works_from_open_to_close_whether_or_not_it_is_tended(tmp_path, entry):
    store = Store(folder=tmp_path, site_name="North", sends=True)
    await store.open()
    await asyncio.wait_for(store.journal.record(entry()), 30)
    tending = asyncio.get_running_loop().create_task(store.run())
    await asyncio.sleep(0)
    tending.cancel()
    await asyncio.gather(tending, return_exceptions=True)
    last = asyncio.get_running_loop().create_task(store.journal.record(entry()))
    await asyncio.sleep(0)
    await store.close()
    assert (await last).event_ids == (2,)
    assert store.failing == ""
