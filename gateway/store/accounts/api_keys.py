"""Keys of programs that use the legacy family. Only a key's SHA-256 is kept."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass

from gateway.domain.accounts import AccountChangeRefused
from gateway.domain.errors import NotFoundError
from gateway.store.engine.access_log import AccessLog
from gateway.store.engine.database import Database


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key of a program. `key_hash` is its SHA-256. Times are wall micros UTC; `expires_at` None: never expires."""

    id: int
    name: str
    key_hash: bytes
    permissions: frozenset[str]
    created_at: int
    expires_at: int | None


class ApiKeyRecords:
    """The keys of all programs."""

    def __init__(self, *, database: Database, log: AccessLog) -> None:
        self._database = database
        self._log = log

    async def all(self) -> tuple[ApiKey, ...]:
        """Return every key, by name, expired ones included."""
        return await self._database.read(
            lambda connection: tuple(
                ApiKey(row[0], row[1], row[2], frozenset(json.loads(row[3])), row[4], row[5])
                for row in connection.execute(
                    "SELECT id, name, key_hash, permissions, created_at, expires_at FROM api_key ORDER BY name"
                )
            )
        )

    async def add(
        self, name: str, *, key_hash: bytes, permissions: frozenset[str], now: int, expires_at: int | None
    ) -> None:
        """Add a key. Raises AccountRefused when the name is taken."""

        def job(connection: sqlite3.Connection) -> None:
            if connection.execute("SELECT 1 FROM api_key WHERE name = ?", (name,)).fetchone():
                raise AccountChangeRefused(f"there is a key '{name}' already")
            connection.execute(
                "INSERT INTO api_key (name, key_hash, permissions, created_at, expires_at) VALUES (?, ?, ?, ?, ?)",
                (name, key_hash, json.dumps(sorted(permissions)), now, expires_at),
            )
            self._log.key(connection, name)

        await self._database.write(job)

    async def remove(self, name: str) -> None:
        """Remove a key, which stops working at once. Raises NotFoundError for an unknown name."""

        def job(connection: sqlite3.Connection) -> None:
            if connection.execute("DELETE FROM api_key WHERE name = ?", (name,)).rowcount == 0:
                raise NotFoundError(f"there is no key '{name}'")
            self._log.key(connection, name)

        await self._database.write(job)
