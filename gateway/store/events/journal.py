"""The journal: writes an occurrence and everything that follows from it in one transaction.

A passage, its events, the footage that it pins and its outbox rows are recorded together or not at all.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gateway.domain.announcements import PlaceNames
from gateway.domain.commands import Command
from gateway.domain.events import Event, Severity
from gateway.domain.passages import CameraEvent, Moment, Passage
from gateway.domain.presence import OUTSIDE, Correction, Movement
from gateway.runtime.clock import ClockOffset
from gateway.store.engine.changes import Changes
from gateway.store.engine.database import Database
from gateway.store.events.commands import put_command
from gateway.store.events.entry_rows import Gone, record_entry
from gateway.store.events.events import insert_event
from gateway.store.events.presence import record_correction, record_movement
from gateway.store.footage.camera_events import camera_event_body
from gateway.store.footage.event_footage import LONGEST_PIN
from gateway.store.outbox.rows import body_text, insert_outbox
from gateway.store.webhooks import feed_webhooks

AT_A_TIME = 1_000
_SAME_MICROS = 1_000_000
_MOST_SETTINGS = 64
_SPANS = (12, 17)
_HIGHEST = 2**63 - 1
_UNKNOWN = ClockOffset(boot_id="", micros=0, trusted=False)
_NOWHERE = PlaceNames()


@dataclass(frozen=True, slots=True)
class Untrusted:
    """Events from `first_id` on that an untrusted clock stamped, which was `micros` ahead of monotonic time."""

    first_id: int
    micros: int


def with_untrusted(known: tuple[Untrusted, ...], first_id: int, offset: ClockOffset) -> tuple[Untrusted, ...]:
    """Return what is known of untrusted events with one more from this id on; the same unless the clock was set since.

    Of a clock that is set again and again, the first settings are remembered.
    """
    if len(known) >= _MOST_SETTINGS or (known and abs(known[-1].micros - offset.micros) < _SAME_MICROS):
        return known
    return (*known, Untrusted(first_id, offset.micros))


def correct_events(
    connection: sqlite3.Connection, stamped: Sequence[Untrusted], true: ClockOffset
) -> tuple[Untrusted, ...]:
    """Move the times of untrusted events and their passages to the trusted clock, within a running transaction.

    At most `AT_A_TIME` events; return what is left.
    """
    for place, part in enumerate(stamped):
        end = stamped[place + 1].first_id if place + 1 < len(stamped) else _HIGHEST
        by = true.micros - part.micros
        moved = connection.execute(
            "UPDATE event SET date_at = date_at + ?, clock_trusted = 1, recorded_at = recorded_at + ? WHERE id IN"
            " (SELECT id FROM event WHERE id >= ? AND id < ? AND clock_trusted = 0 ORDER BY id LIMIT ?)"
            " RETURNING id, date_at",
            (by, by, part.first_id, end, AT_A_TIME),
        ).fetchall()
        if not moved:
            continue
        last = max(event_id for event_id, _ in moved)
        connection.execute(
            "UPDATE passage SET started_at = started_at + ?, ended_at = ended_at + ?, clock_trusted = 1"
            " WHERE event_id BETWEEN ? AND ? AND clock_trusted = 0",
            (by, by, part.first_id, last),
        )
        for span in _SPANS:
            connection.executemany(
                "UPDATE event_range SET date_min = min(date_min, ?), date_max = max(date_max, ?)"
                " WHERE span = ? AND number = ?",
                [(date_at, date_at, span, event_id >> span) for event_id, date_at in moved],
            )
        if len(moved) == AT_A_TIME:
            return (Untrusted(last + 1, part.micros), *stamped[place + 1 :])
    return ()


@dataclass(frozen=True, slots=True)
class Entry:
    """Records to commit together. A passage and its moments belong to the last event."""

    events: tuple[Event, ...] = ()
    passage: Passage | None = None
    moments: tuple[Moment, ...] = ()
    commands: tuple[Command, ...] = ()
    movements: tuple[Movement, ...] = ()
    corrections: tuple[Correction, ...] = ()

    def __post_init__(self) -> None:
        """Check that the entry is complete. Raises ValueError."""
        if not self.events and (self.passage or self.moments):
            raise ValueError("a passage and its footage need the event that tells of them")
        if not self.events and (self.movements or self.corrections):
            raise ValueError("whoever moves or is counted anew needs the event that tells of it")
        if any(moment.pinned_until - moment.pinned_from > LONGEST_PIN for moment in self.moments):
            raise ValueError("a moment of footage is at most an hour long")


@dataclass(frozen=True, slots=True)
class Recorded:
    """The ids of an entry's records."""

    event_ids: tuple[int, ...] = ()
    passage_id: int | None = None
    camera_event_ids: tuple[int, ...] = field(default=())


class Journal:
    """The writer of events, passages, camera events, commands and presence."""

    def __init__(
        self,
        *,
        database: Database,
        changes: Changes,
        site_name: str,
        sends: bool,
        offset: Callable[[], ClockOffset] | None = None,
        places: PlaceNames = _NOWHERE,
        announced: Callable[[], None] | None = None,
        now: Callable[[], int] | None = None,
    ) -> None:
        """Prepare the journal.

        Args:
            database: the site's database.
            changes: bumped after every commit.
            site_name: the site's name in records for central.
            sends: whether there is a central; without one, no outbox rows are written.
            offset: returns the present offset between monotonic and wall clock, stored with camera events.
            places: names of lanes and devices for the messages to webhooks.
            announced: called when there are new messages to webhooks.
            now: returns wall micros, in any thread; without it, no event is marked as late.
        """
        self._places = places
        self._untrusted: tuple[Untrusted, ...] = ()
        self._announced = announced
        self._offset = offset
        self._now = now
        self._database = database
        self._changes = changes
        self._site_name = site_name
        self._sends = sends

    def rename(self, *, site_name: str, places: PlaceNames) -> None:
        """Use these names for records from now on."""
        self._site_name, self._places = site_name, places

    async def record(self, entry: Entry) -> Recorded:
        """Record an entry; on return it is on disk. Raises StoreError if the disk refuses it.

        The entry is recorded even if the caller is cancelled. The first ones after the clock was set correct the times
        of those before, in the same commit.
        """
        offset = self._offset() if self._offset is not None else _UNKNOWN
        stamped = self._untrusted if offset.trusted else ()
        fed = 0
        left: tuple[Untrusted, ...] = ()

        def job(connection: sqlite3.Connection) -> Recorded:
            for command in entry.commands:
                put_command(connection, command)
            nonlocal left
            left = correct_events(connection, stamped, offset)
            now = self._now() if self._now is not None else None
            ids = tuple(insert_event(connection, event, now=now) for event in entry.events)
            if not ids:
                return Recorded()
            nonlocal fed
            for event, event_id in zip(entry.events, ids, strict=True):
                fed += feed_webhooks(connection, event, event_id, places=self._places)
            last, last_id = entry.events[-1], ids[-1]
            box = box_number(connection) if entry.passage or entry.moments else 0
            passage_id = _insert_passage(connection, entry.passage, last_id) if entry.passage else None
            if entry.passage and passage_id is not None:
                gone = Gone(entry.passage, passage_id, last.device_id, _area(entry), box)
                record_entry(connection, gone, sends=self._site_name if self._sends else None)
            for movement in entry.movements:
                record_movement(connection, movement)
            for correction in entry.corrections:
                record_correction(connection, correction)
            moments = tuple(
                self._insert_moment(connection, moment, last, last_id, offset=offset, box=box)
                for moment in entry.moments
            )
            return Recorded(event_ids=ids, passage_id=passage_id, camera_event_ids=moments)

        def then() -> None:
            self._changes.bump()
            self._untrusted = left + self._untrusted[len(stamped) :]
            if fed and self._announced is not None:
                self._announced()

        recorded = await self._database.write(job, then=then)
        if recorded.event_ids and not offset.trusted and offset.boot_id:
            self._untrusted = with_untrusted(self._untrusted, recorded.event_ids[0], offset)
        return recorded

    def _insert_moment(
        self,
        connection: sqlite3.Connection,
        moment: Moment,
        event: Event,
        event_id: int,
        *,
        offset: ClockOffset,
        box: int,
    ) -> int:
        cursor = connection.execute(
            "INSERT INTO camera_event (camera_id, event_id, lane_id, name, description, date_at, pinned_from,"
            " pinned_until, clock_trusted, incident, boot_id, clock_offset, box)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                moment.camera_id,
                event_id,
                event.lane_id,
                moment.name,
                moment.description,
                event.date_at,
                moment.pinned_from,
                moment.pinned_until,
                moment.clock_trusted,
                event.severity >= Severity.WARNING,
                offset.boot_id,
                offset.micros,
                box,
            ),
        )
        camera_event_id = int(cursor.lastrowid or 0)
        if self._sends:
            made = CameraEvent(
                id=camera_event_id,
                central_id=None,
                camera_id=moment.camera_id,
                event_id=event_id,
                lane_id=event.lane_id,
                name=moment.name,
                description=moment.description,
                date_at=event.date_at,
                pinned_from=moment.pinned_from,
                pinned_until=moment.pinned_until,
                clock_trusted=moment.clock_trusted,
                ready=False,
                incident=event.severity >= Severity.WARNING,
                box=box,
            )
            insert_outbox(
                connection,
                kind="camera_event",
                record_id=camera_event_id,
                body=body_text(camera_event_body(made, site_name=self._site_name)),
                now=event.date_at,
            )
        return camera_event_id


def _area(entry: Entry) -> str:
    """Return the area that the entry's vehicle entered or left."""
    if entry.passage is None or not entry.movements:
        return OUTSIDE
    way = entry.movements[-1].way
    return way.leaves if entry.passage.direction == "exit" else way.enters


def _insert_passage(connection: sqlite3.Connection, passage: Passage, event_id: int) -> int:
    cursor = connection.execute(
        "INSERT INTO passage (lane_id, direction, outcome, started_at, ended_at, clock_trusted, card_id, credential,"
        " reason, event_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            passage.lane_id,
            passage.direction,
            passage.outcome.value,
            passage.started_at,
            passage.ended_at,
            passage.clock_trusted,
            passage.card_id,
            passage.credential,
            passage.reason,
            event_id,
        ),
    )
    return int(cursor.lastrowid or 0)


def box_number(connection: sqlite3.Connection) -> int:
    """Read the box's number, which distinguishes its records at central from those of other boxes of the site."""
    (number,) = connection.execute("SELECT number FROM box").fetchone()
    return int(number)
