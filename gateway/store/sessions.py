"""Sessions on disk, so that a restart signs nobody out. Only the token's SHA-256 is kept."""

from __future__ import annotations

import hashlib
import sqlite3
from dataclasses import dataclass

from gateway.store.database import Database
from gateway.store.kept import Kept

_MOST_KEPT = 256


@dataclass(frozen=True, slots=True)
class Session:
    """Who is signed in. Times are wall micros UTC."""

    username: str
    created_at: int
    last_seen_at: int
    expires_at: int


class Sessions:
    """Signed-in sessions by their token."""

    def __init__(self, *, database: Database) -> None:
        self._database = database
        self._kept: Kept[bytes, Session | None] = Kept(database=database, most=_MOST_KEPT)

    async def add(self, token: str, session: Session) -> None:
        """Remember a new session, and forget those that have expired."""

        def job(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM session WHERE expires_at <= ?", (session.created_at,))
            connection.execute(
                "INSERT INTO session VALUES (?, ?, ?, ?, ?)",
                (
                    _hash(token),
                    session.username,
                    session.created_at,
                    session.last_seen_at,
                    session.expires_at,
                ),
            )

        await self._database.write(job)

    async def get(self, token: str) -> Session | None:
        """The session of a token, expired or not, or None."""
        hashed = _hash(token)

        def query(connection: sqlite3.Connection) -> Session | None:
            row = connection.execute(
                "SELECT username, created_at, last_seen_at, expires_at FROM session WHERE token_hash = ?", (hashed,)
            ).fetchone()
            return Session(*row) if row else None

        return await self._kept.read(hashed, query)

    async def touch(self, token: str, *, seen_at: int, expires_at: int) -> None:
        """The session was used; it lives on until `expires_at`."""
        await self._database.write(
            lambda connection: connection.execute(
                "UPDATE session SET last_seen_at = ?, expires_at = ? WHERE token_hash = ?",
                (seen_at, expires_at, _hash(token)),
            )
        )

    async def remove(self, token: str) -> None:
        """The session is over."""
        await self._database.write(
            lambda connection: connection.execute("DELETE FROM session WHERE token_hash = ?", (_hash(token),))
        )


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
