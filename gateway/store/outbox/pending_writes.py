"""Writes that wait for central: the record changes and the write is queued in one commit.

Each waiting change has a base: the values of its fields before the change. They show what central changed too.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from gateway.domain.conflicts import READS, Settled, laid_over
from gateway.domain.record_match import marks_of
from gateway.domain.writes import (
    WRITES,
    Effect,
    JsonObject,
    WaitingWrite,
    WriteOperation,
    changed_by,
    is_twin,
    left_to_change,
    takes_away,
    with_newer,
)
from gateway.store.engine.changes import Changes
from gateway.store.engine.database import Database, is_id
from gateway.store.outbox.backlog_quota import BacklogQuota, count_rows, refuse_more_of_record
from gateway.store.outbox.deliveries import RecentWrites
from gateway.store.outbox.record_kinds import RECORD_KINDS
from gateway.store.outbox.rows import (
    OutboxRow,
    body_object,
    body_text,
    insert_outbox,
    keep_centrals,
    outbox_rows,
    rewrite,
    row_of,
    supersede,
    take_out,
    try_again,
    waiting_writes,
)

_BODY = TypeAdapter(JsonObject)


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """The outcome of queueing a write.

    Attributes:
        record_id: the record's id at the site.
        record: the record as it is now, or as it was before its deletion; None for a kind stored elsewhere.
        waits: whether the write waits for central.
        taken_back: whether a deletion removed all waiting rows of a record that central never had.
    """

    record_id: int
    record: JsonObject | None
    waits: bool
    taken_back: bool = False


@dataclass(frozen=True, slots=True)
class Arriving:
    """Waiting writes that affect the records of a pull.

    Attributes:
        waiting: the waiting writes by record id.
        created: creates that may have reached central, so that the pull may bring their record under a new id.
    """

    waiting: Mapping[int, tuple[WaitingWrite, ...]]
    created: tuple[WaitingWrite, ...]

    def shown(self, record_id: int, record: JsonObject) -> JsonObject | None:
        """Return central's record with the waiting writes laid over it; None if the site has deleted the record."""
        return laid_over(record, self.waiting.get(record_id, ()))

    def is_own(self, record: JsonObject) -> bool:
        """Return whether an unknown record of central is the result of a create in `created`.

        Such a record is added when the outcome of its create is known.
        """
        return any(is_twin(write.body, record) for write in self.created)


def base_of(
    connection: sqlite3.Connection, kind: str, record_id: int, fields: Collection[str], was: JsonObject | None
) -> JsonObject:
    """Return the base of a change of these fields: central's values before it, {} if they are unknown.

    These are the record's values here (`was`). For a field that a refused change has, it is the value before that
    change, which central never got. Within a transaction.
    """
    if was is None or kind not in READS:
        return {}
    base = {name: was.get(name) for name in fields if name != "id"}
    rows = connection.execute(
        "SELECT body, base FROM outbox WHERE kind = ? AND record_id = ? AND parked = 1 AND base <> '' ORDER BY id DESC",
        (kind, record_id),
    )
    for body, before in rows:
        refused, known = _BODY.validate_json(body), _BODY.validate_json(before)
        base |= {name: known[name] for name in refused.keys() & known.keys() & base.keys()}
    return base


def note_base(connection: sqlite3.Connection, row_id: int, base: JsonObject) -> None:
    """Store the base of a waiting change, unless it is empty. Within a transaction."""
    if base:
        count_rows(connection, (row_id,), sign=-1)
        connection.execute("UPDATE outbox SET base = ? WHERE id = ?", (body_text(base), row_id))
        count_rows(connection, (row_id,), sign=1)


def settle_row(
    connection: sqlite3.Connection, row: OutboxRow, settled: Settled, theirs: JsonObject, *, now: int
) -> OutboxRow | None:
    """Store the outcome of a comparison of a waiting change with central's record. Within a transaction.

    Fields for which central's value counts are dropped from the change. The rest is laid over central's record
    (`theirs`), which becomes the site's. Return the row as it is now, None if nothing is left of it.
    """
    if settled.body.keys() <= {"id"}:
        take_out(connection, (row.id,), "dropped" if settled.conflicts else "replaced")
    elif body_text(settled.body) != row.body:
        rewrite(connection, row.id, settled.body)
    note_base(connection, row.id, {name: theirs[name] for name in settled.body if name in theirs})
    rights = {conflict.field: conflict.was for conflict in settled.conflicts if conflict.of_rights}
    _judge_later(connection, row, rights)
    keep_centrals(connection, row.kind, row.record_id, theirs, now=now)
    return next((item for item in outbox_rows(connection, row.kind, row.record_id) if item.id == row.id), None)


def _judge_later(connection: sqlite3.Connection, row: OutboxRow, rights: JsonObject) -> None:
    """Correct the bases of later changes of the record in these fields, because they were the site's values."""
    later = connection.execute(
        "SELECT id, base FROM outbox WHERE kind = ? AND record_id = ? AND id > ? AND base <> ''",
        (row.kind, row.record_id, row.id),
    ).fetchall()
    for number, text in later:
        base = _BODY.validate_json(text)
        note_base(connection, number, base | {name: was for name, was in rights.items() if name in base})


class PendingWrites:
    """Queue of writes on their way to central.

    Attributes:
        set_back: whether central was set back to an older state, so that it may have lost what it has acknowledged.
    """

    def __init__(self, *, database: Database, changes: Changes, recent: RecentWrites, quota: BacklogQuota) -> None:
        self._database = database
        self._changes = changes
        self._recent = recent
        self._quota = quota
        self.set_back = False

    async def site_id(self, kind: str, record_id: int) -> int:
        """Return the site's present id of a record, given that id, an earlier one or central's."""
        if not is_id(record_id):
            return record_id
        return await self._database.read(lambda connection: RECORD_KINDS[kind].site_id(connection, record_id))

    async def central_id(self, kind: str, record_id: int) -> int | None:
        """Return central's id of a record, None while it has none."""
        return await self._database.read(lambda connection: RECORD_KINDS[kind].central_id(connection, record_id))

    async def is_made_here(self, kind: str, central_id: int) -> bool:
        """Return whether central gave this id to a record that was made at this site."""
        return await self._database.read(lambda connection: RECORD_KINDS[kind].is_given(connection, central_id))

    async def record(self, kind: str, record_id: int) -> JsonObject | None:
        """Return a record as the site has it; None for an unknown record and for a kind stored elsewhere."""
        return await self._database.read(lambda connection: RECORD_KINDS[kind].get(connection, record_id))

    async def waiting(self, kind: str, record_id: int | None = None) -> tuple[WaitingWrite, ...]:
        """Return the waiting writes of a kind, or of one record, oldest first, refused ones included."""
        return await self._database.read(lambda connection: waiting_writes(outbox_rows(connection, kind, record_id)))

    async def among_created(self, kind: str, record_ids: Collection[int]) -> frozenset[int]:
        """Return those of the records whose create waits, also if central refused it."""
        if not record_ids:
            return frozenset()
        numbers = json.dumps(list(record_ids))

        def query(connection: sqlite3.Connection) -> frozenset[int]:
            (found,) = connection.execute(
                "SELECT json_group_array(value) FROM json_each(?) WHERE EXISTS"
                " (SELECT 1 FROM outbox WHERE kind = ? AND record_id = value AND action = 'create')",
                (numbers, kind),
            ).fetchone()
            return frozenset(json.loads(found))

        return await self._database.read(query)

    async def waiting_records(self, kind: str, *, after: int, limit: int) -> tuple[int, ...]:
        """Return the next ids above `after` of records with waiting rows, ascending."""

        def query(connection: sqlite3.Connection) -> tuple[int, ...]:
            rows = connection.execute(
                "SELECT DISTINCT record_id FROM outbox WHERE kind = ? AND record_id > ? ORDER BY record_id LIMIT ?",
                (kind, after, limit),
            )
            return tuple(number for (number,) in rows)

        return await self._database.read(query)

    async def site_only(self, kind: str, record_ids: Sequence[int]) -> frozenset[int]:
        """Return those records that central will never get: they have no id of central and nothing of them waits."""
        places = ", ".join("?" * len(record_ids))

        def query(connection: sqlite3.Connection) -> frozenset[int]:
            rows = connection.execute(
                f"SELECT record_id FROM outbox WHERE kind = ? AND record_id IN ({places})", (kind, *record_ids)
            )
            waiting = {number for (number,) in rows}
            ids = RECORD_KINDS[kind]
            return frozenset(
                number for number in record_ids if number not in waiting and ids.central_id(connection, number) is None
            )

        return await self._database.read(query)

    async def in_doubt(self, kind: str, central_ids: Collection[int]) -> frozenset[int]:
        """Return those of these ids of central under which it may have lost a record that was made at this site."""
        if not self.set_back:
            return frozenset()
        keeper = RECORD_KINDS[kind]
        return await self._database.read(lambda connection: frozenset(keeper.owners(connection, tuple(central_ids))))

    async def arriving(self, kind: str, record_ids: Sequence[int]) -> Arriving:
        """Return the waiting writes that affect a page of central's records."""
        places = ", ".join("?" * len(record_ids))

        def query(connection: sqlite3.Connection) -> Arriving:
            rows = connection.execute(
                f"SELECT DISTINCT record_id FROM outbox WHERE kind = ? AND record_id IN ({places})", (kind, *record_ids)
            ).fetchall()
            asked = self._recent.asked
            waiting = {
                number: waiting_writes(row for row in outbox_rows(connection, kind, number) if row.id not in asked)
                for (number,) in rows
            }
            begun = connection.execute(
                "SELECT DISTINCT record_id FROM outbox INDEXED BY outbox_begun"
                " WHERE kind = ? AND action = 'create' AND begun = 1",
                (kind,),
            ).fetchall()
            created = [write for (number,) in begun for write in waiting_writes(outbox_rows(connection, kind, number))]
            waiting = {number: writes for number, writes in waiting.items() if writes}
            return Arriving(waiting, tuple(write for write in created if write.operation.effect is Effect.CREATE))

        return await self._database.read(query)

    async def ask(self, operation: WriteOperation, record_id: int | None, body: JsonObject, *, now: int) -> OutboxRow:
        """Queue a write whose caller sends it at once and waits for the answer; return its row.

        The record changes with central's answer, or when the write is held after all. Nobody else sends the row until
        `let_go`; after a restart it is sent like any other. A new record gets an id. The arguments are those of `hold`.
        """
        asked: list[int] = []
        left = False

        def job(connection: sqlite3.Connection) -> OutboxRow:
            keeper = RECORD_KINDS[operation.kind]
            known = keeper.add(connection, body, now=now) if record_id is None else record_id
            number = _insert(connection, operation, known, body, now=now)
            asked.append(number)
            self._recent.asked.add(number)  # before the commit, after which the row is due
            if left:
                self._recent.asked.discard(number)
            return row_of(connection, number)

        try:
            return await self._database.write(job, then=self._changes.bump)
        except BaseException:  # also where the caller left: the row may be queued all the same, or later
            left = True
            self._recent.asked.difference_update(asked)
            raise

    async def is_begun(self, asked: OutboxRow) -> bool:
        """Return whether a row may have reached central."""
        return (await self._database.read(lambda connection: row_of(connection, asked.id))).begun

    def let_go(self, asked: OutboxRow) -> None:
        """Let a row of `ask` be sent like any other, if it is still there."""
        self._recent.asked.discard(asked.id)
        self._changes.bump()

    async def withdraw(self, asked: OutboxRow) -> None:
        """Take out a row of `ask` that is not to be sent, with the record that it was to create."""

        def job(connection: sqlite3.Connection) -> None:
            take_out(connection, (asked.id,), "replaced")
            if asked.action == "create":
                RECORD_KINDS[asked.kind].remove(connection, asked.record_id)

        await self._database.write(job, then=self._changes.bump)

    async def hold(
        self,
        operation: WriteOperation,
        record_id: int | None,
        body: JsonObject,
        *,
        now: int,
        sends: bool,
        asked: OutboxRow | None = None,
        before: JsonObject | None = None,
    ) -> PendingWrite:
        """Change the record and queue the write, in one commit.

        If a record is deleted whose create cannot have reached central, all its waiting rows are removed instead. A
        write that may have reached central is queued without regard to quotas.

        Args:
            operation: the operation.
            record_id: the record, None for a new one.
            body: the write as central is to get it; its `id` is set when it is sent.
            now: wall micros.
            sends: whether central is to get the write.
            asked: the row of `ask` that is queued already, None for a new write.
            before: the present record, for a kind stored elsewhere.

        Raises:
            StoreError: the disk refuses; nothing has changed.
            QuotaExceeded: too much waits; nothing has changed.
        """

        def job(connection: sqlite3.Connection) -> PendingWrite:
            made = asked.record_id if asked is not None and operation.effect is Effect.CREATE else None
            known, was, shown = _change_record(
                connection, operation, record_id, body, made=made, before=before, now=now
            )
            deletes, changes = operation.effect is Effect.DELETE, operation.effect is Effect.CHANGE
            waits = sends and not (deletes and take_back(connection, operation.kind, known))
            if waits:
                if asked is None or not row_of(connection, asked.id).begun:
                    self._admit(connection, operation, known, body)
                base = base_of(connection, operation.kind, known, body, was) if changes else {}
                if deletes and was is not None:
                    base = marks_of(operation.kind, was)  # to check at the delivery that the id still means this record
                if changes:
                    supersede(connection, operation.kind, known, body)
                if asked is None:
                    number = _insert(connection, operation, known, body, now=now)
                else:
                    number = asked.id
                    connection.execute("UPDATE outbox SET tries = 0, next_at = 0, error = '' WHERE id = ?", (number,))
                note_base(connection, number, base)
                if changes:
                    _amend_refused_create(connection, operation.kind, known)
            return PendingWrite(known, shown, waits, taken_back=sends and not waits)

        return await self._database.write(job, then=self._changes.bump)

    def _admit(
        self, connection: sqlite3.Connection, operation: WriteOperation, record_id: int, body: JsonObject
    ) -> None:
        """Raise QuotaExceeded if too much waits. A write that takes a right away has a reserve."""
        urgent = takes_away(operation, body)
        self._quota.refuse_when_full(connection, urgent=urgent)
        if not urgent:
            refuse_more_of_record(connection, operation.kind, record_id)

    async def settled(self, row: OutboxRow, settled: Settled, theirs: JsonObject, *, now: int) -> OutboxRow | None:
        """Store the outcome of a comparison with central's record; see `settle_row`."""
        return await self._database.write(
            lambda connection: settle_row(connection, row, settled, theirs, now=now), then=self._changes.bump
        )

    def pull_begins(self, kind: str) -> set[int]:
        """Begin a pull of a kind. The returned set grows with the ids of records written at central from now on.

        The pull may bring older versions of those.
        """
        return self._recent.begin(kind)

    def came_apart(self, kind: str, record_ids: Collection[int]) -> None:
        """Note records that are fetched one by one: a pull under way may bring older versions of those too."""
        self._recent.note(kind, *record_ids)


def _insert(
    connection: sqlite3.Connection, operation: WriteOperation, record_id: int, body: JsonObject, *, now: int
) -> int:
    return insert_outbox(
        connection,
        kind=operation.kind,
        action=operation.action,
        record_id=record_id,
        body=body_text(body),
        now=now,
    )


def _change_record(
    connection: sqlite3.Connection,
    operation: WriteOperation,
    record_id: int | None,
    body: JsonObject,
    *,
    made: int | None,
    before: JsonObject | None,
    now: int,
) -> tuple[int, JsonObject | None, JsonObject | None]:
    """Carry out a write in the site's records; return the record's id, and the record before and after the write.

    `made`: the id of a new record that was added already, else None.
    """
    keeper = RECORD_KINDS[operation.kind]
    known = None if record_id is None else keeper.site_id(connection, record_id)
    if operation.effect is Effect.CREATE or known is None:
        known = keeper.add(connection, body, now=now) if made is None else made
        return known, before, {**body, "id": known}
    shown = keeper.get(connection, known)
    was = before if shown is None else shown
    if operation.effect is Effect.DELETE:
        keeper.remove(connection, known)
    elif shown is not None:
        shown = changed_by(shown, body)
        keeper.put(connection, known, shown, now=now)
    return known, was, shown


def _amend_refused_create(connection: sqlite3.Connection, kind: str, record_id: int) -> None:
    """Merge later changes into a record's refused create, if there is one, and make it due again."""
    refused = connection.execute(
        "SELECT 1 FROM outbox WHERE kind = ? AND record_id = ? AND parked = 1 AND action = 'create' AND begun = 0",
        (kind, record_id),
    ).fetchone()
    if refused is None:
        return
    rows = outbox_rows(connection, kind, record_id)
    create = next((row for row in rows if row.action == "create" and row.parked), None)
    if create is not None and not create.begun:
        amend_create(connection, create, rows)
        try_again(connection, create.id)


def amend_create(connection: sqlite3.Connection, create: OutboxRow, rows: Sequence[OutboxRow]) -> bool:
    """Merge the changes behind a refused create into it; return whether that changed it.

    Changes that the create now contains are removed. The others get the create's values as their base.
    """
    created = body_object(create.body)
    behind = [
        (row.id, body)
        for row in rows
        if row.id > create.id and (row.kind, row.action) in WRITES and (body := body_object(row.body)) is not None
    ]
    changes = [body for _, body in behind]
    if created is None or (amended := with_newer(created, changes)) == created:
        return False
    rewrite(connection, create.id, amended)
    for (number, body), left in zip(behind, left_to_change(create.kind, changes), strict=True):
        if left is None:
            take_out(connection, (number,), "replaced")
            continue
        if left != body:
            rewrite(connection, number, left)
        if create.kind in READS:
            note_base(connection, number, {name: amended[name] for name in left if name in amended})
    return True


def take_back(connection: sqlite3.Connection, kind: str, record_id: int) -> bool:
    """Remove all waiting rows of a record if its create cannot have reached central; return whether that is so."""
    rows = outbox_rows(connection, kind, record_id)
    first = next((row for row in rows if row.action == "create"), None)
    if first is None or first.begun:
        return False
    take_out(connection, (row.id for row in rows), "replaced")
    return True
