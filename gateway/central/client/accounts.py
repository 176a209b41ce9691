"""Central's accounts, signed in on behalf of people at the site. Tokens and passwords are kept by whoever asks."""

from __future__ import annotations

import asyncio

import structlog

from gateway.central.client.answers import CentralFailed
from gateway.central.client.client import CentralClient
from gateway.central.client.not_found import doubt
from gateway.central.client.roles import RoleMap, name_of, permissions_of
from gateway.domain.accounts import CentralAdmission
from gateway.domain.errors import CentralRefused, CentralUnavailable
from gateway.domain.writes import JsonObject

log = structlog.get_logger(__name__)

_SIGN_OUT_SECONDS = 2.0
_LONGEST_TOKEN = 4096


class CentralPeople:
    """Signs people in and out at central. A person's refusal is not the gateway's own."""

    def __init__(self, *, client: CentralClient, roles: RoleMap) -> None:
        self._client = client
        self._roles = roles

    async def sign_in(self, username: str, password: str) -> CentralAdmission:
        """A session at central. Raises CentralRefused, and CentralUnavailable when central does not say."""
        body = await self._client.call_for(
            "POST", "/v1/auth/login", {"username": username, "password": password}, token=None, hide=password
        )
        admission = self.admitted(body)
        if admission is None:
            raise CentralFailed("POST /v1/auth/login: answered without a session")
        return admission

    async def is_believed(self, refusal: CentralRefused) -> bool:
        """Return whether a refusal is central's own word, not that of what stands before it. Never raises."""
        return await doubt(self._client, refusal) is None

    def admitted(self, answer: JsonObject) -> CentralAdmission | None:
        """Read an answer that signs somebody in; None for one without a session."""
        token, user, role = answer.get("session"), answer.get("user"), answer.get("role")
        if not isinstance(token, str) or not 0 < len(token) <= _LONGEST_TOKEN or not _plain(token):
            return None
        # Only a plain no is none: the document has a boolean here, and whatever else stands there proves nothing.
        mfa_enabled = not isinstance(user, dict) or user.get("mfa_enabled") is not False
        return CentralAdmission(
            token=token,
            mfa_enabled=mfa_enabled,
            role_name=name_of(role),
            permissions=permissions_of(role, self._roles),
            user=user if isinstance(user, dict) and "mfa_enabled" in user else {"mfa_enabled": mfa_enabled},
            role=role,
            servers=answer.get("servers") or [],
        )

    async def prove(self, token: str, code: str) -> None:
        """Prove a session's second factor. Raises CentralRefused for a wrong code, CentralUnavailable."""
        await self._client.call_for("POST", "/v1/auth/mfa", {"token": code}, token=token)

    async def sign_out(self, token: str) -> None:
        """End a session, within 2 s. Never raises: one that cannot be ended now ends by central's own time."""
        try:
            async with asyncio.timeout(_SIGN_OUT_SECONDS):
                await self._client.call_for("POST", "/v1/auth/logout", {}, token=token)
        except (CentralRefused, CentralUnavailable, TimeoutError) as error:
            log.info("session_left_at_central", error=str(error) or "no answer in time")


def _plain(token: str) -> bool:
    return token.isascii() and token.isprintable()
