"""`/api/v1/devices`: rules, models and handlers."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import web

from gateway.domain.announcements import Places
from gateway.domain.errors import CommandRefused, NotFoundError
from gateway.domain.writes import DEVICE_CREATE, RecordWriter
from gateway.lanes import Lanes
from gateway.runtime.clock import Clock, iso_utc
from gateway.store import KnownRecord
from gateway.store.outbox.pending_writes import PendingWrites
from gateway.store.outbox.records import Records
from gateway.store.outbox.registered_devices import RegisteredDevices
from gateway.web.auth.admission import Route
from gateway.web.auth.callers import Caller
from gateway.web.http.bodies import Body, read_body, read_query
from gateway.web.legacy.answers import (
    LegacyAnswer,
    Line,
    PageQuery,
    Word,
    number_of,
    to_response,
)
from gateway.web.operation import Operation, needs
from gateway.web.operations.devices import device_record, known_device
from gateway.web.operations.records import Record


class DeviceBody(Body):
    """A device to register with central."""

    name: Word
    type: Word
    location: Line | None = None
    serial_number: Line | None = None


class LegacyDevice(LegacyAnswer):
    """A device. Without central's values, `created_at` is when the site first knew it, and `serial_number` is null."""

    id: str
    name: str
    type: str
    location: str
    status: str
    created_at: str
    serial_number: str | None


class LegacyDeviceList(LegacyAnswer):
    """Every device."""

    devices: tuple[LegacyDevice, ...]
    total: int


DEVICES = Operation(
    "GET",
    "/api/v1/devices",
    needs("can_view_devices"),
    purpose="Every device",
    query=PageQuery,
    answer=LegacyDeviceList,
)
DEVICE_REGISTER = Operation(
    "POST",
    "/api/v1/devices",
    needs("can_add_devices"),
    purpose="Register a device with central",
    body=DeviceBody,
    answer=LegacyDevice,
    status=201,
)
DEVICE = Operation("GET", "/api/v1/devices/{id}", needs("can_view_devices"), purpose="One device", answer=LegacyDevice)
DEVICE_DELETE = Operation(
    "DELETE", "/api/v1/devices/{id}", needs("can_edit_devices"), purpose="Remove a device", answer=LegacyDevice
)


@dataclass(frozen=True, kw_only=True)
class LegacyDevices:
    """The handlers of `/api/v1/devices`. A registered device is central's: the gateway drives only the site file's.

    Attributes:
        stands_alone: True for a site without central.
    """

    devices: Records
    pending_writes: PendingWrites
    registered_devices: RegisteredDevices
    lanes: Lanes
    writes: RecordWriter
    clock: Clock
    places: Places
    stands_alone: bool

    def routes(self) -> tuple[Route, ...]:
        """Return the operations of this family."""
        return (
            Route(DEVICES, self._list),
            Route(DEVICE_REGISTER, self._register),
            Route(DEVICE, self._get),
            Route(DEVICE_DELETE, self._delete),
        )

    async def _list(self, request: web.Request, _: Caller) -> web.StreamResponse:
        wanted = read_query(request, PageQuery)
        known, total, _older = await self.devices.page(offset=wanted.offset, limit=wanted.limit)
        return to_response(LegacyDeviceList(devices=tuple([await self._record(item) for item in known]), total=total))

    async def _register(self, request: web.Request, _: Caller) -> web.StreamResponse:
        wanted = await read_body(request, DeviceBody)
        written = await self.writes.write(DEVICE_CREATE, wanted.model_dump(exclude_none=True))
        known = None if written.record_id is None else await self.devices.get(written.record_id)
        if known is None:
            raise NotFoundError("central took the device, and did not say under which id; it is listed soon")
        await self.registered_devices.add(known.id)
        return to_response(await self._record(known), status=201)

    async def _get(self, request: web.Request, _: Caller) -> web.StreamResponse:
        return to_response(await self._record(await self._known(request)))

    async def _delete(self, request: web.Request, _: Caller) -> web.StreamResponse:
        """Remove a device that was registered through this gateway; at a site without central, any registered device.

        The interface's specification has no operation to delete a device at central, so a device that central keeps is
        only hidden at the site.
        """
        known = await self._known(request)
        if known.at_site:
            raise CommandRefused(f"device {known.id} is in the site file; take it out there")
        shown = await self._record(known)
        if self.stands_alone:
            await self.devices.pulled((), removed=(known.id,), now=0)
        elif not await self.registered_devices.remove(known.id, now=self.clock.wall().micros):
            raise CommandRefused(
                f"device {known.id} was not registered through this gateway; remove it at central, which keeps it"
            )
        return to_response(shown)

    async def _known(self, request: web.Request) -> KnownRecord:
        number = number_of(request.match_info["id"], "device")
        return await known_device(self.devices, self.pending_writes, number)

    async def _record(self, known: KnownRecord) -> LegacyDevice:
        seen = next((item for item in self.lanes.devices() if item.device_id == known.id), None)
        record = device_record(known, seen, location=self.places.devices.get(known.id, ""))
        return LegacyDevice(
            id=str(known.id),
            name=known.name,
            type=known.kind,
            location=_text(record, "location") or "",
            status=_text(record, "status") or "unknown",
            created_at=_text(record, "created_at") or iso_utc(await self.registered_devices.since(known.id)),
            serial_number=_text(record, "serial_number"),
        )


def _text(record: Record, name: str) -> str | None:
    value = record.get(name)
    return value if isinstance(value, str) and value else None
