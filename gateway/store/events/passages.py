"""Reading of passages. The journal writes them."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass

from gateway.domain.events import RecordedEvent
from gateway.domain.passages import Passage, PassageOutcome
from gateway.store.engine.database import Database
from gateway.store.events.rows import COLUMNS as EVENT_COLUMNS
from gateway.store.events.rows import event_of

_COLUMNS = "id, event_id, lane_id, direction, outcome, started_at, ended_at, clock_trusted, card_id, credential, reason"

_LATER_PASSAGES = 100
_EARLIER_EVENTS = 5000
_LONGEST_STORY = 400


@dataclass(frozen=True, slots=True)
class RecordedPassage:
    """A passage with its own id and the id of its event."""

    id: int
    event_id: int
    passage: Passage


class Passages:
    """The site's passages."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def page(self, *, lane_id: str = "", before: int = 0, limit: int = 25) -> tuple[RecordedPassage, ...]:
        """Return passages by descending id, of one lane or of all; `before` 0 starts at the newest."""

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

    async def story(self, event: RecordedEvent) -> tuple[RecordedEvent, ...]:
        """Return all events of the vehicle's visit to which an event belongs, oldest first.

        If it belongs to no visit that has ended, only the event itself is returned. Decisions and passages of other
        vehicles in the lane at that time are left out. The search covers the 5,000 ids before the end of the visit.
        """

        def query(connection: sqlite3.Connection) -> tuple[RecordedEvent, ...]:
            ended = [
                _passage(row)
                for row in connection.execute(
                    f"SELECT {_COLUMNS} FROM passage WHERE event_id >= ? AND lane_id = ? ORDER BY event_id LIMIT ?",
                    (event.id, event.lane_id, _LATER_PASSAGES),
                )
            ]
            visit = _visit_of(event, ended)
            if visit is None:
                return (event,)
            near = (visit.event_id - _EARLIER_EVENTS, visit.event_id + _EARLIER_EVENTS)
            others = [
                _passage(row)
                for row in connection.execute(
                    f"SELECT {_COLUMNS} FROM passage WHERE event_id BETWEEN ? AND ? AND lane_id = ? AND id <> ?",
                    (*near, event.lane_id, visit.id),
                )
            ]
            rows = connection.execute(
                f"SELECT {EVENT_COLUMNS} FROM event WHERE id > ? AND id <= ? AND lane_id = ?"
                " AND date_at BETWEEN ? AND ? ORDER BY id DESC LIMIT ?",
                (
                    near[0],
                    visit.event_id,
                    event.lane_id,
                    visit.passage.started_at,
                    visit.passage.ended_at,
                    _LONGEST_STORY,
                ),
            )
            told = (event_of(row) for row in rows)
            story = {item.id: item for item in told if _is_of(item, visit, others)} | {event.id: event}
            return tuple(story[number] for number in sorted(story))

        return await self._database.read(query) if event.lane_id else (event,)


def _visit_of(event: RecordedEvent, ended: list[RecordedPassage]) -> RecordedPassage | None:
    """Return the passage of an event: its own, else one of its credential at that time, else any at that time."""
    during = [one for one in ended if one.passage.started_at <= event.date_at <= one.passage.ended_at]
    shown = _credential(event)
    by_card = [one for one in during if shown and one.passage.credential == shown]
    own = [one for one in ended if one.event_id == event.id]
    return next(iter([*own, *by_card, *during]), None)


def _is_of(event: RecordedEvent, visit: RecordedPassage, others: list[RecordedPassage]) -> bool:
    """Return whether an event of the lane at that time belongs to this visit and not to another vehicle's."""
    if any(event.id == one.event_id for one in others):
        return False
    shown = _credential(event)
    if not shown or shown == visit.passage.credential:
        return True
    return not any(
        shown == one.passage.credential and one.passage.started_at <= event.date_at <= one.passage.ended_at
        for one in others
    )


def _credential(event: RecordedEvent) -> str:
    """Return the credential of an event, as technicians see it; "" for none."""
    shown = json.loads(event.data).get("credential") if '"credential"' in event.data else ""
    return shown if isinstance(shown, str) else ""


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
