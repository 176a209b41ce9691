"""Sessions on disk, so that a restart signs nobody out. Only the token's SHA-256 is kept."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from dataclasses import dataclass

from gateway.store.engine.database import Database
from gateway.store.engine.query_cache import QueryCache

_MOST_KEPT = 256

_COLUMNS = "username, created_at, last_seen_at, expires_at, central, mfa_pending, role, permissions"


@dataclass(frozen=True, slots=True)
class Session:
    """A session of a signed-in account. Times are wall micros UTC.

    Attributes:
        central: whether this is an account of central, signed in at central or with the remembered password; `role`
            and `permissions` are then those of the sign-in.
        mfa_pending: whether the second factor is still to be proven.
    """

    username: str
    created_at: int
    last_seen_at: int
    expires_at: int
    central: bool = False
    mfa_pending: bool = False
    role: str = ""
    permissions: frozenset[str] = frozenset()


class SessionRecords:
    """Signed-in sessions by their token."""

    def __init__(self, *, database: Database) -> None:
        self._database = database
        self._kept: QueryCache[bytes, Session | None] = QueryCache(database=database, most=_MOST_KEPT)

    async def add(self, token: str, session: Session, *, proven: str = "") -> bool:
        """Store a new session and delete expired ones; return whether it was stored.

        `proven`: the password hash that a stored account's password was checked against. The session is not stored if
        the account has another password by now, is disabled or is gone.
        """

        def job(connection: sqlite3.Connection) -> bool:
            connection.execute("DELETE FROM session WHERE expires_at <= ?", (session.created_at,))
            if proven and not _stands(connection, session.username, proven):
                return False
            _insert(connection, token, session)
            return True

        return await self._database.write(job)

    async def replace(self, token: str, session: Session) -> None:
        """Store a session in place of an earlier one of the same token, if there is one."""

        def job(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM session WHERE token_hash = ?", (_hash(token),))
            _insert(connection, token, session)

        await self._database.write(job)

    async def get(self, token: str) -> Session | None:
        """Return the session of a token, also an expired one; None for an unknown token."""
        hashed = _hash(token)

        def query(connection: sqlite3.Connection) -> Session | None:
            row = connection.execute(f"SELECT {_COLUMNS} FROM session WHERE token_hash = ?", (hashed,)).fetchone()
            if row is None:
                return None
            permissions = frozenset(json.loads(row[7])) if row[7] != "[]" else frozenset()
            return Session(row[0], row[1], row[2], row[3], bool(row[4]), bool(row[5]), row[6], permissions)

        return await self._kept.read(hashed, query)

    async def touch(self, token: str, *, seen_at: int, expires_at: int) -> None:
        """Record that a session was used at `seen_at`, and extend it until `expires_at`."""
        await self._database.write(
            lambda connection: connection.execute(
                "UPDATE session SET last_seen_at = ?, expires_at = ? WHERE token_hash = ?",
                (seen_at, expires_at, _hash(token)),
            )
        )

    async def complete(self, token: str, *, seen_at: int, expires_at: int) -> None:
        """Mark a session's second factor as proven, and extend the session until `expires_at`."""
        await self._database.write(
            lambda connection: connection.execute(
                "UPDATE session SET mfa_pending = 0, last_seen_at = ?, expires_at = ? WHERE token_hash = ?",
                (seen_at, expires_at, _hash(token)),
            )
        )

    async def remove(self, token: str) -> None:
        """Remove the session of a token, if there is one."""
        await self._database.write(
            lambda connection: connection.execute("DELETE FROM session WHERE token_hash = ?", (_hash(token),))
        )

    async def remove_of(self, username: str) -> int:
        """Remove all sessions of an account, and return their number."""
        return await self._database.write(
            lambda connection: connection.execute("DELETE FROM session WHERE username = ?", (username,)).rowcount
        )


def _insert(connection: sqlite3.Connection, token: str, session: Session) -> None:
    connection.execute(
        f"INSERT INTO session (token_hash, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            _hash(token),
            session.username,
            session.created_at,
            session.last_seen_at,
            session.expires_at,
            session.central,
            session.mfa_pending,
            session.role,
            json.dumps(sorted(session.permissions)),
        ),
    )


def _stands(connection: sqlite3.Connection, username: str, password_hash: str) -> bool:
    found = connection.execute(
        "SELECT 1 FROM account WHERE username = ? AND password_hash = ? AND NOT disabled", (username, password_hash)
    )
    return found.fetchone() is not None


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
