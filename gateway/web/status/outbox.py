"""The outbox for the page and the command: rows that wait for central, and actions on rows that central refused.

Synchronisation shows its state, and refreshes or compares when a technician asks for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

from pydantic import BaseModel, Field

from gateway.runtime.clock import iso_utc
from gateway.store import OutboxRow
from gateway.store.outbox.rows import body_object
from gateway.texts import text
from gateway.web.answers import BooksAnswer, SyncAnswer, WaitingReason, WaitingRow, WaitingRowAnswer, WaitingRows
from gateway.web.auth.callers import Caller
from gateway.web.context import Central
from gateway.web.families import Family, operation
from gateway.web.http.bodies import LARGEST_RECORD, Body, ById, Fields, Id, validated
from gateway.web.http.errors import RequestRefused
from gateway.web.operation import EDIT_SETTINGS
from gateway.web.operations.camera_events import ChangedCameraEvent, NewCameraEvent
from gateway.web.operations.cameras import ChangedCamera, NewCamera
from gateway.web.operations.cards import CardBody, LifecycleBody, NewCardBody
from gateway.web.operations.devices import DeviceConfigBody, NewDeviceBody
from gateway.web.operations.entries import ChangedEntry, NewEntry
from gateway.web.status.snapshot import outbox_books

_MODELS: Mapping[tuple[str, str], type[BaseModel]] = MappingProxyType(
    {
        ("access_card", "create"): NewCardBody,
        ("access_card", "update"): CardBody,
        ("access_card", "lifecycle"): LifecycleBody,
        ("device", "create"): NewDeviceBody,
        ("device", "config"): DeviceConfigBody,
        ("camera", "create"): NewCamera,
        ("camera", "update"): ChangedCamera,
        ("camera_event", "create"): NewCameraEvent,
        ("camera_event", "update"): ChangedCameraEvent,
        ("entry", "create"): NewEntry,
        ("entry", "update"): ChangedEntry,
    }
)
"""The body model of each kind and action of a row."""


class WantedRows(Body):
    """Rows with numbers above `after`, oldest first; only those that central refused, unless `all` is true.

    `id` asks for one row instead.
    """

    after: Id = 0
    limit: Annotated[int, Field(strict=True, ge=1, le=500)] = 100
    all: Annotated[bool, Field(strict=True)] = False
    id: Id | None = None


class EditedRow(Body):
    """Fields that replace those of a refused row; null removes a field."""

    id: Id
    fields: Fields


class SettledRow(Body):
    """A person's answer for a row of unknown outcome: central's id for it, or `not_there`.

    Exactly one of the two is needed: a missing id alone would not tell a decision from an error.
    """

    id: Id
    central_id: Annotated[Id, Field(ge=1)] | None = None
    not_there: Annotated[bool, Field(strict=True)] = False


class StatusOutbox(Family):
    """The handlers of `/status/outbox/…`."""

    @operation("POST", "/status/outbox/list", EDIT_SETTINGS, "waiting", reads=True)
    async def _list(self, wanted: WantedRows) -> WaitingRows:
        if wanted.id is not None:
            return WaitingRows(waiting=(waiting_row(await self.context.store.refused.get(wanted.id)),), next=None)
        rows = await self.context.store.refused.page(after=wanted.after, limit=wanted.limit, refused=not wanted.all)
        following = rows[-1].id if len(rows) == wanted.limit else None
        return WaitingRows(waiting=tuple(map(waiting_row, rows)), next=following)

    @operation("POST", "/status/outbox/books", EDIT_SETTINGS, "books", reads=True)
    async def _books(self, _: Body) -> BooksAnswer:
        reasons = [
            WaitingReason(kind=one.kind, action=one.action, error=one.error, count=one.count, since=iso_utc(one.since))
            for one in await self.context.store.refused.reasons()
        ]
        return BooksAnswer(books=outbox_books(await self.context.store.outbox.books()), reasons=tuple(reasons))

    @operation("POST", "/status/outbox/retry", EDIT_SETTINGS, "waiting")
    async def _retry(self, wanted: ById, caller: Caller) -> WaitingRowAnswer:
        return WaitingRowAnswer(waiting=waiting_row(await self.context.outbox.retry(wanted.id, by=caller.username)))

    @operation("POST", "/status/outbox/edit", EDIT_SETTINGS, "waiting")
    async def _edit(self, wanted: EditedRow, caller: Caller) -> WaitingRowAnswer:
        if not wanted.fields.keys() - {"id"}:
            raise RequestRefused(400, "fields: names none to change")
        fields = judged(await self.context.store.refused.get(wanted.id), wanted.fields)
        return WaitingRowAnswer(
            waiting=waiting_row(await self.context.outbox.edit(wanted.id, fields, by=caller.username))
        )

    @operation("POST", "/status/outbox/settle", EDIT_SETTINGS, "waiting")
    async def _settle(self, wanted: SettledRow, caller: Caller) -> WaitingRowAnswer:
        if (wanted.central_id is None) is not wanted.not_there:
            raise RequestRefused(400, "either 'central_id' or 'not_there' is needed")
        row = await self.context.outbox.settle(wanted.id, wanted.central_id, by=caller.username)
        return WaitingRowAnswer(waiting=waiting_row(row))

    @operation("POST", "/status/outbox/drop", EDIT_SETTINGS, "waiting")
    async def _drop(self, wanted: ById, caller: Caller) -> WaitingRowAnswer:
        return WaitingRowAnswer(waiting=waiting_row(await self.context.outbox.drop(wanted.id, by=caller.username)))


def judged(row: OutboxRow, fields: Fields) -> Fields:
    """Validate the fields that are to replace those of a row; return them in the form of the row's operation.

    A number is accepted where the operation needs text, and becomes that text. Raises RequestRefused with the first
    error.
    """
    model = _MODELS.get((row.kind, row.action))
    if model is None:
        return fields  # the action itself refuses rows that cannot be edited
    body = body_object(row.body) or {}
    known = model.model_fields
    for name, value in fields.items():
        if name not in known and name != "id" and value is not None:
            raise RequestRefused(400, f"{name}: is no field of this")
    needed = {name: body[name] for name, field in known.items() if field.is_required() and name in body}
    whole = {**needed, "id": row.record_id}
    changed: Fields = {}
    for name, value in fields.items():
        if name == "id" or value is None:
            continue
        try:
            validated({**whole, name: value}, model)
        except RequestRefused:
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise
            changed[name] = json.dumps(value)
        else:
            changed[name] = value
    taken = validated({**whole, **changed}, model).model_dump(mode="json", include=set(changed))
    if len(json.dumps({**body, **taken}, ensure_ascii=False).encode()) > LARGEST_RECORD:
        raise RequestRefused(400, f"fields: a record has at most {LARGEST_RECORD // 1024} KiB")
    return {**taken, **{name: None for name, value in fields.items() if value is None and name != "id"}}


def waiting_row(row: OutboxRow) -> WaitingRow:
    """Return a row for the page and the command, with a PIN masked."""
    body = body_object(row.body) or {}
    return WaitingRow(
        id=row.id,
        kind=row.kind,
        action=row.action,
        record_id=row.record_id,
        since=iso_utc(row.created_at),
        tries=row.tries,
        refused=row.parked,
        unknown=row.parked and row.begun,
        lost=row.lost,
        error=row.error,
        fields={name: "****" if name == "pin" else value for name, value in body.items() if name != "id"},
    )


class ReconcileDays(Body):
    """The number of past days whose records are to be compared."""

    days: Annotated[int, Field(strict=True, ge=1, le=400)] = 30


class StatusSync(Family):
    """The handlers of `/status/sync`, `/status/sync/refresh` and `/status/sync/reconcile`."""

    @operation("POST", "/status/sync", EDIT_SETTINGS, "sync", reads=True)
    async def _state(self, _: Body) -> SyncAnswer:
        return SyncAnswer(sync=self._known().snapshot())

    @operation("POST", "/status/sync/refresh", EDIT_SETTINGS, "sync")
    async def _refresh(self, _: Body, caller: Caller) -> SyncAnswer:
        """Request a refresh. Success means that it will be done, even after a restart; see `/status/sync`."""
        central = self._known()
        await central.refresh(by=f"user:{caller.username}")
        return SyncAnswer(sync=central.snapshot())

    @operation("POST", "/status/sync/reconcile", EDIT_SETTINGS, "sync")
    async def _reconcile(self, wanted: ReconcileDays, caller: Caller) -> SyncAnswer:
        """Request a comparison. Success means that it will be done, even after a restart; see `/status/sync`."""
        central = self._known()
        await central.reconcile(days=wanted.days, by=f"user:{caller.username}")
        return SyncAnswer(sync=central.snapshot())

    def _known(self) -> Central:
        if self.context.central is None:
            raise RequestRefused(409, text("refused.no_central"))
        return self.context.central
