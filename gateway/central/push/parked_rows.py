"""Decisions of a person about parked rows: send again, edit, drop or settle them."""

from __future__ import annotations

from dataclasses import replace

from gateway.central.client.answers import CentralDenied
from gateway.central.client.client import CentralClient
from gateway.central.client.not_found import NOT_FOUND, doubt
from gateway.central.push.requests import answered_record
from gateway.central.site_cards import KIND as CARD
from gateway.central.site_cards import SiteCards
from gateway.domain.conflicts import READS
from gateway.domain.errors import CentralRefused, CentralUnavailable, CommandRefused
from gateway.domain.events import Event, EventKind
from gateway.domain.record_match import RecordMatch, match_record
from gateway.domain.writes import WRITES, Effect, JsonObject, changed_by, record_name
from gateway.store import OutboxRow, PendingWrite
from gateway.store.outbox.rows import body_object, body_text
from gateway.texts import Text, text

_LONGEST_TEXT = 300


class ParkedRows:
    """A person's actions on the outbox rows that central refused or whose outcome is unknown, by the rows' ids.

    Each raises NotFoundError, CommandRefused and StoreError as `RefusedRows` does.
    """

    def __init__(self, cards: SiteCards, *, client: CentralClient | None = None) -> None:
        """Take what the actions need. Without `client`, a person's word that central has a record is not checked."""
        self._store = cards.store
        self._refused = cards.store.refused
        self._unknown_outcomes = cards.store.unknown_outcomes
        self._cards = cards
        self._clock = cards.clock
        self._client = client

    async def retry(self, row_id: int, *, by: str) -> OutboxRow:
        """Queue a row again as it is."""
        row = await self._refused.get(row_id)
        event = self._event(EventKind.RECORD_RELEASED, row, text("parked.sent_again", who=by))
        return replace(await self._refused.retry(row_id, event), parked=False, error="")

    async def edit(self, row_id: int, fields: JsonObject, *, by: str) -> OutboxRow:
        """Queue a row again with changed fields; null removes a field. The record at the site is changed too."""
        row = await self._refused.get(row_id)
        body = body_object(row.body)
        operation = WRITES.get((row.kind, row.action))
        if body is None or operation is None:
            raise CommandRefused(text("refused.operation_unknown"))
        if operation.effect is Effect.DELETE:
            raise CommandRefused(text("refused.deletion_edited"))
        edited: JsonObject = {name: value for name, value in changed_by(body, fields).items() if value is not None}
        if not edited.keys() - {"id"}:
            raise CommandRefused(text("refused.no_field_left"))
        what = text("parked.edited", fields=", ".join(sorted(fields)), who=by)
        event = self._event(EventKind.RECORD_RELEASED, row, what)
        async with self._cards.turn:
            row = await self._refused.edit(row_id, edited, event, key=row.key)
            if row.kind == CARD:
                await self._cards.follow(operation, PendingWrite(row.record_id, None, waits=True), edited)
        return replace(row, body=body_text(edited), parked=False, error="")

    async def settle(self, row_id: int, central_id: int | None, *, by: str) -> OutboxRow:
        """Settle a row of unknown outcome: central has the record as `central_id`, or does not have it (None).

        Raises CommandRefused also if central has no record or another one under that id, and while central is offline.
        """
        row = await self._refused.get(row_id)
        if central_id is None:
            event = self._event(EventKind.RECORD_RELEASED, row, text("parked.sent_unseen", who=by))
            row = await self._unknown_outcomes.send_unseen(row_id, event)
        else:
            looked = await self._check(row, central_id)
            what = text(f"parked.found.{'looked' if looked else 'unlooked'}", id=str(central_id), who=by)
            row = await self._unknown_outcomes.take_as(
                row_id, central_id, self._event(EventKind.RECORD_RELEASED, row, what)
            )
        return replace(row, parked=False, error="")

    async def _check(self, row: OutboxRow, central_id: int) -> bool:
        """Raise CommandRefused if central's record of that id cannot be this row's: a digit is easily mistyped.

        Return whether the record could be compared. If the gateway's account may not see it, the person is believed.
        """
        name = f"central's {row.kind} {central_id}"
        if await self._unknown_outcomes.was_here(row.kind, central_id, row.created_at):
            raise CommandRefused(text("refused.another_known_record", record=name))
        operation = WRITES.get((row.kind, row.action))
        if operation is None or operation.lookup is None:
            return False
        answer = await self._record_at_central(row.kind, central_id, name=name)
        record = None if answer is None else answered_record(answer, operation.resources)
        sent = body_object(row.body)
        if record is None or sent is None:
            return False
        sent = (await self._store.references.resolve(sent)).body
        if match_record(operation.lookup, sent, record, newer=None) is RecordMatch.OTHER:
            raise CommandRefused(text("refused.another_record", record=name))
        return True

    async def _record_at_central(self, kind: str, central_id: int, *, name: str) -> JsonObject | None:
        """Return central's answer with the record; None if the gateway's account may not see it.

        Raises CommandRefused if central has no such record, or cannot be asked now.
        """
        path = READS.get(kind)
        if self._client is None or path is None:
            return None
        try:
            return await self._client.call("POST", path, {"id": central_id})
        except CentralDenied as error:
            if not error.status:
                raise CommandRefused(text("refused.record_hidden", record=name, why=str(error))) from error
            return None
        except CentralUnavailable as error:
            raise CommandRefused(text("refused.record_unseen_now", record=name, why=str(error))) from error
        except CentralRefused as error:
            if error.status != NOT_FOUND:
                return None
            if (doubtful := await doubt(self._client, error)) is not None:
                raise CommandRefused(text("refused.record_unseen_now", record=name, why=str(doubtful))) from error
            raise CommandRefused(f"central has no {kind} {central_id}") from error

    async def drop(self, row_id: int, *, by: str) -> OutboxRow:
        """Drop a row. The next pull restores central's record; a record that central never had is removed."""
        row = await self._refused.get(row_id)
        event = self._event(EventKind.RECORD_DROPPED, row, text("parked.dropped", who=by))
        async with self._cards.turn:
            row, gone = await self._refused.drop(row_id, event)
            if gone and row.kind == CARD:
                await self._cards.forget(row.record_id)
        return row

    def _event(self, kind: EventKind, row: OutboxRow, what: Text) -> Event:
        stamp = self._clock.wall()
        how = "lost" if row.lost else "begun" if row.begun else "refused"
        return Event(
            kind=kind,
            date_at=stamp.micros,
            clock_trusted=stamp.trusted,
            text=text(f"event.record.{how}", record=record_name(row.kind, row.record_id), action=row.action, done=what),
            data={
                "outbox_id": row.id,
                "kind": row.kind,
                "record_id": row.record_id,
                "refused_because": row.error[:_LONGEST_TEXT],
            },
        )
