"""Devices: read, and gates commanded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from aiohttp import web

from gateway.domain.commands import GateAction
from gateway.domain.errors import NotFoundError, StoreError
from gateway.lanes.board import Board
from gateway.site.models import Site
from gateway.store import KnownRecord, Store
from gateway.web.admission import Route
from gateway.web.bodies import ById, Cursored, read_body
from gateway.web.catalogue.devices import DEVICE, DEVICE_CLOSE, DEVICE_LIST, DEVICE_OPEN
from gateway.web.envelope import success
from gateway.web.sessions import Caller
from gateway.web.v1.records import Record, command_record, device_record


class Devices:
    """`/v1/device`. A device's location is the lane that has it."""

    def __init__(self, *, site: Site, store: Store, board: Board) -> None:
        self._store = store
        self._board = board
        self._locations: Mapping[int, str] = dict(_locations(site))

    def routes(self) -> tuple[Route, ...]:
        """The operations of this family."""
        return (
            Route(DEVICE_LIST, self._list),
            Route(DEVICE, self._get),
            Route(DEVICE_OPEN, self._open),
            Route(DEVICE_CLOSE, self._close),
        )

    async def _list(self, request: web.Request, _: Caller) -> web.StreamResponse:
        wanted = await read_body(request, Cursored)
        known, count, _older = await self._store.devices.page(
            search=wanted.search, before=wanted.cursor_id, offset=wanted.offset, limit=wanted.limit
        )
        cursor = {"next_cursor": known[-1].id} if known else {}
        return success(devices=[self._record(item) for item in known], count=count, **cursor)

    async def _get(self, request: web.Request, _: Caller) -> web.StreamResponse:
        wanted = await read_body(request, ById)
        return success(device=self._record(await self._known(wanted.id)))

    async def _open(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        return await self._command(request, caller, GateAction.OPEN)

    async def _close(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        return await self._command(request, caller, GateAction.CLOSE)

    async def _command(self, request: web.Request, caller: Caller, action: GateAction) -> web.StreamResponse:
        """Success means recorded, unless `recorded` says no: a disk that refuses keeps nobody from commanding a gate.

        Whether the gate moves is told by its position and by events.
        """
        wanted = await read_body(request, ById)
        command = await self._board.command(device_id=wanted.id, action=action, source=f"user:{caller.username}")
        try:
            known = await self._store.devices.get(wanted.id)
        except StoreError:  # the gate is told already
            known = None
        return success(
            device=self._record(known) if known else {"id": wanted.id},
            command=command_record(command),
        )

    async def _known(self, device_id: int) -> KnownRecord:
        known = await self._store.devices.get(device_id)
        if known is None:
            raise NotFoundError(f"there is no device {device_id}")
        return known

    def _record(self, known: KnownRecord) -> Record:
        seen = next((item for item in self._board.devices() if item.device_id == known.id), None)
        return device_record(known, seen, location=self._locations.get(known.id, ""))


def _locations(site: Site) -> Iterator[tuple[int, str]]:
    for lane in site.lanes:
        points = (lane.arming, lane.closing, *lane.safety)
        for device_id in (*(point.device for point in points), *lane.readers, lane.gate):
            yield device_id, lane.name
