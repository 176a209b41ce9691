"""`/api/v1/access`: grants, and a gate opened once."""

from __future__ import annotations

from aiohttp import web

from gateway.domain.commands import GateAction
from gateway.domain.errors import CommandRefused, NotFoundError
from gateway.domain.grants import Grant
from gateway.lanes import Lanes
from gateway.lanes.grants import Granting
from gateway.runtime.clock import iso_utc
from gateway.web.auth.admission import Route
from gateway.web.auth.sessions import Caller
from gateway.web.catalogue.legacy import ACCESS_GRANT, ACCESS_PERMISSIONS, ACCESS_REVOKE, ACCESS_UNLOCK
from gateway.web.http.bodies import read_body, read_query
from gateway.web.legacy.answers import number_of, told
from gateway.web.shapes.legacy import (
    AccessIdBody,
    GrantBody,
    GrantTold,
    PageQuery,
    PermissionsTold,
    PermissionTold,
    RevokedTold,
    UnlockBody,
    UnlockTold,
)


class LegacyAccess:
    """Grant, revoke, permissions, unlock."""

    def __init__(self, *, granting: Granting, lanes: Lanes) -> None:
        self._granting = granting
        self._lanes = lanes

    def routes(self) -> tuple[Route, ...]:
        """The operations of this family."""
        return (
            Route(ACCESS_GRANT, self._grant),
            Route(ACCESS_REVOKE, self._revoke),
            Route(ACCESS_PERMISSIONS, self._permissions),
            Route(ACCESS_UNLOCK, self._unlock),
        )

    async def _grant(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        wanted = await read_body(request, GrantBody)
        grant = await self._granting.give(
            user_id=wanted.user_id,
            device_id=number_of(wanted.device_id, "device"),
            length=wanted.length,
            by=caller.username,
        )
        return told(GrantTold(status="active", access_id=grant.access_id, expires_at=_ends(grant)))

    async def _revoke(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        wanted = await read_body(request, AccessIdBody)
        await self._granting.revoke(wanted.access_id, by=caller.username)
        return told(RevokedTold(status="revoked", access_id=wanted.access_id))

    async def _permissions(self, request: web.Request, _: Caller) -> web.StreamResponse:
        wanted, standing = read_query(request, PageQuery), self._granting.standing()
        part = standing[wanted.offset : wanted.offset + wanted.limit]
        return told(PermissionsTold(permissions=tuple(map(self._told, part)), total=len(standing)))

    async def _unlock(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        """One opening, as any command: recorded, with a deadline, and refused with its reason."""
        wanted = await read_body(request, UnlockBody)
        gate = self._granting.lane_of(number_of(wanted.device_id, "device")).gate
        command = await self._lanes.command(device_id=gate, action=GateAction.OPEN, source=f"user:{caller.username}")
        return told(
            UnlockTold(
                status="accepted",
                command_id=command.command_id,
                device_id=str(gate),
                recorded=command.recorded,
                requested_at=iso_utc(command.requested_at),
                expires_at=iso_utc(command.deadline_at),
            )
        )

    def _told(self, grant: Grant) -> PermissionTold:
        try:
            location = self._granting.lane_of(grant.device_id).name
        except (NotFoundError, CommandRefused):  # the site file has changed since
            location = grant.lane_id
        return PermissionTold(
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
