"""Webhooks: their receivers, event types, state and queues."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from functools import partial

from gateway.domain.announcements import PlaceNames, announced_as, announcement, as_happened
from gateway.domain.events import Event, EventKind, RecordedEvent
from gateway.store.engine.access_log import AccessLog
from gateway.store.engine.changes import Changes
from gateway.store.engine.database import Database
from gateway.store.events.events import insert_event
from gateway.store.events.rows import COLUMNS, event_of
from gateway.texts import text

_MOST_FAILED = 10_000
_FAILING_TRIES = 2
_PAGE = 500
_RECENT = 2 * 86_400_000_000
_MESSAGE = "id, webhook_id, event_id, message_id, body, created_at, tries, next_at, error"
_WEBHOOK = (
    "id, url, secret, created_at, created_by, disabled, failing_since, failed_at, error, accepted, delivered, failed,"
    " dropped, (SELECT group_concat(type) FROM webhook_type WHERE webhook_id = webhook.id),"
    " (SELECT count(*) FROM webhook_message WHERE webhook_id = webhook.id AND webhook_message.failed = 0),"
    " (SELECT max(tries) FROM webhook_message WHERE webhook_id = webhook.id)"
)

MOST_WAITING = 10_000
"""The greatest number of messages that wait for one webhook; beyond it the oldest is dropped and counted."""

_WAITING = "accepted - delivered - failed - dropped"


@dataclass(frozen=True, slots=True)
class WebhookBooks:
    """Counts of a webhook's messages: accepted = delivered + failed + dropped + waiting.

    `failed` messages were given up after all attempts; `dropped` ones were removed because the queue was full.
    """

    accepted: int = 0
    delivered: int = 0
    failed: int = 0
    dropped: int = 0
    waiting: int = 0

    def balance(self) -> bool:
        """Return whether the counts add up, so that no message was lost or counted twice."""
        return self.accepted == self.delivered + self.failed + self.dropped + self.waiting


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook: a registered receiver of events. Times are wall micros.

    Attributes:
        id: the webhook's id.
        url: the address to which events are sent.
        types: the types of events that it takes.
        secret: the key that signs messages; it is never shown.
        created_at: when it was registered.
        created_by: the account that registered it.
        disabled: why nothing is sent to it, "" while it is enabled.
        failing_since: since when no delivery has succeeded, by a trusted clock; None while deliveries succeed.
        failed_at: when the last attempt failed, by a trusted clock; None while deliveries succeed.
        error: why the last attempt failed, "" if it succeeded.
        tries: the greatest number of failed attempts of one message, among waiting and given-up ones.
        books: the counts of its messages.
    """

    id: str
    url: str
    types: tuple[str, ...]
    secret: str = field(repr=False)
    created_at: int
    created_by: str
    disabled: str = ""
    failing_since: int | None = None
    failed_at: int | None = None
    error: str = ""
    tries: int = 0
    books: WebhookBooks = WebhookBooks()

    @property
    def failing(self) -> str:
        """The reason for which deliveries fail repeatedly, "" while they do not.

        This takes two failed attempts of one message, five seconds apart, so that a receiver's restart is not reported.
        """
        return self.error if self.tries >= _FAILING_TRIES and not self.disabled else ""


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
    connection: sqlite3.Connection, event: Event, event_id: int, *, places: PlaceNames, most: int = MOST_WAITING
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
        said = text("event.webhook_backlog_full", webhook=webhook_id, count=str(most))
        dropped = Event(
            kind=EventKind.WEBHOOK_BACKLOG_FULL,
            date_at=event.date_at,
            clock_trusted=event.clock_trusted,
            text=said,
            data={"webhook_id": webhook_id},
        )
        insert_event(connection, dropped)


class Webhooks:
    """All webhooks. `changes` is bumped when one is added, changed or removed, and when a message is queued."""

    def __init__(self, *, database: Database, places: PlaceNames, recorded: Changes, log: AccessLog) -> None:
        """Keep the collaborators. `places`: names for messages. `recorded`: bumped when an event was recorded."""
        self._database = database
        self._log = log
        self._recorded = recorded
        self.places = places
        self.changes = Changes()

    async def add(self, webhook: Webhook, *, most: int) -> bool:
        """Add a webhook unless there are `most` already; return whether it was added."""

        def job(connection: sqlite3.Connection) -> bool:
            if connection.execute("SELECT count(*) FROM webhook").fetchone()[0] >= most:
                return False
            connection.execute(
                "INSERT INTO webhook (id, url, secret, created_at, created_by) VALUES (?, ?, ?, ?, ?)",
                (webhook.id, webhook.url, webhook.secret, webhook.created_at, webhook.created_by),
            )
            connection.executemany(
                "INSERT INTO webhook_type VALUES (?, ?)", [(kind, webhook.id) for kind in webhook.types]
            )
            self._log.webhook(connection, webhook.id)
            return True

        return await self._database.write(job, then=self.changes.bump)

    async def remove(self, webhook_id: str) -> bool:
        """Delete a webhook with its queue; return whether there was one."""

        def job(connection: sqlite3.Connection) -> bool:
            gone = connection.execute("DELETE FROM webhook WHERE id = ?", (webhook_id,)).rowcount > 0
            if gone:
                self._log.webhook(connection, webhook_id)
            return gone

        return await self._database.write(job, then=self.changes.bump)

    async def all(self) -> tuple[Webhook, ...]:
        """Return every webhook, oldest first."""
        return await self._database.rows(f"SELECT {_WEBHOOK} FROM webhook ORDER BY created_at, id", of=_webhook)

    async def get(self, webhook_id: str) -> Webhook | None:
        """Return one webhook, or None."""

        def query(connection: sqlite3.Connection) -> Webhook | None:
            row = connection.execute(f"SELECT {_WEBHOOK} FROM webhook WHERE id = ?", (webhook_id,)).fetchone()
            return _webhook(row) if row else None

        return await self._database.read(query)

    async def due(self, webhook_id: str, *, now: int, farthest: int, limit: int = 20) -> tuple[Message, ...]:
        """Return the messages to send now, in the order of the queue.

        A message that would be due more than `farthest` micros after `now` is due too, because its time was set by a
        clock that has stepped back since.
        """

        def query(connection: sqlite3.Connection) -> tuple[Message, ...]:
            rows = connection.execute(
                f"SELECT {_MESSAGE} FROM webhook_message WHERE id IN (SELECT id FROM webhook_message"
                " WHERE webhook_id = ? AND failed = 0 AND (next_at <= ? OR next_at > ?) ORDER BY id LIMIT ?)"
                " ORDER BY id",
                (webhook_id, now, now + farthest, limit),
            ).fetchall()
            return tuple(Message(*row) for row in rows)

        return await self._database.read(query)

    async def next_due(self, webhook_id: str) -> int | None:
        """Return when the earliest message is due (wall micros), None if none waits."""

        def query(connection: sqlite3.Connection) -> int | None:
            row = connection.execute(
                "SELECT next_at FROM webhook_message WHERE webhook_id = ? AND failed = 0 ORDER BY next_at LIMIT 1",
                (webhook_id,),
            ).fetchone()
            return None if row is None else int(row[0])

        return await self._database.read(query)

    async def delivered(self, message: Message, *, is_back: bool, now: int) -> None:
        """Record a delivery, and remove the message.

        `is_back`: the receiver answers again after a long failure. Its other messages are then due at once and have one
        failed attempt less. Messages older than two days are excepted, because the receiver may never take them.
        """

        def job(connection: sqlite3.Connection) -> None:
            if is_back:
                connection.execute(
                    "UPDATE webhook_message SET next_at = 0, tries = tries - 1 WHERE webhook_id = ? AND failed = 0"
                    " AND tries > 0 AND created_at > ?",
                    (message.webhook_id, now - _RECENT),
                )
            gone = connection.execute("DELETE FROM webhook_message WHERE id = ?", (message.id,)).rowcount
            connection.execute(
                "UPDATE webhook SET delivered = delivered + ?, failing_since = NULL, failed_at = NULL, error = '',"
                " full = full AND accepted - delivered - failed - dropped > ? WHERE id = ?",
                (gone, MOST_WAITING // 2, message.webhook_id),
            )

        await self._database.write(job)

    async def failed(
        self, message: Message, *, error: str, next_at: int | None, failing_since: int | None, failed_at: int | None
    ) -> None:
        """Record a failed attempt. The next one is due at `next_at` (wall micros).

        `next_at` None: the message is given up. The newest 10,000 given-up messages are kept for a replay.
        """

        def job(connection: sqlite3.Connection) -> None:
            given_up = next_at is None
            there = connection.execute(
                "UPDATE webhook_message SET tries = tries + 1, error = ?, next_at = ?, failed = ? WHERE id = ?",
                (error, next_at or 0, given_up, message.id),
            ).rowcount
            connection.execute(
                "UPDATE webhook SET failed = failed + ?, error = ?, failing_since = ?, failed_at = ? WHERE id = ?",
                (there if given_up else 0, error, failing_since, failed_at, message.webhook_id),
            )
            if given_up:
                connection.execute(
                    "DELETE FROM webhook_message WHERE id = (SELECT id FROM webhook_message WHERE webhook_id = ?"
                    " AND failed = 1 ORDER BY id DESC LIMIT 1 OFFSET ?)",
                    (message.webhook_id, _MOST_FAILED),
                )

        await self._database.write(job)

    async def disable(self, webhook_id: str, *, why: str, event: Event) -> None:
        """Stop deliveries to a webhook and queue nothing more for it; waiting messages stay. `why`: the reason."""
        await self._set_disabled(webhook_id, disabled=why, event=event)

    async def enable(self, webhook_id: str, *, event: Event) -> bool:
        """Resume deliveries to a webhook, oldest first and at once. Return whether the webhook exists."""
        return await self._set_disabled(webhook_id, disabled="", event=event)

    async def replay(self, webhook_id: str) -> int:
        """Queue given-up messages again; return their number."""

        def job(connection: sqlite3.Connection) -> int:
            count = connection.execute(
                "UPDATE webhook_message SET failed = 0, tries = 0, next_at = 0 WHERE webhook_id = ? AND failed = 1",
                (webhook_id,),
            ).rowcount
            connection.execute("UPDATE webhook SET failed = failed - ? WHERE id = ?", (count, webhook_id))
            return count

        return await self._database.write(job, then=self.changes.bump)

    async def replay_since(self, webhook_id: str, *, since: int, until: int) -> int:
        """Queue the webhook's events in `[since, until)` (wall micros) again, under the same message ids.

        Delivered events are included. If there are more than may wait, only the newest are queued. Return how many
        messages were queued.
        """
        count, before, kept = 0, 0, True
        while kept:
            page = await self._database.read(partial(_page_of_events, before))
            kept = any(event.date_at >= since for event in page)
            wanted = tuple(event for event in page if since <= event.date_at < until)
            if wanted:
                room = MOST_WAITING - count
                count += await self._database.write(partial(self._put_again, webhook_id, wanted, room))
            before = page[-1].id if page else 0
            kept = kept and count < MOST_WAITING
        self.changes.bump()
        return count

    def _put_again(
        self, webhook_id: str, wanted: tuple[RecordedEvent, ...], room: int, connection: sqlite3.Connection
    ) -> int:
        row = connection.execute(f"SELECT {_WEBHOOK} FROM webhook WHERE id = ?", (webhook_id,)).fetchone()
        if row is None:
            return 0
        webhook, count = _webhook(row), 0
        for recorded in wanted[: max(min(room, MOST_WAITING - webhook.books.waiting), 0)]:
            event = as_happened(recorded)
            if event is not None and announced_as(event) in webhook.types:
                count += self._put_one_again(connection, webhook_id, recorded.id, event)
        return count

    def _put_one_again(self, connection: sqlite3.Connection, webhook_id: str, event_id: int, event: Event) -> int:
        given_up = connection.execute(
            "UPDATE webhook_message SET failed = 0, tries = 0, next_at = 0 WHERE webhook_id = ? AND event_id = ?"
            " AND failed = 1",
            (webhook_id, event_id),
        ).rowcount
        if given_up:
            connection.execute("UPDATE webhook SET failed = failed - 1 WHERE id = ?", (webhook_id,))
            return 1
        message_id = message_id_of(connection, event_id)
        body = announcement(event, message_id=message_id, event_id=event_id, places=self.places)
        return int(put_message(connection, webhook_id, event_id, message_id, body, now=event.date_at))

    async def _set_disabled(self, webhook_id: str, *, disabled: str, event: Event) -> bool:
        def job(connection: sqlite3.Connection) -> bool:
            there = connection.execute(
                "UPDATE webhook SET disabled = ?, failing_since = NULL, failed_at = NULL WHERE id = ?",
                (disabled, webhook_id),
            ).rowcount
            if there:
                insert_event(connection, event)
            if there and not disabled:  # the person who enables it wants to see at once whether it works
                connection.execute(
                    "UPDATE webhook_message SET next_at = 0 WHERE webhook_id = ? AND failed = 0", (webhook_id,)
                )
            return bool(there)

        def then() -> None:
            self.changes.bump()
            self._recorded.bump()

        return await self._database.write(job, then=then)


def _page_of_events(before: int, connection: sqlite3.Connection) -> tuple[RecordedEvent, ...]:
    """Return the next events below id `before` (0: the newest), newest first."""
    bound = "WHERE id < ?" if before else ""
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM event {bound} ORDER BY id DESC LIMIT ?", (*((before,) if before else ()), _PAGE)
    )
    return tuple(event_of(row) for row in rows)


def _webhook(row: tuple[object, ...]) -> Webhook:
    number, url, secret, created_at, created_by, disabled, since, at, error, *counts = row[:13]
    types, waiting, tries = row[13:]
    return Webhook(
        id=str(number),
        url=str(url),
        types=tuple(str(types or "").split(",")) if types else (),
        secret=str(secret),
        created_at=_number(created_at),
        created_by=str(created_by),
        disabled=str(disabled),
        failing_since=None if since is None else _number(since),
        failed_at=None if at is None else _number(at),
        error=str(error),
        tries=_number(tries),
        books=WebhookBooks(*map(_number, (*counts, waiting))),
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
