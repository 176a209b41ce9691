"""The queue of each webhook, filled in the transaction that records the event. Its books balance at every commit."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from gateway.domain.announcements import Places, announced_as, announcement
from gateway.domain.events import Event, EventKind
from gateway.store.events.events import insert_event

MOST_WAITING = 10_000
"""The greatest number of messages that wait for one webhook; beyond it the oldest is dropped and counted."""

_WAITING = "accepted - delivered - failed - dropped"


@dataclass(frozen=True, slots=True)
class Message:
    """An event's announcement to one webhook. Times are wall micros.

    Attributes:
        id: the id of its row.
        webhook_id: the webhook.
        event_id: the event.
        message_id: its id for the receiver, the same in all attempts.
        body: the exact text to send.
        created_at: the time of the event.
        tries: the number of failed attempts.
        next_at: when the next attempt is due.
        error: why the last attempt failed, "" without a failure.
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
    """Queue an event for each enabled webhook that takes its type; return the number of those webhooks.

    Within a running transaction. `most`: the greatest number of messages that may wait for a webhook.
    """
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
    """Return the id that an event's announcement has for all receivers."""
    (mark,) = connection.execute("SELECT mark FROM webhook_mark").fetchone() or ("site",)
    return f"msg_{mark}_{event_id}"


def put_message(
    connection: sqlite3.Connection, webhook_id: str, event_id: int, message_id: str, body: str, *, now: int
) -> bool:
    """Queue a message unless the webhook already has one of the same event; return whether it was queued."""
    put = connection.execute(
        "INSERT OR IGNORE INTO webhook_message (webhook_id, event_id, message_id, body, created_at, next_at)"
        " VALUES (?, ?, ?, ?, ?, 0)",
        (webhook_id, event_id, message_id, body, now),
    ).rowcount
    connection.execute("UPDATE webhook SET accepted = accepted + ? WHERE id = ?", (put, webhook_id))
    return bool(put)


def _make_room(connection: sqlite3.Connection, webhook_id: str, event: Event, *, is_reported: bool, most: int) -> None:
    """Drop a webhook's oldest waiting message, and record an event unless that `is_reported` already."""
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
