"""Data of every released schema is taken over by this program, and data of a newer one is refused untouched."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from released_schemas import FOLDER, NOON, dumped, file_of, newest, restored, schema

from gateway.domain.credentials import plate_alias
from gateway.domain.errors import StoreError
from gateway.store import Consumer, Store
from gateway.store.engine.migrations import FAMILIES, migrate, migrations

SCHEMAS = [(family, step.number) for family in FAMILIES for step in migrations(family)]


def rows(database) -> dict[str, int]:
    """The number of rows of each table."""
    with closing(sqlite3.connect(database)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        counts = {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}
    return {name: count for name, count in counts.items() if not name.startswith("sqlite_")}


@pytest.mark.parametrize(("family", "number"), SCHEMAS)
def test_each_schema_has_its_file_and_is_never_changed(family, number, tmp_path):
    assert file_of(family, number).exists(), "run: python tests/simulators/released_schemas.py"
    restored(file_of(family, number).read_text(), tmp_path / "released.db")
    with closing(sqlite3.connect(tmp_path / "made.db", isolation_level=None)) as connection:
        migrate(connection, migrations(family)[:number])
    assert schema(tmp_path / "made.db") == schema(tmp_path / "released.db"), (
        f"a released step was edited: put the change into migrations/{family}/{newest(family) + 1:04}_….sql"
    )


def test_there_is_no_file_of_a_schema_that_does_not_exist():
    assert {path.name for path in FOLDER.iterdir()} == {file_of(*one).name for one in SCHEMAS}


@pytest.mark.parametrize("number", range(1, newest("site") + 1))
async def test_data_of_an_older_program_is_taken_over_whole(opened, tmp_path, number):
    restored(file_of("site", number).read_text(), tmp_path / "site.db")
    restored(file_of("cards", min(number, newest("cards"))).read_text(), tmp_path / "cards.db")
    if number >= 5:  # such a program noted in both files that there is one of cards, whose schema is the same
        with closing(sqlite3.connect(tmp_path / "cards.db")) as connection, connection:
            connection.execute("INSERT INTO sweep VALUES ('lost', '')")
    before = rows(tmp_path / "site.db")
    async with opened(tmp_path) as store:
        (event,) = await store.events.latest(limit=9)
        assert (event.description, event.date_at, event.lane_id) == ("A vehicle passed.", NOON, "entry")
        assert [card.card_id for card in await store.cards.matching((plate_alias("FLT1041"),))] == [41]
        (account,) = await store.accounts.all()
        assert (account.username, account.role) == ("guard", "guard")
        (hook,) = await store.webhooks.all()
        assert hook.books.balance()
        books = await store.outbox.books()
        assert books.balance()
        assert books.waiting >= 3
        assert len(await store.segments.paths()) == 1
        # and the program goes on with it
        command = await store.commands.get("b-1")
        assert command is not None
        assert command.lane_id == "entry"
        assert store.salvaged == ()
        assert not store.was_unclean
    after = rows(tmp_path / "site.db")
    assert {name: after.get(name) for name, count in before.items() if count} == {
        name: count for name, count in before.items() if count
    }
    with closing(sqlite3.connect(tmp_path / "fresh.db", isolation_level=None)) as connection:
        migrate(connection, migrations("site"))
    assert schema(tmp_path / "site.db") == schema(tmp_path / "fresh.db")


async def test_read_marks_of_programs_go_and_those_of_the_fleet_and_the_mirror_stay(opened, tmp_path):
    restored(file_of("site", 5).read_text(), tmp_path / "site.db")
    restored(file_of("cards", 1).read_text(), tmp_path / "cards.db")
    marks = [("fleet", "event", "stream"), ("mqtt", "event", "mirror"), ("fleet", "event", ""), ("till", "entry", "")]
    with closing(sqlite3.connect(tmp_path / "site.db")) as connection, connection:
        sql = "INSERT INTO read_cursor (account, list, filter, read_to, read_at, began_at) VALUES (?, ?, ?, 7, 1, 1)"
        connection.executemany(sql, marks)
    async with opened(tmp_path) as store:
        left = await store.read_cursors.all()
    assert [(one.consumer, one.read_to) for one in left] == [(Consumer(*one), 7) for one in marks[:2]]


@pytest.mark.parametrize("family", FAMILIES)
async def test_data_of_a_newer_program_is_refused_with_a_sentence_and_left_alone(opened, tmp_path, family):
    async with opened(tmp_path):
        pass
    with closing(sqlite3.connect(tmp_path / f"{family}.db")) as connection:
        connection.execute(f"PRAGMA user_version = {newest(family) + 1}")
    before = dumped(tmp_path / f"{family}.db")
    with pytest.raises(StoreError) as refused:
        await Store(folder=tmp_path, site_name="North", sends=True).open()
    number = newest(family)
    assert str(refused.value) == (
        f"the database has schema {number + 1}, this program knows up to {number}: "
        "install the newer program again, or restore the data folder that belongs to this one"
    )
    assert dumped(tmp_path / f"{family}.db") == before
