"""Devices and cameras, each with the site file's values and central's complete record.

Programs may register devices here. The interface has no operation to delete a device at central. A registered device
that central may have is therefore only hidden when it is removed here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from gateway.domain.writes import JsonObject
from gateway.store.engine.changes import Changes
from gateway.store.engine.database import Database, is_id
from gateway.store.engine.text_search import search_in
from gateway.store.outbox.pending_writes import take_back
from gateway.store.outbox.record_kinds import RECORD_KINDS
from gateway.store.outbox.rows import keep_centrals, outbox_rows

Table = Literal["device", "camera"]

_KIND = "device"


@dataclass(frozen=True, slots=True)
class KnownRecord:
    """A device or camera.

    Attributes:
        id: central's id, or a provisional one.
        name: the name to show.
        kind: a device's driver in the site file, or else central's type of it; "" for none, and for cameras.
        at_site: whether the site file has it, so that this gateway handles it.
        record: central's record as JSON text, "{}" if central has none.
    """

    id: int
    name: str
    kind: str
    at_site: bool
    record: str = "{}"


_NOT_REMOVED = "id NOT IN (SELECT id FROM registered_device WHERE removed_at IS NOT NULL)"
"""SQL condition: a device was not removed by a program; see `RegisteredDevices`."""


class Records:
    """The devices, or the cameras."""

    def __init__(self, *, database: Database, table: Table) -> None:
        self._database = database
        self._table = table
        self._kind = "kind" if table == "device" else "''"
        self._shown = _NOT_REMOVED if table == "device" else "1"

    async def get(self, record_id: int) -> KnownRecord | None:
        """Return one record, or None."""

        def query(connection: sqlite3.Connection) -> KnownRecord | None:
            row = connection.execute(
                f"SELECT id, name, {self._kind}, at_site, record FROM {self._table} WHERE id = ? AND {self._shown}",
                (record_id,),
            ).fetchone()
            return _record(row) if row else None

        return await self._database.read(query) if is_id(record_id) else None

    async def page(
        self, *, search: str = "", before: int = 0, offset: int = 0, limit: int = 25
    ) -> tuple[tuple[KnownRecord, ...], int, int | None]:
        """Return a page of records by descending id, the number of all matches, and the next page's `before`."""
        limit = max(limit, 0)
        found = search_in(search, texts=("name",))

        def query(connection: sqlite3.Connection) -> tuple[tuple[KnownRecord, ...], int, int | None]:
            match = f"{found.sql} AND {self._shown}"
            (count,) = connection.execute(f"SELECT count(*) FROM {self._table} WHERE {match}", found.values).fetchone()
            bound = " AND id < ?" if before else ""
            rows = connection.execute(
                f"SELECT id, name, {self._kind}, at_site, record FROM {self._table} WHERE {match}{bound}"
                " ORDER BY id DESC LIMIT ? OFFSET ?",
                (*found.values, *((before,) if before else ()), limit + 1, offset),
            ).fetchall()
            records = tuple(_record(row) for row in rows[:limit])
            return records, int(count), records[-1].id if len(rows) > limit > 0 else None

        return await self._database.read(query)

    async def all(self) -> tuple[KnownRecord, ...]:
        """Return every record by ascending id, removed devices included."""
        return await self._database.rows(
            f"SELECT id, name, {self._kind}, at_site, record FROM {self._table} ORDER BY id", of=_record
        )

    async def declare(self, records: Iterable[KnownRecord], *, now: int) -> None:
        """Store all records of the site file, whose names and kinds count. All other records are not at the site.

        Records that neither the site file nor central has are deleted.
        """
        declared = tuple(records)

        def job(connection: sqlite3.Connection) -> None:
            connection.execute(f"UPDATE {self._table} SET at_site = 0")
            for item in declared:
                self._declare(connection, item, now)
            connection.execute(f"DELETE FROM {self._table} WHERE at_site = 0 AND record = '{{}}'")

        await self._database.write(job)

    async def pulled(self, records: Mapping[int, JsonObject], *, removed: Iterable[int], now: int) -> None:
        """Apply central's changed records, by their ids, and removed ids of a pull; the site file's records stay.

        Waiting writes of a record are laid over central's. A record with waiting writes is not removed.
        """
        gone = tuple(removed)

        def job(connection: sqlite3.Connection) -> None:
            for record_id in gone:
                if not outbox_rows(connection, self._table, record_id):
                    RECORD_KINDS[self._table].remove(connection, record_id)
            for record_id, record in records.items():
                keep_centrals(connection, self._table, record_id, record, now=now)

        await self._database.write(job)

    def _declare(self, connection: sqlite3.Connection, item: KnownRecord, now: int) -> None:
        """Add or rename a record of the site file; central's record of it stays."""
        columns = ("id", "name", "at_site", "record", "updated_at", *(("kind",) if self._table == "device" else ()))
        values = {
            "id": item.id,
            "name": item.name,
            "at_site": 1,
            "record": item.record,
            "updated_at": now,
            "kind": item.kind,
        }
        connection.execute(
            f"INSERT INTO {self._table} ({', '.join(columns)}) VALUES ({', '.join(f':{name}' for name in columns)})"
            " ON CONFLICT (id) DO UPDATE SET"
            f" {', '.join(f'{name} = excluded.{name}' for name in columns if name not in ('id', 'record'))}",
            values,
        )


def _record(row: tuple[int, str, str, int, str]) -> KnownRecord:
    return KnownRecord(id=row[0], name=row[1], kind=row[2], at_site=bool(row[3]), record=row[4])


class RegisteredDevices:
    """The devices that programs registered and removed."""

    def __init__(self, *, database: Database, changes: Changes) -> None:
        self._database = database
        self._changes = changes

    async def add(self, device_id: int) -> None:
        """Record that a device was registered at the site."""

        def job(connection: sqlite3.Connection) -> None:
            known = RECORD_KINDS[_KIND].site_id(connection, device_id)
            connection.execute("INSERT OR IGNORE INTO registered_device (id) VALUES (?)", (known,))

        await self._database.write(job)

    async def remove(self, device_id: int, *, now: int) -> bool:
        """Remove a device that was registered at the site; return False for any other device.

        If its create cannot have reached central, the create is never sent.
        """

        def job(connection: sqlite3.Connection) -> bool:
            known = RECORD_KINDS[_KIND].site_id(connection, device_id)
            if take_back(connection, _KIND, known):
                RECORD_KINDS[_KIND].remove(connection, known)
                connection.execute("DELETE FROM registered_device WHERE id = ?", (known,))
                return True
            changed = connection.execute(
                "UPDATE registered_device SET removed_at = ? WHERE id = ? AND removed_at IS NULL", (now, known)
            )
            return bool(changed.rowcount)

        return await self._database.write(job, then=self._changes.bump)

    async def since(self, device_id: int) -> int:
        """Return since when a device is known at the site (wall micros), 0 if unknown."""

        def query(connection: sqlite3.Connection) -> int:
            row = connection.execute("SELECT at FROM device_since WHERE id = ?", (device_id,)).fetchone()
            return int(row[0]) if row else 0

        return await self._database.read(query)
