"""Sign-in of people at the site with central's accounts, and the permissions that their roles give here.

The form of central's roles is not published, so the site file says where and how to read them.

By default permissions are read from the role itself and from its `permissions`: a list of names, a list of objects with
one name each, or an object whose fields are true or false. Unknown names, and values other than true or 1, allow
nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import structlog
from pydantic import JsonValue

from gateway.central.client.answers import CentralFailed
from gateway.central.client.client import CentralClient
from gateway.central.client.not_found import doubt
from gateway.domain.accounts import CentralAdmission, is_permission
from gateway.domain.errors import CentralRefused, CentralUnavailable
from gateway.domain.writes import JsonObject

log = structlog.get_logger(__name__)

_MOST = 1000
_NAMES = ("name", "key", "permission", "code", "slug")
_GRANTS = ("enabled", "allowed", "granted", "value", "active")
_TITLES = ("name", "title", "label")
_LONGEST_TITLE = 120


@dataclass(frozen=True, slots=True)
class RoleMap:
    """Rules for reading a role.

    Attributes:
        paths: where the permissions are, with dots between names; "" is the role itself.
        names: the interface's permission names by central's name.
        roles: additional permissions by the name of the role.
    """

    paths: tuple[str, ...] = ("", "permissions")
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def name_of(role: JsonValue) -> str:
    """Return the role's name; "" when it has none."""
    if isinstance(role, dict):
        role = next((role[title] for title in _TITLES if isinstance(role.get(title), str)), "")
    return " ".join(role.split())[:_LONGEST_TITLE] if isinstance(role, str) else ""


def permissions_of(role: JsonValue, how: RoleMap) -> frozenset[str]:
    """Return the permissions that the role gives, as names of the interface."""
    found = {name for path in how.paths for granted in _granted(_at(role, path)) for name in _meant(granted, how)}
    found |= {name for name in how.roles.get(name_of(role), ()) if is_permission(name)}
    return frozenset(sorted(found)[:_MOST])


def _at(role: JsonValue, path: str) -> JsonValue:
    for step in path.split(".") if path else ():
        role = role.get(step) if isinstance(role, dict) else None
    return role


def _granted(value: JsonValue) -> Iterator[str]:
    """Yield the names that are granted, in any of the known forms."""
    if isinstance(value, dict):
        yield from (name for name, granted in value.items() if granted is True or granted == 1)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, str):
                yield item
            elif isinstance(item, dict) and _is_granted(item):
                yield from (name for key in _NAMES if isinstance(name := item.get(key), str))


def _is_granted(item: Mapping[str, JsonValue]) -> bool:
    """Return whether an object grants: it does unless one of its fields denies it."""
    return all(item[key] is True or item[key] == 1 for key in _GRANTS if key in item)


def _meant(granted: str, how: RoleMap) -> tuple[str, ...]:
    if granted in how.names:
        return tuple(name for name in how.names[granted] if is_permission(name))
    return (granted,) if is_permission(granted) else ()


_SIGN_OUT_SECONDS = 2.0
_LONGEST_TOKEN = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountsAtCentral:
    """Sign-in and sign-out of people at central. A refusal of a person does not affect the gateway's own account."""

    client: CentralClient
    roles: RoleMap

    async def sign_in(self, username: str, password: str) -> CentralAdmission:
        """Open a session at central. Raises CentralRefused, or CentralUnavailable when central does not decide."""
        body = await self.client.call_for(
            "POST", "/v1/auth/login", {"username": username, "password": password}, token=None
        )
        admission = self.admitted(body)
        if admission is None:
            raise CentralFailed("answered without a session", operation="POST /v1/auth/login")
        return admission

    async def is_believed(self, refusal: CentralRefused) -> bool:
        """Return whether a refusal is central's own, not that of a proxy before it. Never raises."""
        return await doubt(self.client, refusal) is None

    def admitted(self, answer: JsonObject) -> CentralAdmission | None:
        """Read an answer that signs somebody in; None for one without a session."""
        token, user, role = answer.get("session"), answer.get("user"), answer.get("role")
        if not isinstance(token, str) or not 0 < len(token) <= _LONGEST_TOKEN or not _plain(token):
            return None
        # Only `false` means no second factor: the interface has a boolean here, and anything else proves nothing.
        mfa_enabled = not isinstance(user, dict) or user.get("mfa_enabled") is not False
        return CentralAdmission(
            token=token,
            mfa_enabled=mfa_enabled,
            role_name=name_of(role),
            permissions=permissions_of(role, self.roles),
            user=user if isinstance(user, dict) and "mfa_enabled" in user else {"mfa_enabled": mfa_enabled},
            role=role,
            servers=answer.get("servers") or [],
        )

    async def prove(self, token: str, code: str) -> None:
        """Prove a session's second factor. Raises CentralRefused for a wrong code, or CentralUnavailable."""
        await self.client.call_for("POST", "/v1/auth/mfa", {"token": code}, token=token)

    async def sign_out(self, token: str) -> None:
        """End a session, within 2 s. Never raises: a session that cannot be ended now expires at central."""
        try:
            async with asyncio.timeout(_SIGN_OUT_SECONDS):
                await self.client.call_for("POST", "/v1/auth/logout", {}, token=token)
        except (CentralRefused, CentralUnavailable, TimeoutError) as error:
            log.info("session_left_at_central", error=str(error) or "no answer in time")


def _plain(token: str) -> bool:
    return token.isascii() and token.isprintable()
