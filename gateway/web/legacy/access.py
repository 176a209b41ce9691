"""`/api/v1/access`: grants, and the single opening of a gate."""

from __future__ import annotations

import re
from typing import Final, Literal

from pydantic import field_validator

from gateway.domain.commands import GateAction
from gateway.domain.errors import CommandRefused, NotFoundError
from gateway.domain.grants import Grant
from gateway.runtime.clock import iso_utc
from gateway.web.auth.callers import Caller
from gateway.web.families import Family, operation
from gateway.web.http.bodies import Body
from gateway.web.legacy.answers import (
    LegacyAnswer,
    Line,
    PageQuery,
    Word,
    number_of,
)
from gateway.web.operation import ADD_CARDS, CONTROL_DEVICES, DELETE_CARDS, VIEW_CARDS

LONGEST: Final = 10 * 366 * 86_400_000_000
"""Ten years in micros. Anything longer is to be given as permanent."""

_MINUTE, _HOUR, _DAY, _WEEK = 60, 3600, 86_400, 604_800
_UNITS: Final = {
    **dict.fromkeys(("m", "min", "minute"), _MINUTE),
    **dict.fromkeys(("h", "hr", "hour"), _HOUR),
    **dict.fromkeys(("d", "day"), _DAY),
    **dict.fromkeys(("w", "week"), _WEEK),
}
_PLAIN = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*([a-z]{0,8})", re.IGNORECASE)
_ISO = re.compile(
    r"P(?:(?P<weeks>\d{1,6})W|(?:(?P<days>\d{1,6})D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d{1,6}(?:\.\d{1,6})?)H)?(?:(?P<minutes>\d{1,9})M)?(?:(?P<seconds>\d{1,9})S)?)?)",
    re.IGNORECASE,
)


def length_of(text: str) -> int | None:
    """Return the length in micros, or None for a permanent one.

    It may be a bare number of hours; a text such as `90 minutes`, `8h`, `2 days` or `1 week`; or an ISO 8601 duration
    without years and months, whose length depends on when they begin. Raises ValueError with one sentence for anything
    else.
    """
    plain = text.strip()
    if plain.lower() in {"permanent", "permanently", "forever"}:
        return None
    seconds = _seconds(plain)
    if seconds is None:
        raise ValueError('must be hours such as "8", a length such as "90 minutes", "2 days" or "PT8H", or "permanent"')
    if not 0 < seconds * 1_000_000 <= LONGEST:
        raise ValueError('must be more than nothing and at most ten years, or "permanent"')
    return round(seconds * 1_000_000)


def _seconds(text: str) -> float | None:
    if plain := _PLAIN.fullmatch(text):
        unit = plain[2].lower() or "h"
        size = _UNITS.get(unit) or _UNITS.get(unit.removesuffix("s") if len(unit) > 2 else unit)
        return float(plain[1]) * size if size else None
    if (iso := _ISO.fullmatch(text)) and any(iso.groups()):
        parts = {name: float(value) for name, value in iso.groupdict(default="0").items()}
        days = parts["weeks"] * 7 + parts["days"]
        return days * _DAY + parts["hours"] * _HOUR + parts["minutes"] * _MINUTE + parts["seconds"]
    return None


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


class LegacyAccess(Family):
    """The handlers of `/api/v1/access`."""

    @operation("POST", "/api/v1/access/grant", ADD_CARDS, purpose="Let a user pass a lane for a while, or for good")
    async def _grant(self, wanted: GrantBody, caller: Caller) -> GrantAnswer:
        grant = await self.context.grants.give(
            user_id=wanted.user_id,
            device_id=number_of(wanted.device_id, "device"),
            length=wanted.length,
            by=caller.username,
        )
        return GrantAnswer(status="active", access_id=grant.access_id, expires_at=_ends(grant))

    @operation("POST", "/api/v1/access/revoke", DELETE_CARDS, purpose="End a grant at once")
    async def _revoke(self, wanted: AccessIdBody, caller: Caller) -> RevokedAnswer:
        await self.context.grants.revoke(wanted.access_id, by=caller.username)
        return RevokedAnswer(status="revoked", access_id=wanted.access_id)

    @operation("GET", "/api/v1/access/permissions", VIEW_CARDS, purpose="Grants that stand")
    async def _permissions(self, wanted: PageQuery) -> PermissionsAnswer:
        grants = self.context.grants.current()
        part = grants[wanted.offset : wanted.offset + wanted.limit]
        return PermissionsAnswer(permissions=tuple(map(self._record, part)), total=len(grants))

    @operation("POST", "/api/v1/access/unlock", CONTROL_DEVICES, purpose="Open a gate once")
    async def _unlock(self, wanted: UnlockBody, caller: Caller) -> UnlockAnswer:
        """Open a gate once. The command has a deadline as any other; a refusal says why."""
        gate = self.context.grants.lane_of(number_of(wanted.device_id, "device")).gate
        command = await self.context.lanes.command(
            device_id=gate, action=GateAction.OPEN, source=f"user:{caller.username}"
        )
        return UnlockAnswer(
            status="accepted",
            command_id=command.command_id,
            device_id=str(gate),
            recorded=command.recorded,
            requested_at=iso_utc(command.requested_at),
            expires_at=iso_utc(command.deadline_at),
        )

    def _record(self, grant: Grant) -> PermissionRecord:
        try:
            location = self.context.grants.lane_of(grant.device_id).name
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
