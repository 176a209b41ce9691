"""Password verifiers of central's accounts that signed in here, so that they can sign in while central is offline."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field

from gateway.store.engine.database import Database

MOST_REMEMBERED = 1000
_COLUMNS = "username, password_hash, role, permissions, verified_at, mfa"


@dataclass(frozen=True, slots=True)
class RememberedAccount:
    """An account of central as it was at its last sign-in, at `verified_at` (wall micros UTC).

    `mfa`: central asks this account for a second factor. Its password alone signs it in nowhere, and it has no
    permissions here.
    """

    username: str
    password_hash: str = field(repr=False)
    role: str
    permissions: frozenset[str]
    verified_at: int
    mfa: bool = False


class RememberedAccounts:
    """The remembered accounts by name, at most MOST_REMEMBERED; those verified longest ago go first."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def get(self, username: str) -> RememberedAccount | None:
        """Return the account of that name, or None."""

        def query(connection: sqlite3.Connection) -> RememberedAccount | None:
            row = connection.execute(f"SELECT {_COLUMNS} FROM remembered WHERE username = ?", (username,)).fetchone()
            if row is None:
                return None
            return RememberedAccount(row[0], row[1], row[2], frozenset(json.loads(row[3])), row[4], bool(row[5]))

        return await self._database.read(query)

    async def rights(self, username: str, *, now: int, verified_after: int) -> frozenset[str]:
        """Return the permissions of an account of central: by its live sessions, and by its last sign-in if recent."""

        def query(connection: sqlite3.Connection) -> frozenset[str]:
            found = connection.execute(
                "SELECT permissions FROM remembered WHERE username = ? AND verified_at > ?"
                " UNION ALL SELECT permissions FROM session"
                " WHERE username = ? AND central AND NOT mfa_pending AND expires_at > ?",
                (username, verified_after, username, now),
            )
            return frozenset(name for (permissions,) in found for name in json.loads(permissions))

        return await self._database.read(query)

    async def put(self, account: RememberedAccount) -> None:
        """Remember an account that has just signed in at central."""
        row = (
            account.username,
            account.password_hash,
            account.role,
            json.dumps(sorted(account.permissions)),
            account.verified_at,
            account.mfa,
        )

        def job(connection: sqlite3.Connection) -> None:
            connection.execute(f"INSERT OR REPLACE INTO remembered ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", row)
            connection.execute(
                "DELETE FROM remembered WHERE username IN"
                " (SELECT username FROM remembered ORDER BY verified_at DESC LIMIT -1 OFFSET ?)",
                (MOST_REMEMBERED,),
            )

        await self._database.write(job)

    async def forget(self, username: str, *, sessions: bool) -> None:
        """Forget an account that central refuses. `sessions`: end its sessions and links here in the same commit."""

        def job(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM remembered WHERE username = ?", (username,))
            if sessions:
                connection.execute("DELETE FROM session WHERE username = ? AND central", (username,))
                connection.execute("DELETE FROM evidence_link WHERE username = ? AND maker = 'central'", (username,))

        await self._database.write(job)

    async def forget_older(self, than: int) -> None:
        """Forget the accounts that were last verified before `than` (wall micros UTC)."""
        await self._database.write(
            lambda connection: connection.execute("DELETE FROM remembered WHERE verified_at < ?", (than,))
        )
