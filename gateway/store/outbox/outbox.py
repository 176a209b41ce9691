"""Outbox: records to send to central, each kept until central has it. Its books balance at every commit."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from types import MappingProxyType

from gateway.domain.writes import WRITES, Effect, JsonObject, takes_away
from gateway.store.engine.database import Database
from gateway.store.outbox.deliveries import OutboxDelivery, RecentWrites, deliver
from gateway.store.outbox.pending_writes import amend_create
from gateway.store.outbox.record_kinds import RECORD_KINDS
from gateway.store.outbox.rows import (
    OutboxRow,
    body_object,
    free_waiting,
    listed_rows,
    outbox_rows,
    rewrite,
    take_out,
    try_again,
    waiting_writes,
)

FILES = "evidence"
"""The kind of rows of files. They are sent separately, so that no other row waits for them."""
_OF_THE_SITE = frozenset({"camera_event", "entry"})
"""Kinds of records that stay here even if central deletes them; only a person or their age deletes them."""
_FIRST_OF_RECORD = (
    "NOT EXISTS (SELECT 1 FROM outbox AS earlier WHERE earlier.kind = outbox.kind"
    " AND earlier.record_id = outbox.record_id AND earlier.id < outbox.id"
    " AND (earlier.parked = 0 OR earlier.action = 'create'))"
)
"""SQL condition: no earlier row of the same record is to be sent first. A refused change does not hold up later rows; a
refused create does, because central has no record that could be changed.
"""


_CARD = "access_card"
_URGENT = (
    "parked = 0 AND kind = 'access_card' AND action <> 'create'"
    " AND (action <> 'update' OR instr(body, '\"status\"') > 0 OR instr(body, '\"enabled\"') > 0)"
)
_MOST_URGENT = 200
_NOTHING_NEWER: Mapping[str, int] = MappingProxyType({})
_OFTEN = 3
_BY_ID = "NOT INDEXED"  # find rows by id: SQLite would otherwise choose the index of due rows and walk through it


@dataclass(frozen=True, slots=True)
class Books:
    """Counts of all rows: accepted = delivered + replaced + dropped + waiting + parked.

    `replaced` rows lost nothing: newer content of the same record, or its deletion, took their place. `dropped` rows
    never reach central. `oldest_at`: since when the oldest row waits (wall micros), None if none waits.
    """

    accepted: int
    delivered: int
    dropped: int
    waiting: int
    parked: int
    replaced: int = 0
    oldest_at: int | None = None

    def balance(self) -> bool:
        """Return whether the counts add up, so that no row was lost or counted twice."""
        return self.accepted == self.delivered + self.replaced + self.dropped + self.waiting + self.parked


class Outbox:
    """The rows to be sent to central."""

    def __init__(self, *, database: Database, recent: RecentWrites) -> None:
        self._database = database
        self._recent = recent

    async def due(
        self,
        *,
        now: int,
        limit: int = 50,
        without: Collection[tuple[str, str]] = (),
        only_urgent: bool = False,
    ) -> tuple[OutboxRow, ...]:
        """Return the rows to send now, oldest first: of each record its oldest row, refused changes aside.

        Rows whose callers send them are left out.

        Changes that may take a card's right away come first and alone, preceded by the rows that they need. Rows with
        three or more failed attempts come last, so that a few bad records do not delay the rest. Rows of files are left
        out, and so are those of the operations `without` (kind, action). With `only_urgent` only the first kind is
        returned.
        """
        only, values = _but(without)
        asked = self._recent.asked  # it grows before the rows can be read

        def query(connection: sqlite3.Connection) -> tuple[OutboxRow, ...]:
            first = tuple(_urgent(connection, now, without, asked))[:limit]
            if first or only_urgent:
                return first
            for tried in (f"tries < {_OFTEN}", f"tries >= {_OFTEN}"):
                rows = listed_rows(
                    connection,
                    "SELECT * FROM outbox INDEXED BY outbox_waiting WHERE parked = 0 AND next_at <= ?"
                    f" AND {tried} AND kind <> '{FILES}'{only} AND {_FIRST_OF_RECORD} ORDER BY id LIMIT ?",
                    (now, *values, limit),
                )
                if rows := tuple(row for row in rows if row.id not in asked):
                    return rows
            return ()

        return await self._database.read(query)

    async def next_due(self, *, without: Collection[tuple[str, str]] = ()) -> int | None:
        """Return when the earliest row is due (wall micros), None if none waits; `without` as for `due`.

        Rows behind another row of the same record do not count, because they must wait for that one.
        """
        only, values = _but(without)
        asked = json.dumps(list(self._recent.asked))

        def query(connection: sqlite3.Connection) -> int | None:
            row = connection.execute(
                f"SELECT next_at FROM outbox INDEXED BY outbox_due WHERE parked = 0 AND kind <> '{FILES}'{only}"
                f" AND id NOT IN (SELECT value FROM json_each(?)) AND {_FIRST_OF_RECORD} ORDER BY next_at LIMIT 1",
                (*values, asked),
            ).fetchone()
            return None if row is None else int(row[0])

        return await self._database.read(query)

    async def begin(
        self, row: OutboxRow, *, newest: Mapping[str, int] = _NOTHING_NEWER, begun_at: int | None = None
    ) -> bool:
        """Mark that a row may reach central from now on; return False if it was taken back meanwhile."""
        return bool(await self.begin_together((row,), newest=newest, begun_at=begun_at))

    async def begin_together(
        self, rows: Sequence[OutboxRow], *, newest: Mapping[str, int] = _NOTHING_NEWER, begun_at: int | None = None
    ) -> tuple[OutboxRow, ...]:
        """Mark in one commit that rows may reach central from now on; return those that still wait, oldest first.

        The rows are returned as they are now. `newest`: the highest ids that central is known to have given, by kind.
        `begun_at`: the present time by central's clock (micros), None if unknown.
        """

        def job(connection: sqlite3.Connection) -> tuple[OutboxRow, ...]:
            for kind in dict.fromkeys(row.kind for row in rows):
                ids = RECORD_KINDS.get(kind)
                given = ids.given(connection, 1) if ids is not None else ()
                highest = max([*given, *([newest[kind]] if kind in newest else [])], default=None)
                connection.execute(
                    f"UPDATE outbox {_BY_ID} SET newest_before = CASE begun WHEN 1 THEN newest_before ELSE ? END,"
                    " begun = 1, begun_at = ? WHERE parked = 0 AND id IN (SELECT value FROM json_each(?))",
                    (highest, begun_at, json.dumps([row.id for row in rows if row.kind == kind])),
                )
            numbers = json.dumps([row.id for row in rows])
            return listed_rows(
                connection,
                f"SELECT * FROM outbox {_BY_ID} WHERE parked = 0 AND id IN (SELECT value FROM json_each(?))",
                (numbers,),
            )

        return await self._database.write(job)

    async def not_begun(self, row_ids: Collection[int]) -> None:
        """Remove the mark of `begin` from rows that were not sent after all."""
        marks = [(number,) for number in row_ids]
        await self._database.write(
            lambda connection: connection.executemany("UPDATE outbox SET begun = 0 WHERE id = ?", marks)
        )

    async def delivered(
        self,
        row: OutboxRow,
        *,
        central_id: int | None,
        record: JsonObject | None = None,
        now: int = 0,
        trusted: bool = False,
    ) -> int:
        """Record a delivery: delete the row, and store central's id and fields in the record, in one commit.

        Rows that wait for the same record get its new id.

        Args:
            row: the row as it was sent.
            central_id: the id that central gave to a new record, None if it did not say.
            record: the record in central's answer, None if it had none.
            now: wall micros.
            trusted: whether the clock is trusted.

        Returns the site's id of the record from now on.
        """
        (known,) = await self._database.write(
            partial(
                deliver,
                deliveries=(OutboxDelivery(row, central_id, record),),
                recent=self._recent,
                now=now,
                trusted=trusted,
            )
        )
        return known

    async def delivered_together(
        self, deliveries: Sequence[OutboxDelivery], *, now: int, trusted: bool = False
    ) -> None:
        """Record the deliveries of many rows of different records in one commit."""
        await self._database.write(
            partial(deliver, deliveries=deliveries, recent=self._recent, now=now, trusted=trusted)
        )

    async def drop(self, row: OutboxRow) -> None:
        """Drop all rows of a row's record, because central no longer has the record.

        The record itself is deleted too, except for kinds that the site keeps (camera events and entries).
        """

        def job(connection: sqlite3.Connection) -> None:
            take_out(connection, (item.id for item in outbox_rows(connection, row.kind, row.record_id)), "dropped")
            keeper = RECORD_KINDS.get(row.kind)
            if keeper is not None and row.kind not in _OF_THE_SITE:
                keeper.remove(connection, row.record_id)

        await self._database.write(job)

    async def failed(
        self, row: OutboxRow, *, error: str, next_at: int, unanswered: bool = False, at_central: bool = True
    ) -> None:
        """Record a failed attempt; the next one is due from `next_at` (wall micros) on.

        `unanswered`: central did not answer. `at_central`: False if the row certainly did not take effect at central.
        """
        begun = "begun" if at_central else "0"
        await self._database.write(
            lambda connection: connection.execute(
                f"UPDATE outbox SET tries = tries + 1, next_at = ?, error = ?, unanswered = ?, begun = {begun}"
                " WHERE id = ?",
                (next_at, error, unanswered, row.id),
            )
        )

    async def park(self, row: OutboxRow, *, error: str) -> bool:
        """Park a refused row for a person; return whether it waits for a person now.

        Later rows of the record go on, except behind a create. A refused create with changes behind it is tried again
        with their content. A refused create with a deletion behind it is removed together with the deletion.
        """

        def job(connection: sqlite3.Connection) -> bool:
            parked = connection.execute(
                "UPDATE outbox SET tries = tries + 1, parked = 1, begun = 0, error = ? WHERE id = ?", (error, row.id)
            ).rowcount
            free_waiting(connection, (row.id,))
            return parked > 0 and not (row.action == "create" and _overtaken(connection, row))

        return await self._database.write(job)

    async def leave_out(self, row: OutboxRow, name: str) -> None:
        """Remove a field from a row that central has just refused, so that it can be sent again without it."""
        body = {field: value for field, value in (body_object(row.body) or {}).items() if field != name}
        await self._database.write(lambda connection: rewrite(connection, row.id, body))

    async def retry_now(self, *, files: bool = True) -> None:
        """Make all waiting rows due now, because central is back. `files`: rows of files too."""
        only = "" if files else f" AND kind <> '{FILES}'"
        await self._database.write(
            lambda connection: connection.execute(
                f"UPDATE outbox SET next_at = 0 WHERE parked = 0 AND next_at > 0{only}"
            )
        )

    async def bring_near(self, *, latest: int, files: bool) -> bool:
        """Make rows due now that are only due after `latest` (wall micros): a clock that was ahead set their time.

        `files`: True for rows of files, False for all others. Return whether there were any.
        """
        far = f"parked = 0 AND next_at > ? AND kind {'=' if files else '<>'} '{FILES}'"

        def query(connection: sqlite3.Connection) -> bool:
            return connection.execute(f"SELECT 1 FROM outbox WHERE {far} LIMIT 1", (latest,)).fetchone() is not None

        if not await self._database.read(query):
            return False
        await self._database.write(
            lambda connection: connection.execute(f"UPDATE outbox SET next_at = 0 WHERE {far}", (latest,))
        )
        return True

    async def retry_unanswered(self, *, at: int) -> None:
        """Make files that central left unanswered due at `at` (wall micros) at the latest."""
        await self._database.write(
            lambda connection: connection.execute(
                "UPDATE outbox SET next_at = ?1, unanswered = 0"
                f" WHERE parked = 0 AND next_at > ?1 AND kind = '{FILES}' AND unanswered = 1",
                (at,),
            )
        )

    async def books(self) -> Books:
        """Return the present counts, all from one snapshot."""

        def query(connection: sqlite3.Connection) -> Books:
            counts = dict(connection.execute("SELECT name, count FROM book"))
            waiting, parked = connection.execute(
                "SELECT count(*) FILTER (WHERE parked = 0), count(*) FILTER (WHERE parked = 1) FROM outbox"
            ).fetchone()
            oldest = connection.execute(
                f"SELECT created_at FROM outbox {_BY_ID} WHERE parked = 0 ORDER BY id LIMIT 1"
            ).fetchone()
            return Books(
                accepted=counts["accepted"],
                delivered=counts["delivered"],
                dropped=counts["dropped"],
                replaced=counts["replaced"],
                waiting=waiting,
                parked=parked,
                oldest_at=oldest[0] if oldest else None,
            )

        return await self._database.read(query)


def _but(actions: Collection[tuple[str, str]]) -> tuple[str, tuple[str, ...]]:
    """Return an SQL condition that excludes these operations (kind, action), and its values."""
    if not actions:
        return "", ()
    return f" AND (kind, action) NOT IN (VALUES {', '.join(['(?, ?)'] * len(actions))})", tuple(chain(*actions))


def _urgent(
    connection: sqlite3.Connection, now: int, without: Collection[tuple[str, str]], asked: Collection[int]
) -> Iterator[OutboxRow]:
    """Yield, for each card with a waiting change that takes a right away, the row of that card to send next.

    An ordinary update that is not due is passed over for a later urgent row that is not itself an update.
    """
    seen: set[int] = set()
    only, values = _but(without)
    for (record_id,) in connection.execute(
        f"SELECT record_id FROM outbox INDEXED BY outbox_urgent WHERE {_URGENT}{only} ORDER BY id LIMIT {_MOST_URGENT}",
        values,
    ).fetchall():
        if record_id in seen:
            continue
        seen.add(record_id)
        passed = False
        for row in outbox_rows(connection, _CARD, record_id):
            urgent = _is_urgent(row)
            if (row.parked and row.action != "create") or (passed and not (urgent and row.action != "update")):
                continue
            if row.id in asked:
                break
            if not row.parked and row.next_at <= now and (row.kind, row.action) not in without:
                yield row
            elif not row.parked and row.action == "update" and not urgent:
                passed = True
                continue
            break


def _is_urgent(row: OutboxRow) -> bool:
    operation, body = WRITES.get((row.kind, row.action)), body_object(row.body)
    return operation is not None and body is not None and takes_away(operation, body)


def _overtaken(connection: sqlite3.Connection, row: OutboxRow) -> bool:
    """Return whether a refused create needs no person, because a later deletion or change settles it; settle it."""
    rows = outbox_rows(connection, row.kind, row.record_id)
    behind = waiting_writes(item for item in rows if item.id > row.id)
    if any(write.operation.effect is Effect.DELETE for write in behind):
        take_out(connection, (item.id for item in rows), "replaced")
        return True
    return amend_create(connection, row, rows) and try_again(connection, row.id)
