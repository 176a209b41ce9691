"""A batch of collected records and its place in one transaction, wherever the database dies."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from fleet_scene import NAME

from gateway.fleet.collector import DatabaseAway, RefusedRow, Row, Tables, row_of
from gateway.fleet.names import STREAM, Extent, StreamMessage

asyncpg = pytest.importorskip("asyncpg", reason="asyncpg is missing: `make check` installs what tests need")

EXTENT = Extent("2026-11-28", first=1, last=3)


@dataclass
class Rows:
    """The content of the database: records, messages aside, the place in the stream, and rows on their way in."""

    records: list[tuple] = field(default_factory=list)
    refused: list[tuple] = field(default_factory=list)
    place: tuple = ()
    incoming: list[tuple] = field(default_factory=list)


class Database:
    """A connection whose database dies before the statement with that number; `rows` are those that are committed."""

    def __init__(self, *, dies_at: int = 10**6) -> None:
        self.rows = Rows()
        self.statements = 0
        self._dies_at = dies_at
        self._open: Rows | None = None

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        self._open = copy.deepcopy(self.rows)
        try:
            yield
            self._count()
            self.rows, self._open = self._open, None
            self.rows.incoming.clear()
        finally:
            self._open = None

    def _count(self) -> None:
        if self.statements == self._dies_at:
            raise asyncpg.ConnectionDoesNotExistError("the server closed the connection unexpectedly")
        self.statements += 1

    def _to_write(self) -> Rows:
        self._count()
        return self.rows if self._open is None else self._open

    async def copy_records_to_table(self, table: str, *, records, columns) -> None:
        rows = self._to_write()
        if self._open is not None:  # outside of a transaction they are gone with the statement
            rows.incoming += [(table, *one) for one in records]

    async def execute(self, sql: str, *values) -> None:
        rows = self._to_write()
        if sql.startswith("INSERT INTO collected_to"):
            rows.place = values
        elif "SELECT" in sql and "FROM incoming_" in sql:
            rows.records += [one for one in rows.incoming if f"FROM {one[0]} " in sql]

    async def executemany(self, sql: str, values) -> None:
        assert sql.startswith("INSERT INTO refused_message")
        self._to_write().refused += values


def batch() -> tuple[list[Row], list[RefusedRow]]:
    """Two records of two lists, and a message that is none."""
    found = []
    for number, name in enumerate(("event", "camera_event", "event"), 1):
        body = {"id": number, "name": "x", "date_at": "2026-11-25T10:00:00.000Z", "lane_id": "entry"}
        data = json.dumps(body).encode() if number < 3 else b"\xff"
        message_id = NAME.message_id(name, box=7, record_id=number)
        found.append(row_of(StreamMessage(NAME.events(name), data, at=1, sequence=number, message_id=message_id)))
    return [one for one in found if isinstance(one, Row)], [one for one in found if isinstance(one, RefusedRow)]


async def written(database: Database) -> None:
    rows, refused = batch()
    await Tables(database).write(rows, refused, stream=STREAM, extent=EXTENT, sequence=3)


async def test_a_batch_is_written_with_its_place():
    database = Database()
    await written(database)
    assert [one[0] for one in database.rows.records] == ["incoming_event", "incoming_camera_event"]
    assert [one[1] for one in database.rows.refused] == [3]
    assert database.rows.place == (STREAM, "2026-11-28", 3)


async def test_wherever_the_database_dies_the_place_and_the_rows_are_kept_together_or_not_at_all():
    whole = Database()
    await written(whole)
    for number in range(whole.statements):
        database = Database(dies_at=number)
        with pytest.raises(DatabaseAway):
            await written(database)
        assert database.rows == Rows(), f"the database died before statement {number}"
