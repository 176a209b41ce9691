"""Accounts of the simulated central, and their sessions."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import struct
from dataclasses import dataclass, field
from enum import StrEnum

from pydantic import JsonValue

from gateway.runtime.clock import Clock

_TOTP_STEP_SECONDS = 30


JsonObject = dict[str, JsonValue]


class RoleForm(StrEnum):
    """The forms in which installations of central list a role's permissions."""

    NAMES = "names"
    FLAGS = "flags"
    OBJECTS = "objects"


@dataclass(frozen=True, slots=True)
class CentralAccount:
    """An account of central.

    Attributes:
        permissions: permission names, or "*" for all of them.
        mfa_secret: the Base32 secret of an authenticator; "" when the account has no second factor.
        role_name: the name of its role.
        role_form: the form in which the role lists its permissions.
        enabled: whether it may sign in.
    """

    username: str
    password: str = field(repr=False)
    permissions: frozenset[str] = frozenset({"*"})
    mfa_secret: str = field(default="", repr=False)
    role_name: str = "Edge gateway"
    role_form: RoleForm = RoleForm.NAMES
    enabled: bool = True

    def role(self) -> JsonObject:
        """Return the role as central shows it."""
        names = sorted(self.permissions)
        shown: dict[RoleForm, JsonObject] = {
            RoleForm.NAMES: {"permissions": [*names]},
            RoleForm.FLAGS: {**dict.fromkeys(names, True), "can_delete_cameras": False},
            RoleForm.OBJECTS: {"permissions": {"items": [{"key": name, "enabled": True} for name in names]}},
        }
        return {"id": 4, "name": self.role_name, **shown[self.role_form]}

    def may(self, permissions: tuple[str, ...]) -> bool:
        """Return whether the account has any of the permissions; an empty tuple needs none."""
        return not permissions or "*" in self.permissions or not self.permissions.isdisjoint(permissions)


@dataclass(slots=True)
class CentralSession:
    """A session of central; protected operations need `complete`."""

    token: str = field(repr=False)
    account: CentralAccount
    opened_at: float
    complete: bool


class Sessions:
    """The open sessions. A session older than `lifetime` seconds is gone."""

    def __init__(self, *, clock: Clock, accounts: tuple[CentralAccount, ...], lifetime: float) -> None:
        self._clock = clock
        self._accounts = {account.username: account for account in accounts}
        self._lifetime = lifetime
        self.open: dict[str, CentralSession] = {}
        self._used_steps: dict[str, int] = {}

    def put_account(self, account: CentralAccount) -> None:
        """Add or change an account and end its sessions."""
        self._accounts[account.username] = account
        self.open = {token: one for token, one in self.open.items() if one.account.username != account.username}

    def sign_in(self, username: str, password: str) -> CentralSession | None:
        """Begin a session; None when the credentials are wrong."""
        account = self._accounts.get(username)
        if (
            account is None
            or not account.enabled
            or not hmac.compare_digest(account.password.encode(), password.encode())
        ):
            return None
        session = CentralSession(
            token=secrets.token_urlsafe(32),
            account=account,
            opened_at=self._clock.monotonic(),
            complete=not account.mfa_secret,
        )
        self.open[session.token] = session
        return session

    def find(self, token: str) -> CentralSession | None:
        """Return the open session of that token."""
        session = self.open.get(token)
        if session is not None and self._clock.monotonic() - session.opened_at > self._lifetime:
            del self.open[token]
            return None
        return session

    def validate(self, session: CentralSession, code: str) -> bool:
        """Complete a session with its account's code of this or a neighbouring half minute. A code works only once."""
        now = self._clock.wall().micros // 1_000_000
        steps = (now // _TOTP_STEP_SECONDS + drift for drift in (-1, 0, 1))
        secret, username = session.account.mfa_secret, session.account.username
        right = (
            step
            for step in steps
            if hmac.compare_digest(totp(secret, step * _TOTP_STEP_SECONDS).encode(), code.encode())
        )
        step = next(right, None)
        if step is None or step <= self._used_steps.get(username, 0):
            return False
        self._used_steps[username] = step
        session.complete = True
        return True

    def end(self, token: str) -> None:
        """Forget a session."""
        self.open.pop(token, None)

    def expire_all(self) -> None:
        """Forget every session, as a restart of central does."""
        self.open.clear()

    def __len__(self) -> int:
        return len(self.open)


def totp(secret: str, at: int) -> str:
    """Return the six-digit code of a base32 secret at a moment in Unix seconds (RFC 6238 with SHA-1)."""
    try:
        key = base64.b32decode(secret.upper() + "=" * (-len(secret) % 8))
    except binascii.Error as error:
        raise ValueError("an authenticator's secret must be base32") from error
    digest = hmac.digest(key, struct.pack(">Q", at // _TOTP_STEP_SECONDS), hashlib.sha1)
    offset = digest[-1] & 0x0F
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFF_FFFF
    return f"{number % 1_000_000:06d}"
