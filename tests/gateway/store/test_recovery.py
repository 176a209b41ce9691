"""Damaged, missing, older, newer and locked files."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import struct
from contextlib import closing
from pathlib import Path

import pytest

from gateway.domain.credentials import Card
from gateway.domain.errors import StoreError
from gateway.domain.events import Event, EventKind
from gateway.domain.passages import Moment
from gateway.store import Entry, EventFilter, Store, StoredCard
from gateway.store.engine import recovery as recovery_module
from gateway.store.engine.migrations import after_salvage, migrations
from gateway.store.engine.recovery import SALVAGE_GAP, UNCLEAN_GAP, recover

EVENTS = 2000
PAGE = 4096


async def fill(folder):
    """Events, camera events, outbox rows and cards."""
    store = Store(folder=folder, site_name="North", sends=True)
    await store.open()
    moment = Moment(7, "Entry", "", 0, 1, clock_trusted=True)
    await asyncio.gather(
        *(
            store.journal.record(
                Entry(
                    events=(Event(EventKind.VEHICLE_PASSED, n, clock_trusted=True, text=f"event {n}"),),
                    moments=(moment,) if n % 100 == 0 else (),
                )
            )
            for n in range(EVENTS)
        )
    )
    cards = [StoredCard(Card(n, str(n), aliases=(f"text:{n}", f"raw:26:{n:X}")), "{}") for n in range(1, 1001)]
    await store.cards.apply(put=cards, now=1)
    await store.close()


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("filled")
    asyncio.run(fill(folder))
    return folder


@pytest.fixture
def used(filled, tmp_path):
    """A folder as a clean end left it."""
    return Path(shutil.copytree(filled, tmp_path / "used"))


def damage(path, start, length, content=b"\xa5"):
    with path.open("r+b") as file:
        file.seek(start)
        file.write(content * length)


def event_pages(path):
    """Return the places of pages with events in the file."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT pageno FROM dbstat WHERE name = 'event' AND pagetype = 'leaf' ORDER BY path")
        return [(number - 1) * PAGE for (number,) in rows]


def unclean(folder):
    for mark in folder.glob("*.closed"):
        mark.unlink()


async def test_a_file_whose_making_was_cut_short_is_made_anew(tmp_path):
    """Before its log is in use, SQLite keeps what must be undone in a journal, and only a writer may undo it."""
    half = tmp_path / "half.db"
    with closing(sqlite3.connect(half, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("CREATE TABLE t (n)")
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO t VALUES (?)", [("x" * 500,)] * 2000)
        for suffix in ("", "-journal"):
            shutil.copy(f"{half}{suffix}", tmp_path / f"cards.db{suffix}")
    store = Store(folder=tmp_path, site_name="North", sends=True)
    await store.open()
    assert await store.cards.count() == 0
    await store.close()


@pytest.mark.parametrize("log", [b"", bytes(32)], ids=["an empty log", "a log without a commit"])
@pytest.mark.parametrize("undone", [False, True], ids=["before the journal is undone", "after it was undone"])
async def test_a_file_that_was_never_made_is_no_damage_though_its_log_was_begun(opened, tmp_path, log, undone):
    """The power fails between the journal of the first write and the log, perhaps once more in the start after it."""
    (tmp_path / "cards.db").write_bytes(b"" if undone else bytes(4096))
    (tmp_path / "cards.db-wal").write_bytes(log)
    if not undone:
        header = struct.pack(">8s5I", bytes.fromhex("d9d505f920a163d7"), 0, 1, 0, 512, 4096)
        (tmp_path / "cards.db-journal").write_bytes(header.ljust(512, b"\0"))
    async with opened(tmp_path) as store:
        assert store.salvaged == ()


async def everything(store):
    page = await store.events.page(EventFilter(), limit=10 * EVENTS)
    assert page.count == len(page.events)
    return page.events


@pytest.mark.parametrize("name", ["site.db", "cards.db"])
async def test_an_empty_file_is_no_damage_before_its_first_use_and_damage_after(opened, tmp_path, used, name):
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / name).touch()
    async with opened(tmp_path / "new") as store:
        assert store.salvaged == ()
    os.truncate(used / name, 0)
    async with opened(used) as store:
        assert "the file is empty" in store.salvaged[0]


async def test_a_clean_end_is_known_as_one(opened, used):
    async with opened(used) as store:
        assert not store.was_unclean
        assert store.salvaged == ()
        assert len(await everything(store)) == EVENTS


async def test_ids_jump_after_an_unclean_end(opened, used, entry):
    unclean(used)
    async with opened(used) as store:
        assert store.was_unclean
        assert store.salvaged == ()
        assert (await store.journal.record(entry())).event_ids == (EVENTS + UNCLEAN_GAP + 1,)


@pytest.mark.parametrize("holes", [1, 3])
async def test_rows_around_damaged_pages_are_saved(opened, used, entry, moment, holes):
    size = (used / "site.db").stat().st_size
    pages = event_pages(used / "site.db")
    for hole in range(holes):
        damage(used / "site.db", pages[len(pages) * (2 * hole + 1) // (2 * holes)], PAGE)
    unclean(used)
    async with opened(used) as store:
        assert len(store.salvaged) == 1
        assert "site.db was damaged" in store.salvaged[0]
        events = await everything(store)
        assert len(events) > EVENTS * 0.75
        assert all(event.description.startswith("event ") for event in events)
        recorded = await store.journal.record(entry(moment()))
        assert recorded.event_ids[0] > EVENTS + SALVAGE_GAP
        assert recorded.camera_event_ids[0] > 2_000_000_000 + SALVAGE_GAP
        books = await store.outbox.books()
        assert books.balance()
        assert books.accepted == EVENTS // 100 + 1
        assert await store.cards.count() == 1000
    assert (used / "site.db.damaged-1").stat().st_size == size
    async with opened(used) as store:
        assert store.salvaged == ()
        assert not store.was_unclean


async def test_a_damaged_card_file_leaves_the_events_alone_and_asks_for_all_cards_anew(opened, used):
    size = (used / "cards.db").stat().st_size
    damage(used / "cards.db", size // 2 // PAGE * PAGE, 3 * PAGE)
    unclean(used)
    async with opened(used) as store:
        assert "cards.db was damaged" in store.salvaged[0]
        assert len(store.salvaged) == 1
        assert len(await everything(store)) == EVENTS
        records = await store.cards.records()
        assert 500 < len(records) <= 1000
        assert set(records.values()) == {"{} "}
        found = [number for number in records if await store.cards.matching([f"text:{number}"])]
        assert len(found) > len(records) * 0.8


@pytest.mark.parametrize("left", [0, 100, PAGE, 20 * PAGE])
async def test_a_cut_off_file_starts_afresh_without_reusing_ids(opened, used, entry, left):
    os.truncate(used / "site.db", left)
    unclean(used)
    async with opened(used) as store:
        assert len(store.salvaged) == 1
        assert (await store.journal.record(entry())).event_ids[0] > EVENTS + SALVAGE_GAP
        assert (await store.outbox.books()).balance()


@pytest.mark.parametrize("mark", [True, False])
async def test_a_garbage_file_is_kept_and_ids_go_on_from_the_note(opened, used, entry, mark):
    if not mark:
        unclean(used)
    garbage = os.urandom((used / "site.db").stat().st_size)
    (used / "site.db").write_bytes(garbage)
    async with opened(used) as store:
        assert "0 rows were saved" in store.salvaged[0]
        assert (await store.journal.record(entry())).event_ids[0] > EVENTS + SALVAGE_GAP
    assert (used / "site.db.damaged-1").read_bytes() == garbage


async def test_a_missing_file_does_not_start_ids_anew(opened, used, entry):
    (used / "site.db").unlink()
    async with opened(used) as store:
        assert "the file is missing" in store.salvaged[0]
        assert (await store.journal.record(entry())).event_ids[0] > EVENTS + SALVAGE_GAP


async def test_an_older_file_put_back_does_not_give_its_later_ids_again(opened, used, entry, tmp_path):
    shutil.copy(used / "site.db", tmp_path / "backup")
    async with opened(used) as store:
        last = (await store.journal.record(entry())).event_ids[0]
    shutil.copy(tmp_path / "backup", used / "site.db")
    async with opened(used) as store:
        assert "older than ids already given" in store.salvaged[0]
        assert (await store.journal.record(entry())).event_ids[0] > last


@pytest.fixture
async def cut(opened, entry, tmp_path):
    """A folder as a power cut leaves it: what was written last is in the -wal alone."""
    folder, copy = tmp_path / "live", tmp_path / "cut"
    folder.mkdir()
    async with opened(folder) as store:
        for n in range(100):
            await store.journal.record(entry(description=f"event {n}"))
        shutil.copytree(folder, copy)
    return copy


async def test_a_log_in_good_order_is_taken_up(opened, cut):
    async with opened(cut) as store:
        assert store.was_unclean
        assert store.salvaged == ()
        assert len(await everything(store)) == 100


async def test_a_torn_end_of_the_log_is_no_damage(opened, cut):
    wal = cut / "site.db-wal"
    os.truncate(wal, wal.stat().st_size - 1000)
    async with opened(cut) as store:
        assert store.salvaged == ()
        assert len(await everything(store)) == 99


@pytest.mark.parametrize("place", [0, 0.5])
async def test_a_log_damaged_in_its_middle_is_kept_and_its_ids_are_not_given_again(opened, cut, entry, place):
    wal = cut / "site.db-wal"
    damage(wal, int(wal.stat().st_size * place) + 8, 4)
    before = {part: (cut / part).read_bytes() for part in ("site.db", "site.db-wal")}
    async with opened(cut) as store:
        assert "commits of its log cannot be read" in store.salvaged[0]
        assert len(await everything(store)) < 100
        assert (await store.journal.record(entry())).event_ids[0] > SALVAGE_GAP
    assert (cut / "site.db.damaged-1").read_bytes() == before["site.db"]
    assert (cut / "site.db.damaged-1-wal").read_bytes() == before["site.db-wal"]


async def test_a_newer_schema_is_refused_with_its_sentence_and_left_alone(opened, used):
    with closing(sqlite3.connect(used / "site.db")) as connection:
        connection.execute("PRAGMA user_version = 99")
    newest = migrations("site")[-1].number
    with pytest.raises(StoreError, match=f"99, this program knows up to {newest}: install the newer"):
        async with opened(used):
            pass
    assert (used / "site.db.closed").exists()
    assert not list(used.glob("*damaged*"))
    with closing(sqlite3.connect(used / "site.db")) as connection:
        connection.execute(f"PRAGMA user_version = {newest}")
    async with opened(used) as store:
        assert not store.was_unclean


async def test_a_locked_file_is_not_taken_for_a_damaged_one(opened, used, monkeypatch):
    monkeypatch.setattr("gateway.store.engine.recovery.OTHER_PROGRAM_SECONDS", 0.1)
    with closing(sqlite3.connect(used / "site.db", isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN IMMEDIATE")
        other.execute("UPDATE book SET count = count")
        with pytest.raises(StoreError, match="another program holds the file"):
            async with opened(used):
                pass
        other.execute("ROLLBACK")
    assert not list(used.glob("*damaged*"))
    async with opened(used) as store:
        assert len(await everything(store)) == EVENTS


async def test_a_second_gateway_on_the_folder_is_refused(opened, used):
    async with opened(used) as store:
        with pytest.raises(StoreError, match="another gateway runs on the data folder"):
            async with opened(used):
                pass
        assert len(await everything(store)) == EVENTS
    async with opened(used):
        pass


class _Crash(Exception):
    pass


@pytest.mark.parametrize("step", range(1, 8))
async def test_a_crash_while_a_damaged_file_is_replaced_loses_nothing(opened, used, entry, monkeypatch, step):
    """The process dies at each of the steps in turn; the next start goes on from there."""
    size = (used / "site.db").stat().st_size
    pages = event_pages(used / "site.db")
    damage(used / "site.db", pages[len(pages) // 2], PAGE)
    unclean(used)
    real_sync, steps = recovery_module.sync_folder, 0
    real_rename = recovery_module.Path.rename

    def dying(real):
        def act(*arguments):
            nonlocal steps
            steps += 1
            if steps == step:
                raise _Crash
            return real(*arguments)

        return act

    with monkeypatch.context() as patch:
        patch.setattr(recovery_module, "sync_folder", dying(real_sync))
        patch.setattr(recovery_module.Path, "rename", dying(real_rename))
        try:
            async with opened(used):
                pass
        except _Crash:
            pass
    async with opened(used) as store:
        assert len(await everything(store)) > EVENTS * 0.75
        assert (await store.journal.record(entry())).event_ids[0] > EVENTS + SALVAGE_GAP
        assert await store.cards.count() == 1000
    kept = [path for path in used.glob("site.db.damaged-*") if path.stat().st_size == size]
    assert len(kept) == 1
    assert not list(used.glob("*.fresh*"))
    assert not list(used.glob("*.replacing"))


async def test_damage_met_while_running_is_told_and_mended_at_the_next_start(opened, used, entry):
    async with opened(used) as store:
        await store.events.page(EventFilter(), limit=1)
        size = (used / "site.db").stat().st_size
        damage(used / "site.db", 2 * PAGE, size - 2 * PAGE)
        with pytest.raises(StoreError, match="the file is damaged"):
            await store.events.page(EventFilter(search="nothing"), limit=5000)
        assert "mended at the next start" in store.damaged
    async with opened(used) as store:
        assert store.salvaged
        assert (await store.journal.record(entry())).event_ids[0] > EVENTS + SALVAGE_GAP


def damage_events(folder):
    for place in event_pages(folder / "site.db")[3:6]:
        damage(folder / "site.db", place, PAGE)


@pytest.fixture
async def killed(opened, used):
    """A folder as kill -9 left it in the first boot of the machine, with damage that only a check finds."""
    async with opened(used, boot="first"):
        pass
    unclean(used)
    damage_events(used)
    return used


async def test_after_a_kill_in_the_same_boot_the_file_is_not_checked(opened, killed, entry):
    async with opened(killed, boot="first") as store:
        assert store.was_unclean
        assert store.salvaged == ()
        assert (await store.journal.record(entry())).event_ids[0] > EVENTS + UNCLEAN_GAP


@pytest.mark.parametrize("boot", ["second", ""])
async def test_after_an_unclean_end_in_another_boot_the_file_is_checked(opened, killed, boot):
    async with opened(killed, boot=boot) as store:
        assert len(store.salvaged) == 1


async def test_a_copy_from_the_same_boot_is_checked(opened, killed, tmp_path):
    copy = Path(shutil.copytree(killed, tmp_path / "copy"))
    async with opened(copy, boot="first") as store:
        assert len(store.salvaged) == 1


async def test_after_damage_was_met_the_file_is_checked_in_the_same_boot(opened, killed):
    async with opened(killed, boot="first") as store:
        with pytest.raises(StoreError, match="the file is damaged"):
            await store.events.page(EventFilter(search="nothing"), limit=5000)
        unclean(killed)
    async with opened(killed, boot="first") as store:
        assert len(store.salvaged) == 1


WAYS_TO_LOSE = {
    "missing": lambda file: file.unlink(),
    "empty": lambda file: file.write_bytes(b""),
    "zeros": lambda file: file.write_bytes(bytes(10 * PAGE)),
    "no tables": lambda file: _run(file, "CREATE TABLE x (a)", "DROP TABLE x", anew=True),
    "no rows": lambda file: _run(file, "DELETE FROM card", "DELETE FROM card_alias", "DELETE FROM sweep"),
}


def _run(file, *statements, anew=False):
    if anew:
        file.unlink()
    with closing(sqlite3.connect(file)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


@pytest.mark.parametrize("way", WAYS_TO_LOSE)
@pytest.mark.parametrize("sends", [True, False], ids=["with central", "without central"])
async def test_a_lost_card_list_is_told_at_every_start_until_it_is_back(opened, used, way, sends):
    for part in used.glob("cards.db?*"):
        part.unlink()
    WAYS_TO_LOSE[way](used / "cards.db")
    async with opened(used, sends=sends) as store:
        assert len(store.salvaged) == 1
        assert store.cards.lost == store.salvaged[0]
    for _ in range(2):
        async with opened(used, sends=sends) as store:
            assert store.salvaged == ()  # an event tells it once, a problem until the list is back
            assert store.cards.lost
    async with opened(used, sends=sends) as store:
        await store.cards.apply(put=[StoredCard(Card(1, "1"), "{}")], now=1)
        assert bool(store.cards.lost) is sends  # central's list is not complete with its first card
    async with opened(used, sends=sends) as store:
        assert bool(store.cards.lost) is sends
        await store.cards.complete()
        assert store.cards.lost == ""
    async with opened(used, sends=sends) as store:
        assert store.cards.lost == ""


async def test_a_start_that_ends_before_it_tells_of_damaged_cards_leaves_it_to_the_next(used):
    size = (used / "cards.db").stat().st_size
    damage(used / "cards.db", size // 2 // PAGE * PAGE, 3 * PAGE)
    unclean(used)
    await asyncio.to_thread(recover, used / "cards.db", migrations("cards"), after_salvage("cards"))
    store = Store(folder=used, site_name="North", sends=True)
    await store.open()
    assert store.cards.lost == "cards.db was damaged"
    await store.close()


async def test_a_list_that_central_or_a_person_emptied_is_not_lost(opened, used):
    async with opened(used) as store:
        await store.cards.apply(remove=list(range(1, 1001)), now=1)
        assert await store.cards.count() == 0
    async with opened(used) as store:
        assert store.cards.lost == ""


@pytest.mark.parametrize("gone", ["cards.db", "site.db"])
async def test_a_first_start_that_ended_between_the_two_files_is_no_loss_of_cards(opened, tmp_path, gone):
    async with opened(tmp_path):
        pass
    for part in (*tmp_path.glob(f"{gone}*"), *tmp_path.glob("*.closed"), *tmp_path.glob("*.ids")):
        part.unlink(missing_ok=True)
    if gone == "cards.db":
        _run(tmp_path / "site.db", "UPDATE box SET has_cards_file = 0")
    async with opened(tmp_path) as store:
        assert store.cards.lost == ""
