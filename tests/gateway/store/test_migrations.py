from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from gateway.domain.errors import StoreError
from gateway.store.engine.migrations import FAMILIES, Migration, migrate, migrations


@pytest.mark.parametrize("family", FAMILIES)
def test_numbers_run_from_one_without_a_hole(family):
    assert [step.number for step in migrations(family)] == list(range(1, len(migrations(family)) + 1))


def test_a_step_that_fails_leaves_the_schema_as_it_was():
    first = Migration(1, "first", "CREATE TABLE a (n INTEGER);")
    bad = Migration(2, "bad", "CREATE TABLE b (n INTEGER);\nCREATE TABLE a (n INTEGER);")
    good = Migration(2, "good", "CREATE TABLE b (n INTEGER);")
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        with pytest.raises(sqlite3.OperationalError):
            migrate(connection, (first, bad))
        assert connection.in_transaction is False
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        migrate(connection, (first, good))
        migrate(connection, (first, good))
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)


def test_a_newer_schema_is_refused():
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("PRAGMA user_version = 3")
        with pytest.raises(StoreError, match="schema 3, this program knows up to 1"):
            migrate(connection, (Migration(1, "first", ""),))
