"""Rows of evidence and of the links by which it is shared. `gateway.recording.evidence_files` has the files."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from gateway.domain.errors import NotFoundError
from gateway.domain.events import Event
from gateway.domain.evidence import Evidence, EvidenceLink, KeptAs, Maker
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
_LINK_COLUMNS = "id, evidence_id, username, created_at, expires_at, revoked_at, maker"
_MOST_LINKS = 100


class TooMany(Exception):
    """Refusal: the greatest number of records is reached."""


class EvidenceRows:
    """Rows of the files that people attached to camera events."""

    def __init__(self, *, database: Database, changes: Changes, sends: bool) -> None:
        """Keep the collaborators. `sends`: whether there is a central that is to get the files."""
        self._database = database
        self._changes = changes
        self._sends = sends

    async def add(self, draft: Evidence, *, event: Event, most: int) -> Evidence:
        """Record evidence whose file is on disk, with its event, and return it.

        If the camera event already has evidence with the same bytes, nothing is recorded and that is returned.

        Raises:
            NotFoundError: the camera event is gone.
            TooMany: the camera event already has `most` pieces of evidence.
            StoreError: the disk refuses.
        """

        def job(connection: sqlite3.Connection) -> Evidence:
            place = draft.camera_event_id
            if connection.execute("SELECT 1 FROM camera_event WHERE id = ?", (place,)).fetchone() is None:
                raise NotFoundError(f"there is no camera event {place}")
            same = connection.execute(
                f"SELECT {_COLUMNS} FROM evidence WHERE camera_event_id = ? AND sha256 = ? AND garbage = 0"
                " AND missing = 0",
                (place, draft.sha256),
            ).fetchone()
            if same:
                return _evidence(same)
            (count,) = connection.execute(
                "SELECT count(*) FROM evidence WHERE camera_event_id = ? AND garbage = 0", (place,)
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

    async def get(self, evidence_id: int) -> Evidence | None:
        """Return a piece of evidence by the site's id or by central's, or None."""
        if not is_id(evidence_id):
            return None
        found = await self._select("(id = ? OR central_id = ?) AND garbage = 0", (evidence_id, evidence_id))
        return next((item for item in found if item.id == evidence_id), found[0] if found else None)

    async def of(self, camera_event_ids: Sequence[int]) -> tuple[Evidence, ...]:
        """Return the evidence of these camera events, oldest first."""
        places = ", ".join("?" * len(camera_event_ids))
        return await self._select(f"camera_event_id IN ({places}) AND garbage = 0", tuple(camera_event_ids))

    async def all(self) -> tuple[Evidence, ...]:
        """Return all evidence that has not expired."""
        return await self._select("garbage = 0", ())

    async def garbage(self) -> tuple[Evidence, ...]:
        """Return expired evidence, whose files and then rows are to be deleted."""
        return await self._select("garbage = 1", ())

    async def held_by_loss(self) -> tuple[Evidence, ...]:
        """Return evidence whose outbox row is parked because its file is missing."""
        return await self._select(
            "missing = 1 AND garbage = 0 AND id IN"
            f" (SELECT record_id FROM outbox WHERE kind = '{FILES}' AND parked = 1)",
            (),
        )

    async def bytes_kept(self) -> int:
        """Return the total size of all evidence on disk, in bytes."""
        (size,) = await self._database.read(
            lambda connection: connection.execute(
                "SELECT coalesce(sum(size), 0) FROM evidence WHERE missing = 0"
            ).fetchone()
        )
        return int(size)

    async def let_go(self, *, now: int, transactions_before: int, incidents_before: int) -> int:
        """Expire evidence that is older than the limit of its class and is not to be sent; return how many pieces.

        Times are wall micros of a trusted clock. The age of evidence from before the clock was trusted counts from
        `now`.
        """
        waits = f"EXISTS (SELECT 1 FROM outbox WHERE kind = '{FILES}' AND record_id = evidence.id)"
        free = f"NOT {waits}" if self._sends else "1"

        def job(connection: sqlite3.Connection) -> int:
            connection.execute("UPDATE evidence SET kept_from = ? WHERE kept_from IS NULL", (now,))
            return connection.execute(
                f"UPDATE evidence SET garbage = 1 WHERE garbage = 0 AND {free}"
                " AND kept_from < CASE kept_as WHEN 'incident' THEN ? ELSE ? END",
                (incidents_before, transactions_before),
            ).rowcount

        return await self._database.write(job)

    async def due(self, *, now: int) -> OutboxRow | None:
        """Return the oldest outbox row of a file that may be sent now, or None."""

        def query(connection: sqlite3.Connection) -> OutboxRow | None:
            row = connection.execute(
                f"SELECT {ROW_COLUMNS} FROM outbox INDEXED BY outbox_by_record"
                " WHERE kind = ? AND parked = 0 AND next_at <= ? ORDER BY id LIMIT 1",
                (FILES, now),
            ).fetchone()
            return None if row is None else as_row(row)

        return await self._database.read(query)

    async def next_due(self) -> int | None:
        """Return when the earliest file may be sent (wall micros), None if none waits."""
        (earliest,) = await self._database.read(
            lambda connection: connection.execute(
                "SELECT min(next_at) FROM outbox INDEXED BY outbox_by_record WHERE kind = ? AND parked = 0", (FILES,)
            ).fetchone()
        )
        return None if earliest is None else int(earliest)

    async def sent(self, row: OutboxRow, *, central_id: int | None) -> None:
        """Record that central has the file. `central_id`: central's id of it, None if central gave none."""

        def job(connection: sqlite3.Connection) -> None:
            if take_out(connection, (row.id,), "delivered"):
                connection.execute(
                    "UPDATE evidence SET delivered = 1, central_id = ? WHERE id = ?", (central_id, row.record_id)
                )

        await self._database.write(job, then=self._changes.bump)

    async def drop_row(self, row: OutboxRow) -> None:
        """Drop the outbox row of a file that expired before it was sent."""
        await self._database.write(lambda connection: take_out(connection, (row.id,), "dropped"))

    async def forget(self, evidence: Iterable[Evidence]) -> None:
        """Remove the rows of expired evidence whose files are deleted."""
        gone = [(item.id,) for item in evidence]
        await self._database.write(
            lambda connection: connection.executemany("DELETE FROM evidence WHERE id = ? AND garbage = 1", gone)
        )

    async def note_missing(self, missing: Iterable[int], found: Iterable[int]) -> None:
        """Record the ids of evidence whose file is missing, and of evidence whose file is back, which is sent again."""
        back = [(number,) for number in found]
        marks = [(1, number) for number in missing] + [(0, number) for (number,) in back]

        def job(connection: sqlite3.Connection) -> None:
            connection.executemany("UPDATE evidence SET missing = ? WHERE id = ?", marks)
            connection.executemany(
                "UPDATE outbox SET parked = 0, tries = 0, next_at = 0, error = ''"
                f" WHERE kind = '{FILES}' AND record_id = ? AND parked = 1 AND begun = 0",
                back,
            )

        await self._database.write(job, then=self._changes.bump)

    async def add_link(self, link: EvidenceLink, token: str) -> EvidenceLink:
        """Store a link with the hash of its token, and return it with its id.

        Raises NotFoundError if its evidence is gone, TooMany if that has 100 valid links, StoreError.
        """

        def job(connection: sqlite3.Connection) -> EvidenceLink:
            owner = connection.execute(
                "SELECT 1 FROM evidence WHERE id = ? AND garbage = 0", (link.evidence_id,)
            ).fetchone()
            if owner is None:
                raise NotFoundError(f"there is no evidence {link.evidence_id}")
            connection.execute(
                "DELETE FROM evidence_link WHERE evidence_id = ? AND (expires_at <= ? OR revoked_at IS NOT NULL)",
                (link.evidence_id, link.created_at),
            )
            (count,) = connection.execute(
                "SELECT count(*) FROM evidence_link WHERE evidence_id = ?", (link.evidence_id,)
            ).fetchone()
            if count >= _MOST_LINKS:
                raise TooMany
            cursor = connection.execute(
                "INSERT INTO evidence_link (evidence_id, token_hash, username, created_at, expires_at, maker)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (link.evidence_id, _hashed(token), link.username, link.created_at, link.expires_at, link.maker.value),
            )
            return replace(link, id=int(cursor.lastrowid or 0))

        return await self._database.write(job)

    async def link(self, token: str) -> EvidenceLink | None:
        """Return the link of a token, also an expired or revoked one; None for an unknown token."""
        row = await self._database.read(
            lambda connection: connection.execute(
                f"SELECT {_LINK_COLUMNS} FROM evidence_link WHERE token_hash = ?", (_hashed(token),)
            ).fetchone()
        )
        return None if row is None else replace(EvidenceLink(*row[:-1]), maker=Maker(row[-1]))

    async def revoke(
        self, evidence_id: int, *, link_id: int | None, made_by: tuple[str, Maker] | None, now: int
    ) -> int:
        """Revoke one link of a piece of evidence, or all (`link_id` None); return how many were valid until now.

        `made_by`: the name and kind of the maker whose links alone are revoked; None: anybody's.
        """
        only, values = "", list[int | str]()
        if link_id is not None:
            only, values = " AND id = ?", [link_id]
        if made_by is not None:
            only, values = f"{only} AND username = ? AND maker = ?", [*values, *made_by]
        return await self._database.write(
            lambda connection: (
                connection.execute(
                    "UPDATE evidence_link SET revoked_at = ? WHERE evidence_id = ? AND revoked_at IS NULL"
                    f" AND expires_at > ?{only}",
                    (now, evidence_id, now, *values),
                ).rowcount
            )
        )

    async def _select(self, condition: str, values: tuple[int, ...]) -> tuple[Evidence, ...]:
        return await self._database.rows(
            f"SELECT {_COLUMNS} FROM evidence WHERE {condition} ORDER BY id", values, of=_evidence
        )


def _insert(connection: sqlite3.Connection, draft: Evidence) -> int:
    cursor = connection.execute(
        "INSERT INTO evidence (camera_event_id, name, description, kept_as, media_type, size, sha256, file, created_at,"
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


def _evidence(row: tuple[Any, ...]) -> Evidence:
    return Evidence(
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
