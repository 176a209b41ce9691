"""Queue of each webhook, fed in the transaction that records the event. Books balance at every commit."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from gateway.domain.announcements import Places, announced_as, announcement
from gateway.domain.events import Event, EventKind
from gateway.store.events.events import insert_event

MOST_WAITING = 10_000
"""How many messages wait for one webhook; beyond that the oldest is dropped, and counted."""

_WAITING = "accepted - delivered - failed - dropped"


@dataclass(frozen=True, slots=True)
class Message:
    """One announcement on its way to one webhook. Moments are wall micros.

    Attributes:
        id: of its row.
        webhook_id: to whom.
        message_id: what the receiver knows it by, the same over all tries.
        body: exactly what is sent.
        tries: how many have failed.
        next_at: not before this moment.
        error: why the last try failed.
    """

    id: int
    webhook_id: str
    event_id: int
    message_id: str
    body: str
    created_at: int
    tries: int
    next_at: int
    error: str


def feed_webhooks(
    connection: sqlite3.Connection, event: Event, event_id: int, *, places: Places, most: int = MOST_WAITING
) -> int:
    """Queue an event for each webhook that wants it, within a running transaction; return their number."""
    kind = announced_as(event)
    if kind is None:
        return 0
    takers = connection.execute(
        f"SELECT id, {_WAITING}, full FROM webhook_type JOIN webhook ON id = webhook_id"
        " WHERE type = ? AND disabled = ''",
        (kind,),
    ).fetchall()
    if not takers:
        return 0
    message_id = message_id_of(connection, event_id)
    body = announcement(event, message_id=message_id, event_id=event_id, places=places)
    for webhook_id, waiting, is_full in takers:
        if put_message(connection, webhook_id, event_id, message_id, body, now=event.date_at) and waiting >= most:
            _make_room(connection, webhook_id, event, is_reported=bool(is_full), most=most)
    return len(takers)


def message_id_of(connection: sqlite3.Connection, event_id: int) -> str:
    """Return the id by which receivers know an event's announcement."""
    (mark,) = connection.execute("SELECT mark FROM webhook_mark").fetchone() or ("site",)
    return f"msg_{mark}_{event_id}"


def put_message(
    connection: sqlite3.Connection, webhook_id: str, event_id: int, message_id: str, body: str, *, now: int
) -> bool:
    """Queue a message unless one of the same event is queued; return whether it was queued."""
    put = connection.execute(
        "INSERT OR IGNORE INTO webhook_message (webhook_id, event_id, message_id, body, created_at, next_at)"
        " VALUES (?, ?, ?, ?, ?, 0)",
        (webhook_id, event_id, message_id, body, now),
    ).rowcount
    connection.execute("UPDATE webhook SET accepted = accepted + ? WHERE id = ?", (put, webhook_id))
    return bool(put)


def _make_room(connection: sqlite3.Connection, webhook_id: str, event: Event, *, is_reported: bool, most: int) -> None:
    """Drop the oldest message that waits, and record an event for the first that is dropped."""
    gone = connection.execute(
        "DELETE FROM webhook_message WHERE id = (SELECT min(id) FROM webhook_message"
        " WHERE webhook_id = ? AND failed = 0)",
        (webhook_id,),
    ).rowcount
    connection.execute("UPDATE webhook SET dropped = dropped + ?, full = 1 WHERE id = ?", (gone, webhook_id))
    if not is_reported:
        text = f"webhook {webhook_id} has {most} messages waiting; from now on the oldest are dropped and counted"
        dropped = Event(
            kind=EventKind.WEBHOOK_BACKLOG_FULL,
            date_at=event.date_at,
            clock_trusted=event.clock_trusted,
            description=text,
            data={"webhook_id": webhook_id},
        )
        insert_event(connection, dropped)
