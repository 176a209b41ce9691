"""A disk that is full or read-only: one clear sentence to whoever asked, and all goes on when there is room again."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import until

from gateway.domain.errors import StoreError
from gateway.store import EventFilter
from gateway.store.engine import database as database_module

PROGRAM = Path(__file__).with_name("limited_writer.py")


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 3 MB of its own, and a way to mount it anew with other options."""
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("a file system of its own can be mounted by root alone")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", folder], check=False).returncode != 0:
        pytest.skip("no file system may be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder):
    """Fill the disk to its last byte; returns the file to remove."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    return ballast


async def until_refused(store, entry, acknowledged):
    while True:
        try:
            recorded = await store.journal.record(entry(description="x" * 500))
        except StoreError as refusal:
            return str(refusal)
        acknowledged.update(recorded.event_ids)


async def test_a_full_disk_refuses_clearly_loses_nothing_and_recovers_by_itself(small_disk, opened, entry, monkeypatch):
    monkeypatch.setattr(database_module, "TEND_SECONDS", 0.05)
    acknowledged: set[int] = set()
    async with opened(small_disk) as store:
        acknowledged.update((await store.journal.record(entry())).event_ids)
        ballast = fill(small_disk)
        sentence = await until_refused(store, entry, acknowledged)
        assert sentence == "site.db: the disk is full; nothing was recorded"
        assert store.failing == "site.db: the disk is full; nothing is recorded"
        assert (await store.events.page(EventFilter())).count == len(acknowledged)
        await asyncio.sleep(0.2)  # tended some times meanwhile
        assert store.failing
        ballast.unlink()
        await until(lambda: not store.failing)
        recorded = await store.journal.record(entry())
        assert recorded.event_ids[0] == max(acknowledged) + 1
        acknowledged.update(recorded.event_ids)
        assert (await store.outbox.books()).balance()
    async with opened(small_disk) as store:
        assert store.salvaged == ()
        page = await store.events.page(EventFilter(), limit=100_000)
        assert {event.id for event in page.events} == acknowledged


async def test_a_disk_that_is_full_at_the_end_loses_nothing(small_disk, opened, entry):
    acknowledged: set[int] = set()
    async with opened(small_disk) as store:
        ballast = fill(small_disk)
        await until_refused(store, entry, acknowledged)
    ballast.unlink()
    async with opened(small_disk) as store:
        assert store.was_unclean
        page = await store.events.page(EventFilter(), limit=100_000)
        assert {event.id for event in page.events} == acknowledged


async def until_written(store):
    await until(lambda: not store.failing)


async def test_a_disk_that_is_full_at_the_start_is_read_and_written_as_soon_as_it_can_be(
    small_disk, opened, entry, monkeypatch
):
    monkeypatch.setattr(database_module, "TEND_SECONDS", 0.05)
    async with opened(small_disk) as store:
        first = await store.journal.record(entry())
    ballast = fill(small_disk)
    async with opened(small_disk) as store:
        assert store.failing == "site.db: the disk is full; nothing is recorded"
        assert (await store.events.page(EventFilter())).count == 1
        assert await store.cards.count() == 0
        with pytest.raises(StoreError, match=r"^site\.db: the disk is full; nothing was recorded$"):
            await store.journal.record(entry())
        await asyncio.sleep(0.2)  # tended some times meanwhile
        assert store.failing
        ballast.unlink()
        await until_written(store)
        assert store.salvaged == ()
        assert not store.was_unclean
        assert (await store.journal.record(entry())).event_ids[0] == first.event_ids[0] + 1
        assert (await store.events.page(EventFilter())).count == 2
    async with opened(small_disk) as store:
        assert not store.was_unclean
        assert (await store.events.page(EventFilter())).count == 2


async def test_readers_beside_the_taking_up_see_one_moment_each(small_disk, opened, entry, monkeypatch):
    monkeypatch.setattr(database_module, "TEND_SECONDS", 0.05)
    async with opened(small_disk) as store:
        await asyncio.gather(*(store.journal.record(entry(description="x" * 500)) for _ in range(400)))
    ballast = fill(small_disk)

    async def look(store):
        async with asyncio.timeout(30):
            while store.failing or (await store.events.page(EventFilter())).count < 410:
                page = await store.events.page(EventFilter(), limit=1000)
                assert page.count == len(page.events)
                await asyncio.sleep(0)  # what is known already is told without waiting

    async with opened(small_disk) as store, asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(look(store))
        await asyncio.sleep(0.1)  # they have looked, and go on looking
        ballast.unlink()
        await until_written(store)
        for _ in range(10):
            await store.journal.record(entry())


async def test_a_new_folder_on_a_full_disk_is_refused(small_disk, opened):
    fill(small_disk)
    with pytest.raises(StoreError, match="the disk is full; it cannot be opened"):
        async with opened(small_disk):
            pass


async def test_no_room_to_save_a_damaged_file_says_so_and_leaves_it_as_it_is(small_disk, opened, entry):
    async with opened(small_disk) as store:
        await asyncio.gather(*(store.journal.record(entry(description="x" * 1000)) for _ in range(400)))
    database = small_disk / "site.db"
    with database.open("r+b") as file:
        file.seek(database.stat().st_size // 8192 * 4096)
        file.write(b"\xa5" * 4096)
    (small_disk / "site.db.closed").unlink()
    content = database.read_bytes()
    ballast = fill(small_disk)
    async with opened(small_disk) as store:
        assert "no place for what can be saved" in store.failing or "full" in store.failing
        assert await store.cards.count() == 0, "the other file is read all the same"
    assert database.read_bytes() == content
    ballast.unlink()
    async with opened(small_disk) as store:
        assert "was damaged" in store.salvaged[0]
        assert (await store.events.page(EventFilter())).count > 300


@pytest.mark.parametrize("end", ["clean", "killed"])
async def test_a_read_only_folder_is_read(small_disk, opened, entry, monkeypatch, end):
    monkeypatch.setattr(database_module, "TEND_SECONDS", 0.05)
    async with opened(small_disk) as store:
        await store.journal.record(entry())
        if end == "killed":
            for part in small_disk.glob("*.db*"):
                shutil.copy(part, part.with_name(f"kept-{part.name}"))
    for part in small_disk.glob("kept-*"):
        part.rename(part.with_name(part.name.removeprefix("kept-")))
    if end == "killed":
        (small_disk / "site.db.closed").unlink()
        assert (small_disk / "site.db-wal").stat().st_size
        (small_disk / "site.db-shm").unlink()
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    async with opened(small_disk) as store:
        assert store.failing == "site.db: the data folder is read-only; nothing is recorded"
        assert (await store.events.page(EventFilter())).count == 1
        subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
        await until_written(store)
        await store.journal.record(entry())
        assert store.was_unclean is (end == "killed")
    async with opened(small_disk) as store:
        assert store.salvaged == ()
        assert (await store.events.page(EventFilter())).count == 2


def test_a_file_that_may_not_grow_refuses_and_keeps_what_it_acknowledged(tmp_path):
    """The same for those who may not mount: the kernel's limit on a file's size stands for the full disk."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path)], capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("kept\n")
