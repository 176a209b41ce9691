"""Grants of access on disk. Those not revoked are also in memory, so that a decision never waits."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.domain.events import Event
from gateway.domain.grants import Grant, LaneGrants, by_lanes
from gateway.store.engine.access_log import AccessLog
from gateway.store.engine.changes import Changes
from gateway.store.engine.database import Database
from gateway.store.events.events import insert_event

_FIELDS = ("access_id", "user_id", "device_id", "lane_id", "given_at", "valid_until", "given_by")
_COLUMNS = f"number, {', '.join(_FIELDS)}"
_WEEK = 7 * 86_400_000_000
_YEAR = 366 * 86_400_000_000
_NONE = LaneGrants()


@dataclass(frozen=True, slots=True)
class NewGrant:
    """A grant that is not stored yet and has no number; the fields are those of `Grant`."""

    access_id: str = field(repr=False)
    user_id: str
    device_id: int
    lane_id: str
    given_at: int
    valid_until: int | None
    given_by: str


class Grants:
    """Grants that were not revoked. `recall` loads them at the start; giving and revoking take effect at once."""

    def __init__(self, *, database: Database, changes: Changes, log: AccessLog) -> None:
        self._database = database
        self._log = log
        self._changes = changes
        self._current: dict[str, Grant] = {}
        self._lanes: Mapping[str, LaneGrants] = {}

    def of_lane(self, lane_id: str) -> LaneGrants:
        """Return the grants of one lane from memory, without waiting."""
        return self._lanes.get(lane_id, _NONE)

    def current(self, *, now: int) -> tuple[Grant, ...]:
        """Return the grants that have not ended by `now` (wall micros UTC), newest first."""
        current = (one for one in self._current.values() if one.valid_until is None or now < one.valid_until)
        return tuple(sorted(current, key=lambda grant: grant.number, reverse=True))

    async def recall(self) -> None:
        """Load the grants from disk after a restart. Raises StoreError."""

        def query(connection: sqlite3.Connection) -> tuple[Grant, ...]:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM access_grant WHERE revoked_at IS NULL")
            return tuple(Grant(*row) for row in rows)

        known = await self._database.read(query)
        self._current = {grant.access_id: grant for grant in known} | self._current
        self._lanes = by_lanes(self._current.values())

    async def give(self, new: NewGrant, *, event: Event, most: int, forgets: bool) -> Grant | None:
        """Store a grant and the event that tells of it; None if `most` grants are valid already.

        `forgets`: the clock can be trusted, so that grants that ended over a year ago are deleted. If it raises
        StoreError, nothing was given.
        """
        given: list[Grant] = []

        def job(connection: sqlite3.Connection) -> Grant | None:
            if forgets:
                connection.execute("DELETE FROM access_grant WHERE valid_until < ?", (new.given_at - _YEAR,))
            (count,) = connection.execute(
                "SELECT count(*) FROM access_grant WHERE revoked_at IS NULL AND ifnull(valid_until > ?, 1)",
                (new.given_at,),
            ).fetchone()
            if count >= most:
                return None
            values = tuple(getattr(new, name) for name in _FIELDS)
            number = connection.execute(
                f"INSERT INTO access_grant ({', '.join(_FIELDS)}) VALUES (?, ?, ?, ?, ?, ?, ?)", values
            ).lastrowid
            insert_event(connection, event)
            given[:] = [Grant(int(number or 0), *values)]
            return given[0]

        def then() -> None:
            oldest = new.given_at - _WEEK if forgets else 0
            recent = {key: one for key, one in self._current.items() if (one.valid_until or oldest) >= oldest}
            self._put(recent | {grant.access_id: grant for grant in given})
            self._changes.bump()

        return await self._database.write(job, then=then)

    async def get(self, access_id: str) -> Grant | None:
        """Return a grant by its id, also one that was revoked or has ended within the last year; None if unknown."""

        def query(connection: sqlite3.Connection) -> Grant | None:
            row = connection.execute(
                f"SELECT {_COLUMNS} FROM access_grant WHERE access_id = ?", (access_id,)
            ).fetchone()
            return Grant(*row) if row else None

        return self._current.get(access_id) or await self._database.read(query)

    async def revoke(self, access_id: str, *, by: str, now: int, event: Event) -> None:
        """Revoke a grant at once, and store that with its event.

        If it raises StoreError, the grant stays revoked only until the next start.
        """
        self._put({key: grant for key, grant in self._current.items() if key != access_id})

        def job(connection: sqlite3.Connection) -> None:
            changed = connection.execute(
                "UPDATE access_grant SET revoked_at = ?, revoked_by = ? WHERE access_id = ? AND revoked_at IS NULL",
                (now, by, access_id),
            ).rowcount
            if changed:
                insert_event(connection, event)
                self._log.grant_revoked(access_id)

        await self._database.write(job, then=self._changes.bump)

    def _put(self, current: dict[str, Grant]) -> None:
        self._current = current
        self._lanes = by_lanes(current.values())
