"""The site's accounts on the page, changed by the register. Only for administrators."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gateway.domain.accounts import LONGEST_PASSWORD, password_fault
from gateway.web.answers import Answer, AnswerPart
from gateway.web.auth.callers import Caller
from gateway.web.families import Family, operation
from gateway.web.http.bodies import Body, Word
from gateway.web.http.errors import RequestRefused
from gateway.web.operation import ADMINISTRATORS
from gateway.web.register.changes import (
    AccountShown,
    AddAccount,
    Change,
    Look,
    RemoveAccount,
    RoleShown,
    SetDisabled,
    SetPassword,
    SetRole,
    SetSecondFactor,
    SignOut,
)
from gateway.web.register.changes import Answer as RegisterAnswer


class AccountWanted(Body):
    """A change of an account. A second factor can only be removed here; its owner sets up a new one."""

    do: Literal["add", "password", "role", "disable", "enable", "no-second-factor", "remove", "sign-out"]
    username: Word
    password: Annotated[str, Field(strict=True, max_length=LONGEST_PASSWORD, repr=False)] = ""
    role: Word = ""


class AccountsAndRoles(AnswerPart):
    """The accounts of the site, and the roles that they may have."""

    accounts: tuple[AccountShown, ...]
    roles: tuple[RoleShown, ...]


class AccountsAnswer(Answer):
    """The accounts of the site."""

    accounts: AccountsAndRoles


class StatusAccounts(Family):
    """The handlers of `/status/settings/accounts` and `/status/settings/account`.

    Passwords are hashed before they reach the register, and never shown.
    """

    @operation("GET", "/status/settings/accounts", ADMINISTRATORS, "accounts")
    async def _list(self) -> AccountsAnswer:
        return _shown(await self.context.auth.register.ask(Look()))

    @operation("POST", "/status/settings/account", ADMINISTRATORS, "accounts")
    async def _change(self, wanted: AccountWanted, caller: Caller) -> AccountsAnswer:
        if wanted.username == caller.username and wanted.do in {"disable", "remove", "role"}:
            raise RequestRefused(409, "nobody takes their own rights away here: another administrator can")
        answer = await self.context.auth.register.ask(await self._wanted(wanted), by=caller.username)
        if answer.error:
            raise RequestRefused(409, answer.error)
        return _shown(answer)

    async def _wanted(self, wanted: AccountWanted) -> Change:  # noqa: PLR0911 (one per change)
        name = wanted.username
        match wanted.do:
            case "add":
                return AddAccount(username=name, password_hash=await self._hashed(wanted), role=wanted.role)
            case "password":
                return SetPassword(username=name, password_hash=await self._hashed(wanted))
            case "role":
                return SetRole(username=name, role=wanted.role)
            case "disable" | "enable":
                return SetDisabled(username=name, disabled=wanted.do == "disable")
            case "no-second-factor":
                return SetSecondFactor(username=name, secret="", step=0)
            case "remove":
                return RemoveAccount(username=name)
            case "sign-out":
                return SignOut(username=name)

    async def _hashed(self, wanted: AccountWanted) -> str:
        if fault := password_fault(wanted.username, wanted.password):
            raise RequestRefused(409, fault)
        return await self.context.auth.roster.hashed(wanted.password)


def _shown(answer: RegisterAnswer) -> AccountsAnswer:
    return AccountsAnswer(accounts=AccountsAndRoles(accounts=answer.accounts, roles=answer.roles))
