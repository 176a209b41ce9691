"""Devices that programs registered at the site: list, register and remove.

The interface has no operation to delete a device at central. A device that central may have is therefore only hidden
here.
"""

from __future__ import annotations

import sqlite3

from gateway.store.engine.changes import Changes
from gateway.store.engine.database import Database
from gateway.store.outbox.pending_writes import take_back
from gateway.store.outbox.record_kinds import RECORD_KINDS

_KIND = "device"


class RegisteredDevices:
    """The devices that programs registered and removed."""

    def __init__(self, *, database: Database, changes: Changes) -> None:
        self._database = database
        self._changes = changes

    async def add(self, device_id: int) -> None:
        """Record that a device was registered at the site."""

        def job(connection: sqlite3.Connection) -> None:
            known = RECORD_KINDS[_KIND].site_id(connection, device_id)
            connection.execute("INSERT OR IGNORE INTO registered_device (id) VALUES (?)", (known,))

        await self._database.write(job)

    async def remove(self, device_id: int, *, now: int) -> bool:
        """Remove a device that was registered at the site; return False for any other device.

        If its create cannot have reached central, the create is never sent.
        """

        def job(connection: sqlite3.Connection) -> bool:
            known = RECORD_KINDS[_KIND].site_id(connection, device_id)
            if take_back(connection, _KIND, known):
                RECORD_KINDS[_KIND].remove(connection, known)
                connection.execute("DELETE FROM registered_device WHERE id = ?", (known,))
                return True
            changed = connection.execute(
                "UPDATE registered_device SET removed_at = ? WHERE id = ? AND removed_at IS NULL", (now, known)
            )
            return bool(changed.rowcount)

        return await self._database.write(job, then=self._changes.bump)

    async def since(self, device_id: int) -> int:
        """Return since when a device is known at the site (wall micros), 0 if unknown."""

        def query(connection: sqlite3.Connection) -> int:
            row = connection.execute("SELECT at FROM device_since WHERE id = ?", (device_id,)).fetchone()
            return int(row[0]) if row else 0

        return await self._database.read(query)
