"""`/api/v1/access`: grants, and the single opening of a gate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from aiohttp import web
from pydantic import field_validator

from gateway.domain.commands import GateAction
from gateway.domain.durations import length_of
from gateway.domain.errors import CommandRefused, NotFoundError
from gateway.domain.grants import Grant
from gateway.lanes import Lanes
from gateway.lanes.grants import SiteGrants
from gateway.runtime.clock import iso_utc
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


class GrantBody(Body):
    """A user who may pass the lane of a device. `duration`: hours (default 24), `90 minutes`, `P1D`, or `permanent`."""

    user_id: Word
    device_id: Word
    duration: Line = "24"

    @field_validator("user_id")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be blank")
        return value.strip()

    @field_validator("duration")
    @classmethod
    def _length(cls, value: str) -> str:
        length_of(value)
        return value

    @property
    def length(self) -> int | None:
        """The grant's length in microseconds; None for a permanent one."""
        return length_of(self.duration)


class AccessIdBody(Body):
    """A grant by its code."""

    access_id: Word


class UnlockBody(Body):
    """A gate to open once, named by its own id or that of any device of its lane."""

    device_id: Word


class GrantAnswer(LegacyAnswer):
    """A grant. `expires_at` is null for a permanent one; `grant` is its number in events."""

    status: Literal["active", "revoked"]
    access_id: str
    expires_at: str | None


class PermissionRecord(GrantAnswer):
    """A valid grant."""

    user_id: str
    device_id: str
    location: str
    granted_at: str
    granted_by: str
    grant: int


class PermissionsAnswer(LegacyAnswer):
    """The valid grants, newest first."""

    permissions: tuple[PermissionRecord, ...]
    total: int


class RevokedAnswer(LegacyAnswer):
    """The grant is revoked, and opens no gate from now on."""

    status: Literal["revoked"]
    access_id: str


class UnlockAnswer(LegacyAnswer):
    """The command was given. `recorded` is false if the disk could not record it; it is carried out all the same."""

    status: Literal["accepted"]
    command_id: str
    device_id: str
    recorded: bool
    requested_at: str
    expires_at: str


ACCESS_GRANT = Operation(
    "POST",
    "/api/v1/access/grant",
    needs("can_add_access_cards", "can_add_guests"),
    purpose="Let a user pass a lane for a while, or for good",
    body=GrantBody,
    answer=GrantAnswer,
)
ACCESS_REVOKE = Operation(
    "POST",
    "/api/v1/access/revoke",
    needs("can_delete_access_cards", "can_delete_guests"),
    purpose="End a grant at once",
    body=AccessIdBody,
    answer=RevokedAnswer,
)
ACCESS_PERMISSIONS = Operation(
    "GET",
    "/api/v1/access/permissions",
    needs("can_view_access_cards", "can_view_guests"),
    purpose="Grants that stand",
    query=PageQuery,
    answer=PermissionsAnswer,
)
ACCESS_UNLOCK = Operation(
    "POST",
    "/api/v1/access/unlock",
    needs("can_control_devices"),
    purpose="Open a gate once",
    body=UnlockBody,
    answer=UnlockAnswer,
)


@dataclass(frozen=True, kw_only=True)
class LegacyAccess:
    """The handlers of `/api/v1/access`."""

    granting: SiteGrants
    lanes: Lanes

    def routes(self) -> tuple[Route, ...]:
        """Return the operations of this family."""
        return (
            Route(ACCESS_GRANT, self._grant),
            Route(ACCESS_REVOKE, self._revoke),
            Route(ACCESS_PERMISSIONS, self._permissions),
            Route(ACCESS_UNLOCK, self._unlock),
        )

    async def _grant(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        wanted = await read_body(request, GrantBody)
        grant = await self.granting.give(
            user_id=wanted.user_id,
            device_id=number_of(wanted.device_id, "device"),
            length=wanted.length,
            by=caller.username,
        )
        return to_response(GrantAnswer(status="active", access_id=grant.access_id, expires_at=_ends(grant)))

    async def _revoke(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        wanted = await read_body(request, AccessIdBody)
        await self.granting.revoke(wanted.access_id, by=caller.username)
        return to_response(RevokedAnswer(status="revoked", access_id=wanted.access_id))

    async def _permissions(self, request: web.Request, _: Caller) -> web.StreamResponse:
        wanted, grants = read_query(request, PageQuery), self.granting.current()
        part = grants[wanted.offset : wanted.offset + wanted.limit]
        return to_response(PermissionsAnswer(permissions=tuple(map(self._record, part)), total=len(grants)))

    async def _unlock(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        """Open a gate once. The command has a deadline as any other; a refusal says why."""
        wanted = await read_body(request, UnlockBody)
        gate = self.granting.lane_of(number_of(wanted.device_id, "device")).gate
        command = await self.lanes.command(device_id=gate, action=GateAction.OPEN, source=f"user:{caller.username}")
        return to_response(
            UnlockAnswer(
                status="accepted",
                command_id=command.command_id,
                device_id=str(gate),
                recorded=command.recorded,
                requested_at=iso_utc(command.requested_at),
                expires_at=iso_utc(command.deadline_at),
            )
        )

    def _record(self, grant: Grant) -> PermissionRecord:
        try:
            location = self.granting.lane_of(grant.device_id).name
        except (NotFoundError, CommandRefused):  # the device is no longer in the site file, or has no lane
            location = grant.lane_id
        return PermissionRecord(
            status="active",
            access_id=grant.access_id,
            expires_at=_ends(grant),
            user_id=grant.user_id,
            device_id=str(grant.device_id),
            location=location,
            granted_at=iso_utc(grant.given_at),
            granted_by=grant.given_by,
            grant=grant.number,
        )


def _ends(grant: Grant) -> str | None:
    return None if grant.valid_until is None else iso_utc(grant.valid_until)
