"""Rules for accounts of the site: valid names and permissions, and refused changes."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field

from pydantic import JsonValue

from gateway.domain.errors import GatewayError

LONGEST_NAME = 120
_PERMISSION = re.compile(r"\*|can_[a-z_]{1,60}")


class AccountRefused(GatewayError):
    """A change of accounts, roles or keys is not possible, for example because the name is taken."""


def checked_name(name: str, what: str) -> str:
    """Check the name of an account, role or key and return it. Raises AccountRefused."""
    if (
        not 0 < len(name) <= LONGEST_NAME
        or name != name.strip()
        or any(unicodedata.category(c)[0] == "C" for c in name)
    ):
        raise AccountRefused(f"the name of {what} must be 1 to {LONGEST_NAME} characters, no blank at either end")
    return name


def checked_permissions(names: frozenset[str]) -> frozenset[str]:
    """Check permission names of the interface, or "*" for all, and return them. Raises AccountRefused."""
    for name in sorted(names):
        if not _PERMISSION.fullmatch(name):
            raise AccountRefused(f"'{name}' is no permission; they look like can_view_devices, and * is all of them")
    return names


def is_permission(name: str) -> bool:
    """Return whether this is a valid permission name or "*"."""
    return _PERMISSION.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class CentralAdmission:
    """Central's answer to a successful sign-in of an account.

    Attributes:
        token: the session at central.
        mfa_enabled: whether the session still needs its second factor before it allows anything.
        role_name: the role's name, "" when central gives none.
        permissions: the permissions read from the role.
        user, role, servers: as central gave them.
    """

    token: str = field(repr=False)
    mfa_enabled: bool
    role_name: str
    permissions: frozenset[str]
    user: JsonValue
    role: JsonValue
    servers: JsonValue
