"""Group commit: many jobs in one transaction, each in a savepoint of its own. Runs in the writing thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from gateway.domain.errors import StoreError
from gateway.store.engine.connection import Job
from gateway.store.engine.faults import is_own


class Outcome:
    """Outcome of one job: its result or its error."""

    __slots__ = ("error", "result")

    def __init__(self, *, result: object = None, error: Exception | None = None) -> None:
        self.result = result
        self.error = error


def commit(connection: sqlite3.Connection, jobs: Sequence[Job[Any]]) -> list[Outcome]:
    """Run the jobs and commit them together; on return they are on disk.

    Of a job that fails by its own fault, only its own work is undone. Raises sqlite3.Error if the disk refuses; then
    no job's work is kept.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")
        outcomes = [_run(connection, job) for job in jobs]
        connection.execute("COMMIT")
    except BaseException:  # a refusing disk or an interrupt: no transaction may stay open for the next commit
        if connection.in_transaction:
            connection.rollback()
        raise
    return outcomes


def _run(connection: sqlite3.Connection, job: Job[Any]) -> Outcome:
    connection.execute("SAVEPOINT job")
    try:
        result = job(connection)
    except sqlite3.Error as error:
        if not is_own(error):
            raise
        _undo(connection)
        mistake = StoreError(f"the statement was refused: {error}")
        mistake.__cause__ = error
        return Outcome(error=mistake)
    except Exception as error:  # noqa: BLE001 (the job's own error goes to whoever queued it; the batch goes on)
        _undo(connection)
        return Outcome(error=error)
    connection.execute("RELEASE job")
    return Outcome(result=result)


def _undo(connection: sqlite3.Connection) -> None:
    connection.execute("ROLLBACK TO job")
    connection.execute("RELEASE job")
