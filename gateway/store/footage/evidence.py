"""Exhibits and the links under which they are handed out: rows alone; the files are recording's."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from gateway.domain.errors import NotFoundError
from gateway.domain.events import Event
from gateway.domain.evidence import Exhibit, ExhibitLink, KeptAs
from gateway.store.engine.changes import Changes
from gateway.store.engine.database import Database, is_id
from gateway.store.events.events import insert_event
from gateway.store.outbox.outbox import FILES
from gateway.store.outbox.rows import COLUMNS as ROW_COLUMNS
from gateway.store.outbox.rows import OutboxRow, as_row, insert_outbox, take_out

_COLUMNS = (
    "id, camera_event_id, name, description, kept_as, media_type, size, sha256, file, created_at, clock_trusted,"
    " username, central_id, delivered, missing"
)
_LINK_COLUMNS = "id, exhibit_id, username, created_at, expires_at, revoked_at"
_MOST_LINKS = 100


class TooMany(Exception):
    """There are as many already as there may be."""


class Exhibits:
    """Files that people added to camera events."""

    def __init__(self, *, database: Database, changes: Changes, sends: bool) -> None:
        """`sends`: there is a central that is to get them."""
        self._database = database
        self._changes = changes
        self._sends = sends

    async def add(self, draft: Exhibit, *, event: Event, most: int) -> Exhibit:
        """Record an exhibit whose file is on disk, with the event that tells of it; the row that there is from then on.

        It is an older one, by its id and file, when the camera event has the same bytes already: nothing is recorded.

        Raises NotFoundError when the camera event is gone, TooMany when it has `most` already, StoreError.
        """

        def job(connection: sqlite3.Connection) -> Exhibit:
            place = draft.camera_event_id
            if connection.execute("SELECT 1 FROM camera_event WHERE id = ?", (place,)).fetchone() is None:
                raise NotFoundError(f"there is no camera event {place}")
            same = connection.execute(
                f"SELECT {_COLUMNS} FROM exhibit WHERE camera_event_id = ? AND sha256 = ? AND garbage = 0"
                " AND missing = 0",
                (place, draft.sha256),
            ).fetchone()
            if same:
                return _exhibit(same)
            (count,) = connection.execute(
                "SELECT count(*) FROM exhibit WHERE camera_event_id = ? AND garbage = 0", (place,)
            ).fetchone()
            if count >= most:
                raise TooMany
            added = replace(draft, id=_insert(connection, draft))
            insert_event(connection, replace(event, data={**event.data, "evidence_id": added.id}))
            if self._sends:
                insert_outbox(
                    connection,
                    kind=FILES,
                    record_id=added.id,
                    body="{}",
                    now=added.created_at,
                    file_bytes=added.size,
                )
            return added

        return await self._database.write(job, then=self._changes.bump)

    async def get(self, exhibit_id: int) -> Exhibit | None:
        """One exhibit by the site's id or by central's, or None."""
        if not is_id(exhibit_id):
            return None
        found = await self._select("(id = ? OR central_id = ?) AND garbage = 0", (exhibit_id, exhibit_id))
        return next((item for item in found if item.id == exhibit_id), found[0] if found else None)

    async def of(self, camera_event_ids: Sequence[int]) -> tuple[Exhibit, ...]:
        """What was added to these camera events, oldest first."""
        places = ", ".join("?" * len(camera_event_ids))
        return await self._select(f"camera_event_id IN ({places}) AND garbage = 0", tuple(camera_event_ids))

    async def all(self) -> tuple[Exhibit, ...]:
        """Every exhibit that is not let go of."""
        return await self._select("garbage = 0", ())

    async def garbage(self) -> tuple[Exhibit, ...]:
        """Exhibits that were let go of: their files are to be deleted, then their rows."""
        return await self._select("garbage = 1", ())

    async def held_by_loss(self) -> tuple[Exhibit, ...]:
        """Those that wait in the outbox for their file to be back."""
        return await self._select(
            "missing = 1 AND garbage = 0 AND id IN"
            f" (SELECT record_id FROM outbox WHERE kind = '{FILES}' AND parked = 1)",
            (),
        )

    async def bytes_kept(self) -> int:
        """How much room all of them take."""
        (size,) = await self._database.read(
            lambda connection: connection.execute(
                "SELECT coalesce(sum(size), 0) FROM exhibit WHERE missing = 0"
            ).fetchone()
        )
        return int(size)

    async def let_go(self, *, now: int, transactions_before: int, incidents_before: int) -> int:
        """Let go of what is older than its class may be and waits for nobody; how many.

        All by a trusted clock: what came while there was none counts from now on.
        """
        waits = f"EXISTS (SELECT 1 FROM outbox WHERE kind = '{FILES}' AND record_id = exhibit.id)"
        free = f"NOT {waits}" if self._sends else "1"

        def job(connection: sqlite3.Connection) -> int:
            connection.execute("UPDATE exhibit SET kept_from = ? WHERE kept_from IS NULL", (now,))
            return connection.execute(
                f"UPDATE exhibit SET garbage = 1 WHERE garbage = 0 AND {free}"
                " AND kept_from < CASE kept_as WHEN 'incident' THEN ? ELSE ? END",
                (incidents_before, transactions_before),
            ).rowcount

        return await self._database.write(job)

    async def due(self, *, now: int) -> OutboxRow | None:
        """The oldest row of a file that may be sent now."""

        def query(connection: sqlite3.Connection) -> OutboxRow | None:
            row = connection.execute(
                f"SELECT {ROW_COLUMNS} FROM outbox INDEXED BY outbox_by_record"
                " WHERE kind = ? AND parked = 0 AND next_at <= ? ORDER BY id LIMIT 1",
                (FILES, now),
            ).fetchone()
            return None if row is None else as_row(row)

        return await self._database.read(query)

    async def next_due(self) -> int | None:
        """When the earliest file may be sent (wall micros), None when none will be."""
        (earliest,) = await self._database.read(
            lambda connection: connection.execute(
                "SELECT min(next_at) FROM outbox INDEXED BY outbox_by_record WHERE kind = ? AND parked = 0", (FILES,)
            ).fetchone()
        )
        return None if earliest is None else int(earliest)

    async def sent(self, row: OutboxRow, *, central_id: int | None) -> None:
        """Central has the file, under this id where it named one."""

        def job(connection: sqlite3.Connection) -> None:
            if take_out(connection, (row.id,), "delivered"):
                connection.execute(
                    "UPDATE exhibit SET delivered = 1, central_id = ? WHERE id = ?", (central_id, row.record_id)
                )

        await self._database.write(job, then=self._changes.bump)

    async def drop_row(self, row: OutboxRow) -> None:
        """It was let go of before it was sent."""
        await self._database.write(lambda connection: take_out(connection, (row.id,), "dropped"))

    async def forget(self, exhibits: Iterable[Exhibit]) -> None:
        """Remove the rows of exhibits that were let go of and whose files are gone."""
        gone = [(item.id,) for item in exhibits]
        await self._database.write(
            lambda connection: connection.executemany("DELETE FROM exhibit WHERE id = ? AND garbage = 1", gone)
        )

    async def note_missing(self, missing: Iterable[int], found: Iterable[int]) -> None:
        """Whose file is not there, and whose is again: what waited for that goes up."""
        back = [(number,) for number in found]
        marks = [(1, number) for number in missing] + [(0, number) for (number,) in back]

        def job(connection: sqlite3.Connection) -> None:
            connection.executemany("UPDATE exhibit SET missing = ? WHERE id = ?", marks)
            connection.executemany(
                "UPDATE outbox SET parked = 0, tries = 0, next_at = 0, error = ''"
                f" WHERE kind = '{FILES}' AND record_id = ? AND parked = 1 AND begun = 0",
                back,
            )

        await self._database.write(job, then=self._changes.bump)

    async def add_link(self, link: ExhibitLink, token: str) -> ExhibitLink:
        """Keep a link. Raises NotFoundError when its exhibit is gone, TooMany, StoreError."""

        def job(connection: sqlite3.Connection) -> ExhibitLink:
            owner = connection.execute(
                "SELECT 1 FROM exhibit WHERE id = ? AND garbage = 0", (link.exhibit_id,)
            ).fetchone()
            if owner is None:
                raise NotFoundError(f"there is no evidence {link.exhibit_id}")
            connection.execute(
                "DELETE FROM exhibit_link WHERE exhibit_id = ? AND (expires_at <= ? OR revoked_at IS NOT NULL)",
                (link.exhibit_id, link.created_at),
            )
            (count,) = connection.execute(
                "SELECT count(*) FROM exhibit_link WHERE exhibit_id = ?", (link.exhibit_id,)
            ).fetchone()
            if count >= _MOST_LINKS:
                raise TooMany
            cursor = connection.execute(
                "INSERT INTO exhibit_link (exhibit_id, token_hash, username, created_at, expires_at)"
                " VALUES (?, ?, ?, ?, ?)",
                (link.exhibit_id, _hashed(token), link.username, link.created_at, link.expires_at),
            )
            return replace(link, id=int(cursor.lastrowid or 0))

        return await self._database.write(job)

    async def link(self, token: str) -> ExhibitLink | None:
        """The link of a token, good or not; None for one that was never given."""
        row = await self._database.read(
            lambda connection: connection.execute(
                f"SELECT {_LINK_COLUMNS} FROM exhibit_link WHERE token_hash = ?", (_hashed(token),)
            ).fetchone()
        )
        return ExhibitLink(*row) if row else None

    async def revoke(self, exhibit_id: int, *, link_id: int | None, now: int) -> int:
        """Take back one link of an exhibit, or all of them; how many were good until now."""
        only, values = ("", ()) if link_id is None else (" AND id = ?", (link_id,))
        return await self._database.write(
            lambda connection: (
                connection.execute(
                    "UPDATE exhibit_link SET revoked_at = ? WHERE exhibit_id = ? AND revoked_at IS NULL"
                    f" AND expires_at > ?{only}",
                    (now, exhibit_id, now, *values),
                ).rowcount
            )
        )

    async def _select(self, condition: str, values: tuple[int, ...]) -> tuple[Exhibit, ...]:
        return await self._database.rows(
            f"SELECT {_COLUMNS} FROM exhibit WHERE {condition} ORDER BY id", values, of=_exhibit
        )


def _insert(connection: sqlite3.Connection, draft: Exhibit) -> int:
    cursor = connection.execute(
        "INSERT INTO exhibit (camera_event_id, name, description, kept_as, media_type, size, sha256, file, created_at,"
        " clock_trusted, username, kept_from) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            draft.camera_event_id,
            draft.name,
            draft.description,
            draft.kept_as.value,
            draft.media_type,
            draft.size,
            draft.sha256,
            draft.file,
            draft.created_at,
            draft.clock_trusted,
            draft.username,
            draft.created_at if draft.clock_trusted else None,
        ),
    )
    return int(cursor.lastrowid or 0)


def _hashed(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _exhibit(row: tuple[Any, ...]) -> Exhibit:
    return Exhibit(
        id=row[0],
        camera_event_id=row[1],
        name=row[2],
        description=row[3],
        kept_as=KeptAs(row[4]),
        media_type=row[5],
        size=row[6],
        sha256=row[7],
        file=row[8],
        created_at=row[9],
        clock_trusted=bool(row[10]),
        username=row[11],
        central_id=row[12],
        delivered=bool(row[13]),
        missing=bool(row[14]),
    )
