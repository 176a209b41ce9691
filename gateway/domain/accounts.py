"""Rules for accounts of the site: valid names, permissions and passwords, and refused changes. Pure."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field

from pydantic import JsonValue

from gateway.domain.errors import GatewayError

LONGEST_NAME = 120
_PERMISSION = re.compile(r"\*|can_[a-z_]{1,60}")

_WORDS = frozenset(
    [
        "access",
        "admin",
        "administrator",
        "barrier",
        "changeme",
        "default",
        "demo",
        "edgegateway",
        "gate",
        "gateway",
        "guest",
        "letmein",
        "login",
        "master",
        "motdepasse",
        "operator",
        "parking",
        "pass",
        "passw0rd",
        "passwort",
        "password",
        "root",
        "secret",
        "service",
        "support",
        "system",
        "test",
        "user",
        "welcome",
        "bienvenue",
        "bonjour",
        "azerty",
        "qwerty",
        "qwertz",
        "iloveyou",
        "dragon",
        "monkey",
    ]
)
_RUNS = ("0123456789012345678901234567890", "abcdefghijklmnopqrstuvwxyz", "qwertyuiop", "azertyuiop", "qwertzuiop")
_NO_LETTERS = re.compile(r"[^a-z]+")
_AROUND = re.compile(r"^[\W\d_]+|[\W\d_]+$")

SHORTEST_PASSWORD = 8
LONGEST_PASSWORD = 1000


class AccountChangeRefused(GatewayError):
    """A change of accounts, roles or keys is not possible, for example because the name is taken."""


def checked_name(name: str, what: str) -> str:
    """Check the name of an account, role or key and return it. Raises AccountRefused."""
    if (
        not 0 < len(name) <= LONGEST_NAME
        or name != name.strip()
        or any(unicodedata.category(c)[0] == "C" for c in name)
    ):
        raise AccountChangeRefused(f"the name of {what} must be 1 to {LONGEST_NAME} characters, no blank at either end")
    return name


def checked_permissions(names: frozenset[str]) -> frozenset[str]:
    """Check permission names of the interface, or "*" for all, and return them. Raises AccountRefused."""
    for name in sorted(names):
        if not _PERMISSION.fullmatch(name):
            raise AccountChangeRefused(
                f"'{name}' is no permission; they look like can_view_devices, and * is all of them"
            )
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


def is_guessable(username: str, password: str) -> bool:
    """Return whether a password is among those that attackers try first.

    Those are: the account's name or a word common in default passwords, also with digits or marks around it; one
    character repeated; a run of digits, letters or neighbouring keys, also backwards.
    """
    plain = password.casefold()
    core = _AROUND.sub("", plain)
    words = {plain, core, _NO_LETTERS.sub("", plain)}
    if words & _WORDS or (username.casefold() in words and username):
        return True
    return len(set(plain)) <= 1 or any(plain in run or plain[::-1] in run for run in _RUNS)


def password_fault(username: str, password: str) -> str:
    """Return in one sentence why the account cannot have this password; "" when it can."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        return f"a password must have {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters"
    if password.casefold() == username.casefold():
        return "the password must differ from the name"
    if is_guessable(username, password):
        return "this password is among those that are tried first; choose another"
    return ""
