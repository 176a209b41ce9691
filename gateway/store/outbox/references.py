"""References in writes: replacement of provisional ids of other records by central's ids."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from gateway.domain.references import Reference, provisional_references, translated
from gateway.domain.writes import JsonObject
from gateway.store.engine.database import Database
from gateway.store.outbox.record_kinds import RECORD_KINDS


@dataclass(frozen=True, slots=True)
class Resolved:
    """A body with its references replaced.

    Attributes:
        body: the body with central's ids, without optional references that central will never have; the original body
            if `reason` is set.
        waits_for: the id of a record that must be sent first, None if there is none.
        reason: why the body cannot be sent now, "" if it can.
    """

    body: JsonObject
    waits_for: int | None = None
    reason: str = ""


class References:
    """Replaces references in writes."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def resolve(self, body: JsonObject) -> Resolved:
        """Replace the provisional ids in a body by central's ids, or say why that is not possible now."""
        named = provisional_references(body)
        if not named:
            return Resolved(body)
        return await self._database.read(lambda connection: _resolve(connection, body, named))

    async def waits(self, row_id: int, resolved: Resolved, *, next_at: int) -> None:
        """Put off a row until the record that it waits for is sent, at the latest until `next_at` (wall micros)."""
        await self._database.write(
            lambda connection: connection.execute(
                "UPDATE outbox SET next_at = ?, error = ?, waits_for = ? WHERE id = ?",
                (next_at, resolved.reason, resolved.waits_for, row_id),
            )
        )


def _resolve(connection: sqlite3.Connection, body: JsonObject, named: tuple[Reference, ...]) -> Resolved:
    known: dict[Reference, int] = {}
    for reference in named:
        central_id = RECORD_KINDS[reference.kind].central_id(connection, reference.record_id)
        if central_id is not None:
            known[reference] = central_id
            continue
        create = connection.execute(
            "SELECT parked, begun, error FROM outbox WHERE kind = ? AND record_id = ? AND action = 'create'",
            (reference.kind, reference.record_id),
        ).fetchone()
        if create is not None:
            return _waiting(body, reference, *create)
        if not reference.optional:
            return Resolved(body, reason=f"{reference.field}: central will never have {reference.sentence()}")
    return Resolved(translated(body, known))


def _waiting(body: JsonObject, reference: Reference, parked: int, begun: int, error: str) -> Resolved:
    if parked and not begun:
        why = f"it waits for {reference.sentence()}, which central refused: {error}"
    elif parked:
        why = f"it waits for {reference.sentence()}: {error}"
    else:
        why = f"it waits for {reference.sentence()}, which central does not have yet"
    return Resolved(body, waits_for=reference.record_id, reason=why)
