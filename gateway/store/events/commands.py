"""Commands to gates on disk, updated with each change of their state."""

from __future__ import annotations

import sqlite3

from gateway.domain.commands import Command, CommandState, GateAction
from gateway.store.engine.database import Database

_COLUMNS = "command_id, device_id, lane_id, action, source, requested_at, deadline_at, state, detail"


def put_command(connection: sqlite3.Connection, command: Command) -> None:
    """Insert a command, or update its state and detail, within a running transaction."""
    connection.execute(
        "INSERT INTO command VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (command_id) DO UPDATE SET state = excluded.state, detail = excluded.detail",
        (
            command.command_id,
            command.device_id,
            command.lane_id,
            command.action.value,
            command.source,
            command.requested_at,
            command.deadline_at,
            command.state.value,
            str(command.detail),
        ),
    )


class CommandRecords:
    """Every command ever recorded."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def get(self, command_id: str) -> Command | None:
        """Return one command, or None."""

        def query(connection: sqlite3.Connection) -> Command | None:
            row = connection.execute(f"SELECT {_COLUMNS} FROM command WHERE command_id = ?", (command_id,)).fetchone()
            return _command(row) if row else None

        return await self._database.read(query)

    async def unfinished(self) -> tuple[Command, ...]:
        """Return commands without a final state. After a restart their outcome is unknown; none is sent again."""
        return await self._database.rows(
            f"SELECT {_COLUMNS} FROM command WHERE state IN ('recorded', 'sent', 'acknowledged')", of=_command
        )


def _command(row: tuple[str, int, str, str, str, int, int, str, str]) -> Command:
    return Command(
        command_id=row[0],
        device_id=row[1],
        lane_id=row[2],
        action=GateAction(row[3]),
        source=row[4],
        requested_at=row[5],
        deadline_at=row[6],
        state=CommandState(row[7]),
        detail=row[8],
    )
