"""Passages on disk. They are made by the journal."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from gateway.domain.passages import Passage, PassageOutcome
from gateway.store.database import Database

_COLUMNS = "id, event_id, lane_id, direction, outcome, started_at, ended_at, clock_trusted, card_id, credential, reason"


@dataclass(frozen=True, slots=True)
class RecordedPassage:
    """A passage, its id, and the event that tells of it."""

    id: int
    event_id: int
    passage: Passage


class Passages:
    """The site's passages."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def page(self, *, lane_id: str = "", before: int = 0, limit: int = 25) -> tuple[RecordedPassage, ...]:
        """Passages by descending id, of one lane or of all; `before` 0 starts at the newest."""

        def query(connection: sqlite3.Connection) -> tuple[RecordedPassage, ...]:
            return tuple(
                _passage(row)
                for row in connection.execute(
                    f"SELECT {_COLUMNS} FROM passage WHERE (?1 = '' OR lane_id = ?1) AND (?2 = 0 OR id < ?2)"
                    " ORDER BY id DESC LIMIT ?3",
                    (lane_id, before, max(limit, 0)),
                )
            )

        return await self._database.read(query)


def _passage(row: tuple[int, int, str, str, str, int, int, int, int | None, str, str]) -> RecordedPassage:
    return RecordedPassage(
        id=row[0],
        event_id=row[1],
        passage=Passage(
            lane_id=row[2],
            direction=row[3],
            outcome=PassageOutcome(row[4]),
            started_at=row[5],
            ended_at=row[6],
            clock_trusted=bool(row[7]),
            card_id=row[8],
            credential=row[9],
            reason=row[10],
        ),
    )
