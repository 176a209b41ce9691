"""Requests to the register, and its answer. Passwords and keys are sent only as hashes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

REGISTER_PATH = "/local/register"
"""Path of the local socket that takes a `Change` of the register."""
RELOAD_PATH = "/local/reload"
"""Path of the local socket that takes a `Reload`."""
TRIAL_PATH = "/local/reload/trial"
"""Path of the local socket that answers how the change on trial stands."""


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


_PasswordHash = Annotated[str, Field(pattern=r"^\$argon2id\$", max_length=500, repr=False)]
_Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Permissions = Annotated[frozenset[str], Field(max_length=1000)]


class Look(_Message):
    """A request for all lists, without a change."""

    do: Literal["look"] = "look"


class AddAccount(_Message):
    """A new account."""

    do: Literal["add"] = "add"
    username: str
    password_hash: _PasswordHash
    role: str


class SetPassword(_Message):
    """A new password for an account."""

    do: Literal["password"] = "password"
    username: str
    password_hash: _PasswordHash


class SetRole(_Message):
    """A new role for an account."""

    do: Literal["role"] = "role"
    username: str
    role: str


class SetDisabled(_Message):
    """Change of an account to disabled or enabled. A disabled account cannot sign in."""

    do: Literal["disable"] = "disable"
    username: str
    disabled: bool


class SetSecondFactor(_Message):
    """A new authenticator for an account.

    `secret` is in base32; "" removes the second factor. `step` is the time step (RFC 6238) of the code that proved the
    secret, so that the same code cannot sign in. `codes` are the hashes of new recovery codes.
    """

    do: Literal["mfa"] = "mfa"
    username: str
    secret: Annotated[str, Field(pattern=r"^([A-Z2-7]{16,64})?$", repr=False)]
    step: Annotated[int, Field(ge=0)]
    codes: tuple[_Sha256, ...] = ()


class SetRecoveryCodes(_Message):
    """New recovery codes, by their hashes; the earlier ones no longer count."""

    do: Literal["recovery"] = "recovery"
    username: str
    codes: tuple[_Sha256, ...]


class RemoveAccount(_Message):
    """The removal of an account."""

    do: Literal["remove"] = "remove"
    username: str


class SignOut(_Message):
    """The end of all sessions of this name; a remembered account of central of that name is forgotten too."""

    do: Literal["sign-out"] = "sign-out"
    username: str


class PutRole(_Message):
    """A role to create or change, with all its permissions."""

    do: Literal["put-role"] = "put-role"
    name: str
    permissions: Permissions


class RemoveRole(_Message):
    """The removal of a role."""

    do: Literal["remove-role"] = "remove-role"
    name: str


class AddKey(_Message):
    """A new API key, by its hash. It expires after `days`; None for never."""

    do: Literal["add-key"] = "add-key"
    name: str
    key_hash: _Sha256
    permissions: Permissions
    days: Annotated[int, Field(ge=1, le=36_500)] | None = None


class RemoveKey(_Message):
    """The removal of an API key."""

    do: Literal["remove-key"] = "remove-key"
    name: str


class Reload(_Message):
    """A request to read the site file again. It concerns nothing that the register keeps.

    `dry_run`: only report the changes. `wait`: the seconds to wait for lanes to be free of vehicles. `now`: a person
    says that nobody is in them, whatever their inputs say.
    """

    dry_run: bool = False
    wait: Annotated[float, Field(ge=0, le=600)] = 30
    now: bool = False


OfAccount = (
    AddAccount | SetPassword | SetRole | SetDisabled | SetSecondFactor | SetRecoveryCodes | RemoveAccount | SignOut
)
Change = Look | OfAccount | PutRole | RemoveRole | AddKey | RemoveKey
CHANGE: TypeAdapter[Change] = TypeAdapter(Annotated[Change, Field(discriminator="do")])


class AccountShown(_Message):
    """An account, without its secrets."""

    username: str
    role: str
    disabled: bool
    mfa: bool
    codes_left: int


class RoleShown(_Message):
    """A role."""

    name: str
    permissions: tuple[str, ...]


class KeyShown(_Message):
    """An API key without its secret. `expires_at` is wall micros UTC; None for a key that does not expire."""

    name: str
    permissions: tuple[str, ...]
    expires_at: int | None


class SiteChange(_Message):
    """A change of the site file: the part that was changed, in the file's terms, and what restarts because of it.

    `keys` are the changed settings; `devices` and `lanes` restart; `text` is the change in one sentence.
    """

    part: str
    id: str
    name: str
    how: Literal["added", "removed", "changed"]
    keys: tuple[str, ...]
    devices: tuple[int, ...]
    lanes: tuple[str, ...]
    text: str


class ReaderUnseen(_Message):
    """A reader that a change of the site file connected anew and that was not seen to work since.

    `proof` is the sign that is missing; `text` says in one sentence how to see it.
    """

    device_id: int
    name: str
    proof: Literal["answer", "card", "plate"]
    text: str


class Answer(_Message):
    """The register's answer.

    After a change of the register: `error` is one sentence when nothing was changed, else ""; the lists are those after
    the change. After a reload of the site file: its `faults`; its `changes`; the reasons why it was `refused`; whether
    it is `on_trial` or `confirmed`, and `why` it is confirmed or was taken back; the readers that were `unseen` until
    it was confirmed; and the name of the gateway's `run`, which changes with a restart.
    """

    error: str = ""
    accounts: tuple[AccountShown, ...] = ()
    roles: tuple[RoleShown, ...] = ()
    keys: tuple[KeyShown, ...] = ()
    faults: tuple[str, ...] = ()
    changes: tuple[SiteChange, ...] = ()
    refused: tuple[str, ...] = ()
    on_trial: bool = False
    confirmed: bool = False
    why: str = ""
    unseen: tuple[ReaderUnseen, ...] = ()
    run: str = ""
