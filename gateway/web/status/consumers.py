"""Consumers of the site's lists, for the page and the command: their read marks, and the deletion of marks."""

from __future__ import annotations

from typing import Annotated

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from gateway.domain.errors import NotFoundError
from gateway.runtime.clock import Clock, iso_utc
from gateway.store import ReadCursor
from gateway.store.events.read_cursors import ReadCursors
from gateway.web.auth.admission import Route
from gateway.web.auth.callers import Caller
from gateway.web.http.bodies import Body, Text, read_body
from gateway.web.http.envelope import success
from gateway.web.operation import Operation, needs
from gateway.web.read_cursors import Consumers

CONSUMER_LIST = Operation("POST", "/status/consumer/list", needs("can_edit_settings"), "consumers", reads=True)
CONSUMER_FORGET = Operation("POST", "/status/consumer/forget", needs("can_edit_settings"), "consumers")


class ConsumerShown(BaseModel):
    """An account's read mark in a list.

    `unread` is counted up to 10,000. `holds`: records that it has not read are kept for it.
    """

    model_config = ConfigDict(frozen=True)

    account: str
    list: str
    filter: str
    read_to: int
    read_at: str
    unread: int
    holds: bool


class ForgottenConsumer(Body):
    """The account whose marks are to be forgotten."""

    account: Annotated[Text, Field(min_length=1)]


class StatusConsumers:
    """The handlers of `/status/consumer/list` and `/status/consumer/forget`."""

    def __init__(self, *, read_cursors: ReadCursors, consumers: Consumers, clock: Clock, consumer_days: int) -> None:
        self._read_cursors = read_cursors
        self._consumers = consumers
        self._clock = clock
        self._reader_days = consumer_days

    def routes(self) -> tuple[Route, ...]:
        """Return the operations of this family."""
        return (Route(CONSUMER_LIST, self._list), Route(CONSUMER_FORGET, self._forget))

    async def shown(self) -> tuple[ConsumerShown, ...]:
        """Return all consumers, with their marks as they are on disk. Raises StoreError."""
        marks = await self._read_cursors.all()
        unread = await self._read_cursors.unread(marks) if marks else ()
        return tuple(self._shown(mark, count) for mark, count in zip(marks, unread, strict=True))

    async def _list(self, request: web.Request, _: Caller) -> web.StreamResponse:
        await read_body(request, Body)
        return success(consumers=await self.shown())

    async def _forget(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        wanted = await read_body(request, ForgottenConsumer)
        if not await self._consumers.forget(wanted.account, by=caller.username):
            raise NotFoundError(f"{wanted.account} reads no list by cursor")
        return success(consumers=await self.shown())

    def _shown(self, mark: ReadCursor, unread: int) -> ConsumerShown:
        return ConsumerShown(
            account=mark.consumer.account,
            list=mark.consumer.list,
            filter=mark.consumer.filter,
            read_to=mark.read_to,
            read_at=iso_utc(mark.read_at),
            unread=unread,
            holds=mark.holds(now=self._clock.wall().micros, consumer_days=self._reader_days),
        )
