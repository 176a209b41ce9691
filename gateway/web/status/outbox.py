"""What waits for central, and what people do with what central refused: look, send again, edit, let go."""

from __future__ import annotations

from typing import Annotated

from aiohttp import web
from pydantic import Field

from gateway.clock import iso_utc
from gateway.store import OutboxRow
from gateway.store.outbox_rows import body_object
from gateway.web.admission import Route
from gateway.web.bodies import Body, ById, Fields, Id, read_body
from gateway.web.catalogue.page import OUTBOX_DROP, OUTBOX_EDIT, OUTBOX_LIST, OUTBOX_RETRY
from gateway.web.envelope import success
from gateway.web.errors import RequestRefused
from gateway.web.rooms import OutboxDesk
from gateway.web.sessions import Caller


class WantedRows(Body):
    """Rows above the number `after`, oldest first; without `all` only those that central refused."""

    after: Id = 0
    limit: Annotated[int, Field(strict=True, ge=1, le=500)] = 100
    all: Annotated[bool, Field(strict=True)] = False
    id: Id | None = None


class EditedRow(Body):
    """Fields that replace those of a refused row; null takes a field out."""

    id: Id
    fields: Fields


class StatusOutbox:
    """`/status/outbox/…`."""

    def __init__(self, *, desk: OutboxDesk) -> None:
        self._desk = desk

    def routes(self) -> tuple[Route, ...]:
        """The operations of this family."""
        return (
            Route(OUTBOX_LIST, self._list),
            Route(OUTBOX_RETRY, self._retry),
            Route(OUTBOX_EDIT, self._edit),
            Route(OUTBOX_DROP, self._drop),
        )

    async def _list(self, request: web.Request, _: Caller) -> web.StreamResponse:
        wanted = await read_body(request, WantedRows)
        if wanted.id is not None:
            return success(waiting=[row_told(await self._desk.get(wanted.id))], next=None)
        rows = await self._desk.page(after=wanted.after, limit=wanted.limit, refused=not wanted.all)
        return success(waiting=[row_told(row) for row in rows], next=rows[-1].id if len(rows) == wanted.limit else None)

    async def _retry(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        wanted = await read_body(request, ById)
        return success(waiting=row_told(await self._desk.retry(wanted.id, by=caller.username)))

    async def _edit(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        wanted = await read_body(request, EditedRow)
        if not wanted.fields.keys() - {"id"}:
            raise RequestRefused(400, "fields: names none to change")
        fields = {name: value for name, value in wanted.fields.items() if name != "id"}
        return success(waiting=row_told(await self._desk.edit(wanted.id, fields, by=caller.username)))

    async def _drop(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        wanted = await read_body(request, ById)
        return success(waiting=row_told(await self._desk.drop(wanted.id, by=caller.username)))


def row_told(row: OutboxRow) -> Fields:
    """A row for the page and the command. A PIN that waits is not shown."""
    body = body_object(row.body) or {}
    return {
        "id": row.id,
        "kind": row.kind,
        "action": row.action,
        "record_id": row.record_id,
        "since": iso_utc(row.created_at),
        "tries": row.tries,
        "refused": row.parked,
        "error": row.error,
        "fields": {name: "****" if name == "pin" else value for name, value in body.items() if name != "id"},
    }
