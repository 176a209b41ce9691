"""Devices and commands to gates: rules, models and handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar, Literal

from aiohttp import web
from pydantic import BaseModel, ConfigDict, JsonValue

from gateway.domain.commands import Command, GateAction
from gateway.domain.errors import ConfigError, NotFoundError, StoreError
from gateway.domain.writes import DEVICE_CONFIG as WRITE_CONFIG
from gateway.domain.writes import DEVICE_CREATE as WRITE_CREATE
from gateway.domain.writes import JsonObject, WaitingWrite
from gateway.lanes.snapshots import DeviceSnapshot
from gateway.runtime.clock import iso_utc
from gateway.site.edits import Edit, edited
from gateway.site.running_site import RunningSite
from gateway.store import KnownRecord
from gateway.store.outbox.pending_writes import PendingWrites
from gateway.store.outbox.records import Records
from gateway.texts import text
from gateway.web.answers import Answer, CursorListed, Status
from gateway.web.auth.callers import Caller
from gateway.web.families import Family, operation
from gateway.web.http.bodies import (
    ById,
    Cursored,
    Id,
    Line,
    Number,
    SentChange,
    ShortName,
    Word,
    WriteBody,
    Yes,
)
from gateway.web.http.dates import refuse_late
from gateway.web.http.errors import RequestRefused, success, success_listed
from gateway.web.operation import CONTROL_DEVICES, VIEW_DEVICES, needs
from gateway.web.operations.records import Record, central_record, sync_state, text_of


class DeviceFields(WriteBody):
    """The fields of a device that can be written; others are ignored. null empties a text."""

    null_means: ClassVar[Mapping[str, JsonValue]] = MappingProxyType(
        {"location": "", "description": "", "serial_number": ""}
    )

    name: ShortName | None = None
    type: Number | Word | None = None
    location: Line | None = None
    description: Line | None = None
    serial_number: Word | None = None
    enabled: Yes | None = None


class NewDeviceBody(DeviceFields):
    """A device to be created."""

    name: ShortName


class DeviceConfigBody(DeviceFields):
    """Changed fields of a device."""

    id: Id


class DeviceRecord(BaseModel):
    """A device: central's record, overlaid by the site's own fields.

    `sync` says whether central has the same as the site; with `refused`, central's reason is in `sync_error`.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    id: int | None
    name: str
    type: str | int = ""
    at_site: bool = False
    location: str = ""
    status: str = ""
    position: str | None = None
    sync: Literal["in_step", "waiting", "refused"] = "in_step"


class CommandRecord(BaseModel):
    """A command to a gate, in its state when the request is answered."""

    model_config = ConfigDict(frozen=True)

    id: str
    action: str
    state: str
    recorded: bool
    requested_at: str
    deadline_at: str


class DeviceAnswer(Answer):
    """One device."""

    device: DeviceRecord


class CommandedDevice(BaseModel):
    """The device that was commanded; only its id when the disk does not answer."""

    model_config = ConfigDict(frozen=True, extra="allow")

    id: int


class CommandAnswer(Answer):
    """The command was recorded. That does not prove that the gate moved."""

    device: CommandedDevice
    command: CommandRecord


class DevicesAnswer(CursorListed):
    """Devices, newest first."""

    devices: tuple[DeviceRecord, ...]


_KIND = "device"
_OF_THE_SITE_FILE = ("name", "type", "location")


class Devices(Family):
    """The handlers of `/v1/device`. A device of the site has the name of its first lane as `location`."""

    @operation(
        "POST", "/v1/device/list", VIEW_DEVICES, "devices", purpose="List devices", answer=DevicesAnswer, reads=True
    )
    async def _list(self, wanted: Cursored, request: web.Request) -> web.StreamResponse:
        known, count, _older = await self.context.store.devices.page(
            search=wanted.search, before=wanted.cursor_id, offset=wanted.offset, limit=wanted.limit
        )
        cursor = {"next_cursor": known[-1].id} if known else {}
        waiting = (await self.context.store.pending_writes.arriving(_KIND, [item.id for item in known])).waiting
        devices = (self._record(item, waiting.get(item.id, ())) for item in known)
        return await success_listed(request, "devices", devices, count=count, **cursor)

    @operation(
        "POST", "/v1/device", VIEW_DEVICES, "device", purpose="One device by its id", answer=DeviceAnswer, reads=True
    )
    async def _get(self, wanted: ById) -> web.StreamResponse:
        return success(device=await self._shown(await self._known(wanted.id)))

    @operation("PUT", "/v1/device", needs("can_add_devices"), "device", purpose="Create a device", answer=DeviceAnswer)
    async def _create(self, wanted: NewDeviceBody) -> web.StreamResponse:
        """Add a device at central. The gateway does not drive it: it drives only the devices of the site file."""
        written = await self.context.writes.write(WRITE_CREATE, wanted.fields)
        known = None if written.record_id is None else await self.context.store.devices.get(written.record_id)
        return success(device=written.record if known is None else await self._shown(known))

    @operation(
        "PATCH",
        "/v1/device/config",
        needs("can_edit_devices"),
        "device",
        purpose="Set up a device",
        answer=DeviceAnswer,
    )
    async def _config(self, change: SentChange[DeviceConfigBody], caller: Caller) -> web.StreamResponse:
        """Change a device. The name of a device of the site is changed in the site file, which is then reloaded."""
        known = await self._known(change.id)
        body = change.to(self._record(known)).fields
        name = body.get("name")
        if known.at_site and self.context.site_file is not None and isinstance(name, str) and name != known.name:
            self._without_the_site_files(known, {key: value for key, value in body.items() if key != "name"})
            await self._rename(self.context.site_file, known.id, name, by=f"user:{caller.username}")
            known = replace(known, name=name)
        await self.context.writes.write(WRITE_CONFIG, {**self._without_the_site_files(known, body), "id": known.id})
        shown = await self._shown(await self._known(known.id))
        return success(device={**shown, "name": known.name} if known.at_site else shown)

    async def _rename(self, site_file: RunningSite, device_id: int, name: str, *, by: str) -> None:
        """Write the name into the site file and reload it. Raises RequestRefused (409) when that is refused.

        What somebody has edited in the file meanwhile is theirs to reload.
        """
        try:
            content = await asyncio.to_thread(site_file.path.read_bytes)
            pending = await site_file.compare(content)
            if pending.faults or pending.changes:
                raise RequestRefused(409, text("refused.site_file_not_in_force"))
            done = await site_file.reload(
                by=by, text=edited(content, [Edit("devices", str(device_id), {"name": name})])
            )
        except OSError as error:
            raise RequestRefused(409, text("refused.site_file_unreadable", why=str(error.strerror))) from error
        except ConfigError as error:
            raise RequestRefused(409, error.words) from error
        if not done.is_taken:
            raise RequestRefused(409, "; ".join((*done.faults, *done.refused)))

    def _without_the_site_files(self, known: KnownRecord, body: JsonObject) -> JsonObject:
        """Return the body without the fields that the site file defines, which are not sent to central.

        Raises RequestRefused (409) if one of them would change.
        """
        if not known.at_site:
            return body
        shown = self._record(known)
        for name in _OF_THE_SITE_FILE:
            if name in body and body[name] != shown[name]:
                raise RequestRefused(409, text("refused.field_of_site_file", field=name, device=str(known.id)))
        return {name: value for name, value in body.items() if name not in _OF_THE_SITE_FILE}

    @operation("POST", "/v1/device/open", CONTROL_DEVICES, "device", purpose="Open a gate")
    async def _open(self, wanted: ById, request: web.Request, caller: Caller) -> CommandAnswer:
        return await self._command(wanted.id, GateAction.OPEN, request, caller)

    @operation("POST", "/v1/device/close", CONTROL_DEVICES, "device", purpose="Close a gate")
    async def _close(self, wanted: ById, request: web.Request, caller: Caller) -> CommandAnswer:
        return await self._command(wanted.id, GateAction.CLOSE, request, caller)

    async def _command(self, device_id: int, action: GateAction, request: web.Request, caller: Caller) -> CommandAnswer:
        """Command a gate. Success means that the command was given, not that the gate moved.

        A failing disk does not prevent a command; `recorded` is false then. The gate's position and the events show
        whether it moves.
        """
        refuse_late(request, self.context.clock)
        command = await self.context.lanes.command(device_id=device_id, action=action, source=f"user:{caller.username}")
        try:
            known = await self.context.store.devices.get(device_id)
        except StoreError:  # the gate has its command already
            known = None
        device: Record = self._record(known) if known else {"id": device_id}
        return CommandAnswer(device=CommandedDevice.model_validate(device), command=command_record(command))

    async def _known(self, device_id: int) -> KnownRecord:
        return await known_device(self.context.store.devices, self.context.store.pending_writes, device_id)

    async def _shown(self, known: KnownRecord) -> Record:
        return self._record(known, await self.context.store.pending_writes.waiting(_KIND, known.id))

    def _record(self, known: KnownRecord, waiting: tuple[WaitingWrite, ...] = ()) -> Record:
        snapshot = next((item for item in self.context.lanes.devices() if item.device_id == known.id), None)
        shown = device_record(known, snapshot, location=self.context.places.devices.get(known.id, ""))
        return {**shown, **sync_state(waiting)}


async def known_device(devices: Records, pending_writes: PendingWrites, device_id: int) -> KnownRecord:
    """Return a device by its id, or by the provisional id that it had before. Raises NotFoundError."""
    known = await devices.get(await pending_writes.site_id(_KIND, device_id))
    if known is None:
        raise NotFoundError(text("refused.device_unknown", device=str(device_id)))
    return known


def device_record(known: KnownRecord, snapshot: DeviceSnapshot | None, *, location: str) -> Record:
    """Return a device as a record of the interface.

    Args:
        known: its record in the store.
        snapshot: its present state; None for a device of central that this gateway does not drive.
        location: its location from the site file; "" to show central's.
    """
    central = central_record(known)
    kind = central.get("type")
    its_own = kind if isinstance(kind, str | int) and not known.at_site else known.kind
    record: Record = {**central, "id": known.id, "name": known.name, "type": its_own, "at_site": known.at_site}
    record["location"] = location or text_of(central, "location")
    if snapshot is None:
        record["status"] = text_of(central, "status") or "unknown"
        record["position"] = None
    else:
        record["status"] = status_of(online=snapshot.online)
        record["position"] = snapshot.position.value if snapshot.position else None
        record["status_since"] = iso_utc(snapshot.since)
        record["status_detail"] = snapshot.detail
    return record


def command_record(command: Command) -> CommandRecord:
    """Return a command as a record of the interface."""
    return CommandRecord(
        id=command.command_id,
        action=command.action.value,
        state=command.state.value,
        recorded=command.recorded,
        requested_at=iso_utc(command.requested_at),
        deadline_at=iso_utc(command.deadline_at),
    )


def status_of(*, online: bool | None) -> Status:
    """Return the interface's status word; `online` is None while it is unknown whether the device answers."""
    return "unknown" if online is None else "online" if online else "offline"
