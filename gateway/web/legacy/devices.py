"""`/api/v1/devices`: rules, models and handlers."""

from __future__ import annotations

from aiohttp import web

from gateway.domain.errors import CommandRefused, NotFoundError
from gateway.domain.writes import DEVICE_CREATE
from gateway.runtime.clock import iso_utc
from gateway.store import KnownRecord
from gateway.web.families import Family, operation
from gateway.web.http.bodies import Body
from gateway.web.legacy.answers import (
    LegacyAnswer,
    Line,
    PageQuery,
    Word,
    number_of,
)
from gateway.web.operation import VIEW_DEVICES, needs
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


class LegacyDevices(Family):
    """The handlers of `/api/v1/devices`. A registered device is central's: the gateway drives only the site file's."""

    @operation("GET", "/api/v1/devices", VIEW_DEVICES, purpose="Every device")
    async def _list(self, wanted: PageQuery) -> LegacyDeviceList:
        known, total, _older = await self.context.store.devices.page(offset=wanted.offset, limit=wanted.limit)
        return LegacyDeviceList(devices=tuple([await self._record(item) for item in known]), total=total)

    @operation(
        "POST", "/api/v1/devices", needs("can_add_devices"), purpose="Register a device with central", status=201
    )
    async def _register(self, wanted: DeviceBody) -> LegacyDevice:
        written = await self.context.writes.write(DEVICE_CREATE, wanted.model_dump(exclude_none=True))
        known = None if written.record_id is None else await self.context.store.devices.get(written.record_id)
        if known is None:
            raise NotFoundError("central took the device, and did not say under which id; it is listed soon")
        await self.context.store.registered_devices.add(known.id)
        return await self._record(known)

    @operation("GET", "/api/v1/devices/{id}", VIEW_DEVICES, purpose="One device")
    async def _get(self, request: web.Request) -> LegacyDevice:
        return await self._record(await self._known(request))

    @operation("DELETE", "/api/v1/devices/{id}", needs("can_edit_devices"), purpose="Remove a device")
    async def _delete(self, request: web.Request) -> LegacyDevice:
        """Remove a device that was registered through this gateway; at a site without central, any registered device.

        The interface's specification has no operation to delete a device at central, so a device that central keeps is
        only hidden at the site.
        """
        known = await self._known(request)
        if known.at_site:
            raise CommandRefused(f"device {known.id} is in the site file; take it out there")
        shown = await self._record(known)
        if self.context.site.central is None:
            await self.context.store.devices.pulled({}, removed=(known.id,), now=0)
        elif not await self.context.store.registered_devices.remove(known.id, now=self.context.clock.wall().micros):
            raise CommandRefused(
                f"device {known.id} was not registered through this gateway; remove it at central, which keeps it"
            )
        return shown

    async def _known(self, request: web.Request) -> KnownRecord:
        number = number_of(request.match_info["id"], "device")
        return await known_device(self.context.store.devices, self.context.store.pending_writes, number)

    async def _record(self, known: KnownRecord) -> LegacyDevice:
        seen = next((item for item in self.context.lanes.devices() if item.device_id == known.id), None)
        record = device_record(known, seen, location=self.context.places.devices.get(known.id, ""))
        return LegacyDevice(
            id=str(known.id),
            name=known.name,
            type=known.kind,
            location=_text(record, "location") or "",
            status=_text(record, "status") or "unknown",
            created_at=_text(record, "created_at")
            or iso_utc(await self.context.store.registered_devices.since(known.id)),
            serial_number=_text(record, "serial_number"),
        )


def _text(record: Record, name: str) -> str | None:
    value = record.get(name)
    return value if isinstance(value, str) and value else None
