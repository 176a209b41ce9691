"""Requests to the register, and its answer. Passwords and keys come as hashes alone."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


_PasswordHash = Annotated[str, Field(pattern=r"^\$argon2id\$", max_length=500, repr=False)]
_Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Permissions = Annotated[frozenset[str], Field(max_length=1000)]


class Look(_Message):
    """Everything that there is; changes nothing."""

    do: Literal["look"] = "look"


class AddAccount(_Message):
    """A new account."""

    do: Literal["add"] = "add"
    username: str
    password_hash: _PasswordHash
    role: str


class SetPassword(_Message):
    """Another password."""

    do: Literal["password"] = "password"
    username: str
    password_hash: _PasswordHash


class SetRole(_Message):
    """Another role."""

    do: Literal["role"] = "role"
    username: str
    role: str


class SetDisabled(_Message):
    """Permission of an account to sign in."""

    do: Literal["disable"] = "disable"
    username: str
    disabled: bool


class SetSecondFactor(_Message):
    """Another authenticator, proven by the code of half minute `step`; "" takes the second factor away."""

    do: Literal["mfa"] = "mfa"
    username: str
    secret: Annotated[str, Field(pattern=r"^([A-Z2-7]{16,64})?$", repr=False)]
    step: Annotated[int, Field(ge=0)]
    codes: tuple[_Sha256, ...] = ()


class SetRecoveryCodes(_Message):
    """Other recovery codes."""

    do: Literal["recovery"] = "recovery"
    username: str
    codes: tuple[_Sha256, ...]


class RemoveAccount(_Message):
    """The account goes."""

    do: Literal["remove"] = "remove"
    username: str


class SignOut(_Message):
    """Every session of this name ends, and what is remembered of central's account of that name."""

    do: Literal["sign-out"] = "sign-out"
    username: str


class PutRole(_Message):
    """A role, new or changed."""

    do: Literal["put-role"] = "put-role"
    name: str
    permissions: Permissions


class RemoveRole(_Message):
    """The role goes."""

    do: Literal["remove-role"] = "remove-role"
    name: str


class AddKey(_Message):
    """A new key, by its hash."""

    do: Literal["add-key"] = "add-key"
    name: str
    key_hash: _Sha256
    permissions: Permissions
    days: Annotated[int, Field(ge=1, le=36_500)] | None = None


class RemoveKey(_Message):
    """The key goes."""

    do: Literal["remove-key"] = "remove-key"
    name: str


class Reload(_Message):
    """The site file is read again; nothing that the register keeps.

    `dry_run`: tell the difference alone. `wait`: how many seconds lanes may take to be free of vehicles.
    """

    do: Literal["reload"] = "reload"
    dry_run: bool = False
    wait: Annotated[float, Field(ge=0, le=600)] = 30


OfAccount = (
    AddAccount | SetPassword | SetRole | SetDisabled | SetSecondFactor | SetRecoveryCodes | RemoveAccount | SignOut
)
Change = Look | OfAccount | PutRole | RemoveRole | AddKey | RemoveKey
Asked = Change | Reload
ASKED: TypeAdapter[Asked] = TypeAdapter(Annotated[Asked, Field(discriminator="do")])


class AccountShown(_Message):
    """An account, without its secrets."""

    username: str
    role: str
    disabled: bool
    mfa: bool
    codes_left: int
    site_file: bool = False


class RoleShown(_Message):
    """A role."""

    name: str
    permissions: tuple[str, ...]


class KeyShown(_Message):
    """A key, without itself. `expires_at` is wall micros UTC."""

    name: str
    permissions: tuple[str, ...]
    expires_at: int | None


class SiteChange(_Message):
    """A change of the site file: what was changed how, in the file's words, and what starts afresh for it."""

    part: str
    id: str
    name: str
    how: Literal["added", "removed", "changed"]
    keys: tuple[str, ...]
    devices: tuple[int, ...]
    lanes: tuple[str, ...]
    text: str


class Answer(_Message):
    """The register's answer: `error` is one sentence when nothing was changed; the lists are as they are afterwards.

    Of the site file: its `faults`; its `changes`; why it was `refused`; whether it is `confirmed`, and `why` it is, or
    was taken back.
    """

    error: str = ""
    accounts: tuple[AccountShown, ...] = ()
    roles: tuple[RoleShown, ...] = ()
    keys: tuple[KeyShown, ...] = ()
    faults: tuple[str, ...] = ()
    changes: tuple[SiteChange, ...] = ()
    refused: tuple[str, ...] = ()
    confirmed: bool = False
    why: str = ""
