"""Devices: read, written, and gates commanded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from aiohttp import web

from gateway.domain.commands import GateAction
from gateway.domain.errors import NotFoundError, StoreError
from gateway.domain.writes import DEVICE_CONFIG as WRITE_CONFIG
from gateway.domain.writes import DEVICE_CREATE as WRITE_CREATE
from gateway.domain.writes import JsonObject, RecordWriter, WaitingWrite
from gateway.lanes import Lanes
from gateway.site.models import Site
from gateway.store import KnownRecord, Store
from gateway.web.auth.admission import Route
from gateway.web.auth.sessions import Caller
from gateway.web.catalogue.devices import (
    DEVICE,
    DEVICE_CLOSE,
    DEVICE_CONFIG,
    DEVICE_LIST,
    DEVICE_OPEN,
    DEVICE_PUT,
)
from gateway.web.http.bodies import ById, Cursored, read_body, read_change, read_new
from gateway.web.http.envelope import success, success_listed
from gateway.web.http.errors import RequestRefused
from gateway.web.shapes.devices import DeviceConfigBody, NewDeviceBody
from gateway.web.v1.records import Record, command_record, device_record, standing_with_central

_KIND = "device"
_OF_THE_SITE_FILE = ("name", "type", "location")


class Devices:
    """`/v1/device`. A device's location is the lane that has it."""

    def __init__(self, *, site: Site, store: Store, lanes: Lanes, writes: RecordWriter) -> None:
        self._store = store
        self._writes = writes
        self._lanes = lanes
        self._locations: Mapping[int, str] = dict(_locations(site))

    def routes(self) -> tuple[Route, ...]:
        """The operations of this family."""
        return (
            Route(DEVICE_LIST, self._list),
            Route(DEVICE, self._get),
            Route(DEVICE_PUT, self._create),
            Route(DEVICE_CONFIG, self._config),
            Route(DEVICE_OPEN, self._open),
            Route(DEVICE_CLOSE, self._close),
        )

    async def _list(self, request: web.Request, _: Caller) -> web.StreamResponse:
        wanted = await read_body(request, Cursored)
        known, count, _older = await self._store.devices.page(
            search=wanted.search, before=wanted.cursor_id, offset=wanted.offset, limit=wanted.limit
        )
        cursor = {"next_cursor": known[-1].id} if known else {}
        waiting = (await self._store.held.arriving(_KIND, [item.id for item in known])).waiting
        devices = (self._record(item, waiting.get(item.id, ())) for item in known)
        return await success_listed(request, "devices", devices, count=count, **cursor)

    async def _get(self, request: web.Request, _: Caller) -> web.StreamResponse:
        wanted = await read_body(request, ById)
        return success(device=await self._shown(await self._known(wanted.id)))

    async def _create(self, request: web.Request, _: Caller) -> web.StreamResponse:
        """A device of central's. This gateway does not handle it: what it handles is in the site file."""
        _wanted, body = await read_new(request, NewDeviceBody)
        written = await self._writes.write(WRITE_CREATE, body)
        known = None if written.record_id is None else await self._store.devices.get(written.record_id)
        return success(device=written.record if known is None else await self._shown(known))

    async def _config(self, request: web.Request, _: Caller) -> web.StreamResponse:
        change = await read_change(request, DeviceConfigBody)
        known = await self._known(change.id)
        _wanted, body = change.to(self._record(known), DeviceConfigBody)
        await self._writes.write(WRITE_CONFIG, {**self._without_the_site_files(known, body), "id": known.id})
        return success(device=await self._shown(await self._known(known.id)))

    def _without_the_site_files(self, known: KnownRecord, body: JsonObject) -> JsonObject:
        """The body without what the site file says, which is not central's to know.

        Raises RequestRefused (409) for a field that would change it.
        """
        if not known.at_site:
            return body
        shown = self._record(known)
        for name in _OF_THE_SITE_FILE:
            if name in body and body[name] != shown[name]:
                raise RequestRefused(409, f"{name}: the site file says what it is for device {known.id}")
        return {name: value for name, value in body.items() if name not in _OF_THE_SITE_FILE}

    async def _open(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        return await self._command(request, caller, GateAction.OPEN)

    async def _close(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        return await self._command(request, caller, GateAction.CLOSE)

    async def _command(self, request: web.Request, caller: Caller, action: GateAction) -> web.StreamResponse:
        """Success means recorded, unless `recorded` says no: a disk that refuses keeps nobody from commanding a gate.

        Whether the gate moves is told by its position and by events.
        """
        wanted = await read_body(request, ById)
        command = await self._lanes.command(device_id=wanted.id, action=action, source=f"user:{caller.username}")
        try:
            known = await self._store.devices.get(wanted.id)
        except StoreError:  # the gate is told already
            known = None
        return success(
            device=self._record(known) if known else {"id": wanted.id},
            command=command_record(command),
        )

    async def _known(self, device_id: int) -> KnownRecord:
        known = await self._store.devices.get(await self._store.held.site_id(_KIND, device_id))
        if known is None:
            raise NotFoundError(f"there is no device {device_id}")
        return known

    async def _shown(self, known: KnownRecord) -> Record:
        return self._record(known, await self._store.held.waiting(_KIND, known.id))

    def _record(self, known: KnownRecord, waiting: tuple[WaitingWrite, ...] = ()) -> Record:
        seen = next((item for item in self._lanes.devices() if item.device_id == known.id), None)
        shown = device_record(known, seen, location=self._locations.get(known.id, ""))
        return {**shown, **standing_with_central(waiting)}


def _locations(site: Site) -> Iterator[tuple[int, str]]:
    for lane in site.lanes:
        points = (lane.arming, lane.closing, *lane.safety)
        for device_id in (*(point.device for point in points), *lane.readers, lane.gate):
            yield device_id, lane.name
