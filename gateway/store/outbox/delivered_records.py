"""Records that central has acknowledged, to be compared with central's and sent again if central has lost them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from gateway.domain.events import EventKind
from gateway.domain.presence import card_holder
from gateway.domain.writes import CARD_CREATE, JsonObject
from gateway.runtime.clock import Stamp
from gateway.store.engine.changes import Changes
from gateway.store.engine.database import Database
from gateway.store.events.entry_rows import entry_bodies
from gateway.store.events.presence import record_rename
from gateway.store.footage.camera_events import camera_event_body, camera_event_of
from gateway.store.outbox.deliveries import take_id_from
from gateway.store.outbox.outbox import FILES
from gateway.store.outbox.record_kinds import RECORD_KINDS
from gateway.store.outbox.rows import body_text, insert_outbox, outbox_rows, take_out

Kind = Literal["camera_event", "entry"]
_LARGEST_ID: Final = 2**63 - 1
_TABLES: Final[dict[Kind, Literal["camera_event", "parking_entry"]]] = {
    "camera_event": "camera_event",
    "entry": "parking_entry",
}
_AT: Final[dict[Kind, str]] = {"camera_event": "date_at", "entry": "at"}


@dataclass(frozen=True, slots=True)
class DeliveredRecord:
    """A record that central acknowledged, as it is at the site.

    Attributes:
        id: the site's id.
        central_id: central's id; None if central has given it to another record since.
        body: the body that creates the record at central.
        changes: the bodies of the updates that must follow the creation.
    """

    id: int
    central_id: int | None
    body: JsonObject
    changes: tuple[JsonObject, ...] = ()


class DeliveredRecords:
    """Camera events, entries, evidence and cards that central has acknowledged."""

    def __init__(self, *, database: Database, changes: Changes, site_name: str) -> None:
        self._database = database
        self._changes = changes
        self.site_name = site_name

    async def since(self, kind: Kind, since: int, *, behind: int = 0, limit: int = 500) -> tuple[DeliveredRecord, ...]:
        """Return the next records since a time (wall micros) with an id above `behind`, by ascending id.

        Records whose create waits are left out. Records whose id central gave to another record are included.
        """
        return await self._find(
            kind,
            f"id > ?1 AND {_AT[kind]} >= ?2"
            " AND (central_id IS NOT NULL OR id IN (SELECT data ->> 'had_by' FROM event"
            "  WHERE type = ?3 AND data ->> 'kind' = ?4))"
            " AND NOT EXISTS (SELECT 1 FROM outbox WHERE kind = ?4 AND record_id = record.id AND action = 'create')"
            " ORDER BY id LIMIT ?5",
            (behind, since, int(EventKind.ID_GIVEN_TWICE), kind, limit),
            lengthy=True,
        )

    async def of(self, kind: Kind, record_ids: Sequence[int]) -> tuple[DeliveredRecord, ...]:
        """Return those of these records that exist, by ascending id."""
        which = "id IN (SELECT value FROM json_each(?)) ORDER BY id"
        return await self._find(kind, which, (json.dumps(record_ids),))

    async def newest(
        self, kind: Kind, since: int, *, most: int, up_to: int | None = None
    ) -> tuple[DeliveredRecord, ...]:
        """Return the records since a time (wall micros) that have the highest of central's ids, the highest first.

        `up_to`: the highest of central's ids to look at, None for no limit.
        """
        which = f"central_id <= ? AND {_AT[kind]} >= ? ORDER BY central_id DESC LIMIT ?"
        return await self._find(kind, which, (_LARGEST_ID if up_to is None else up_to, since, most))

    async def _find(
        self, kind: Kind, which: str, values: Sequence[object], *, lengthy: bool = False
    ) -> tuple[DeliveredRecord, ...]:
        def query(connection: sqlite3.Connection) -> tuple[DeliveredRecord, ...]:
            rows = connection.execute(f"SELECT * FROM {_TABLES[kind]} AS record WHERE {which}", values)
            names = [column[0] for column in rows.description]
            return tuple(self._record(kind, dict(zip(names, row, strict=True))) for row in rows)

        return await self._database.read(query, lengthy=lengthy)

    async def cards(self) -> tuple[int, ...]:
        """Return central's ids of the cards that were made at this site, ascending."""
        return await self._database.read(
            lambda connection: tuple(
                number
                for (number,) in connection.execute(
                    "SELECT central_id FROM provisional WHERE kind = 'access_card' AND central_id IS NOT NULL"
                    " ORDER BY central_id"
                )
            )
        )

    async def id_given_twice_after(self, event_id: int) -> int:
        """Return the id of the newest event after `event_id` that tells of an id given twice by central; 0 for none."""
        (found,) = await self._database.read(
            lambda connection: connection.execute(
                "SELECT coalesce(max(id), 0) FROM event WHERE type = ? AND id > ?",
                (int(EventKind.ID_GIVEN_TWICE), event_id),
            ).fetchone()
        )
        return int(found)

    async def evidence_of(self, camera_event_id: int) -> tuple[tuple[int, str], ...]:
        """Return the ids and SHA-256 hashes of the delivered files of a camera event."""
        return await self._database.read(
            lambda connection: tuple(
                connection.execute(
                    "SELECT id, sha256 FROM evidence WHERE camera_event_id = ? AND delivered = 1 AND garbage = 0",
                    (camera_event_id,),
                )
            )
        )

    async def send_again(self, kind: Kind, records: Sequence[DeliveredRecord], *, now: int, doubtful: bool) -> int:
        """Queue records again, with their changes and files; return how many were queued.

        The records are as they are now, so their waiting changes are replaced. Records whose create waits already, or
        whose central id has changed, are left out. `doubtful`: central may have them after all, so the sender looks for
        each before it sends it.
        """

        def job(connection: sqlite3.Connection) -> int:
            return sum(_send_again(connection, kind, record, now, doubtful=doubtful) for record in records)

        return await self._database.write(job, then=self._changes.bump)

    async def send_changes_again(self, kind: Kind, records: Sequence[DeliveredRecord], *, now: int) -> int:
        """Queue the changes of these records again, except for records that wait already; return how many records."""

        def job(connection: sqlite3.Connection) -> int:
            left = [record for record in records if record.changes and not _waits(connection, kind, record.id)]
            for record in left:
                _insert_changes(connection, kind, record, now)
            return len(left)

        return await self._database.write(job, then=self._changes.bump)

    async def send_files_again(self, evidence_ids: Collection[int], *, now: int) -> int:
        """Queue delivered files again; return how many were queued. The sender looks for each before it sends it."""

        def job(connection: sqlite3.Connection) -> int:
            return sum(_send_file_again(connection, number, now, begun=True) for number in evidence_ids)

        return await self._database.write(job, then=self._changes.bump)

    async def make_cards_again(
        self, bodies: Mapping[int, JsonObject], *, now: int, given_to: int | None = None
    ) -> dict[int, int]:
        """Queue the creation of cards again, all in one commit; return their new provisional ids by central's ids.

        Cards for which that was done already are left out. Presence and parking entries move to the new id. Waiting
        changes of a card are replaced by the body. `given_to`: the record to which central gave the id since, or None.
        """
        keeper = RECORD_KINDS["access_card"]

        def job(connection: sqlite3.Connection) -> dict[int, int]:
            made = dict[int, int]()
            for central_id, owner in keeper.owners(connection, tuple(bodies)).items():
                body = bodies[central_id]
                waiting = outbox_rows(connection, CARD_CREATE.kind, central_id)
                take_out(connection, (row.id for row in waiting), "replaced")
                if given_to is None:
                    keeper.disown(connection, owner, central_id)
                else:
                    at = Stamp(now, trusted=False)
                    take_id_from(connection, CARD_CREATE.kind, owner, central_id, to=given_to, at=at)
                made[central_id] = keeper.add(connection, body, now=now)
                insert_outbox(
                    connection,
                    kind=CARD_CREATE.kind,
                    action=CARD_CREATE.action,
                    record_id=made[central_id],
                    body=body_text(body),
                    now=now,
                )
                record_rename(connection, card_holder(central_id), card_holder(made[central_id]))
                connection.execute(
                    "UPDATE parking_entry SET card_id = ? WHERE card_id IN (?, ?)",
                    (made[central_id], central_id, owner),
                )
            return made

        return await self._database.write(job, then=self._changes.bump)

    def _record(self, kind: Kind, row: dict[str, object]) -> DeliveredRecord:
        if kind == "camera_event":
            event = camera_event_of(row)
            return DeliveredRecord(event.id, event.central_id, camera_event_body(event, site_name=self.site_name))
        body, changes = entry_bodies(row, site_name=self.site_name)
        number, central_id = row["id"], row["central_id"]
        if not isinstance(number, int) or not isinstance(central_id, int | None):
            raise TypeError("ids are whole numbers")
        return DeliveredRecord(number, central_id, body, changes)


def _send_again(
    connection: sqlite3.Connection, kind: Kind, record: DeliveredRecord, now: int, *, doubtful: bool
) -> bool:
    table = _TABLES[kind]
    still = connection.execute(
        f"SELECT 1 FROM {table} WHERE id = ? AND central_id IS ?", (record.id, record.central_id)
    ).fetchone()
    waiting = outbox_rows(connection, kind, record.id)
    if still is None or any(row.action == "create" for row in waiting):
        return False
    take_out(connection, (row.id for row in waiting), "replaced")
    RECORD_KINDS[kind].disown(connection, record.id, record.central_id or 0)
    insert_outbox(
        connection,
        kind=kind,
        record_id=record.id,
        body=body_text(record.body),
        now=now,
        begun=doubtful,
    )
    _insert_changes(connection, kind, record, now)
    if kind == "camera_event":
        files = connection.execute(
            "SELECT id FROM evidence WHERE camera_event_id = ? AND delivered = 1 AND garbage = 0", (record.id,)
        ).fetchall()
        for (number,) in files:
            _send_file_again(connection, number, now, begun=doubtful)
    return True


def _send_file_again(connection: sqlite3.Connection, evidence_id: int, now: int, *, begun: bool) -> bool:
    if _waits(connection, FILES, evidence_id):
        return False
    connection.execute("UPDATE evidence SET delivered = 0, central_id = NULL WHERE id = ?", (evidence_id,))
    (size,) = connection.execute("SELECT size FROM evidence WHERE id = ?", (evidence_id,)).fetchone()
    insert_outbox(connection, kind=FILES, record_id=evidence_id, body="{}", now=now, begun=begun, file_bytes=size)
    return True


def _insert_changes(connection: sqlite3.Connection, kind: Kind, record: DeliveredRecord, now: int) -> None:
    for change in record.changes:
        insert_outbox(connection, kind=kind, record_id=record.id, body=body_text(change), now=now, action="update")


def _waits(connection: sqlite3.Connection, kind: str, record_id: int) -> bool:
    found = connection.execute("SELECT 1 FROM outbox WHERE kind = ? AND record_id = ?", (kind, record_id))
    return found.fetchone() is not None
