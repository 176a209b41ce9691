"""Changes of accounts, roles and keys, each recorded as an event."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from gateway.domain.accounts import AccountRefused, checked_name, checked_permissions
from gateway.domain.errors import NotFoundError, StoreError
from gateway.domain.events import Event, EventKind
from gateway.runtime.clock import Clock
from gateway.store import Entry
from gateway.store.accounts.accounts import Accounts
from gateway.store.accounts.api_keys import ApiKeys
from gateway.store.accounts.remembered_accounts import RememberedAccounts
from gateway.store.accounts.sessions import Sessions
from gateway.store.events.journal import Journal
from gateway.web.register.changes import (
    AccountShown,
    AddAccount,
    AddKey,
    Answer,
    Change,
    KeyShown,
    Look,
    OfAccount,
    PutRole,
    RemoveAccount,
    RemoveKey,
    RemoveRole,
    RoleShown,
    SetDisabled,
    SetPassword,
    SetRecoveryCodes,
    SetRole,
    SetSecondFactor,
    SignOut,
)

log = structlog.get_logger(__name__)

_DAY = 86_400_000_000
Changed = Callable[[tuple[str, ...]], Awaitable[None]]


async def _no_gateway(_usernames: tuple[str, ...]) -> None:
    """Do nothing: no running gateway has accounts in memory."""


@dataclass(frozen=True, kw_only=True)
class Register:
    """The changes of accounts, roles and keys.

    Attributes:
        accounts: the stored accounts and roles.
        api_keys: the stored API keys.
        journal: the journal that records each change as an event.
        remembered_accounts: remembered accounts of central, which a sign-out forgets.
        sessions: the stored sessions, which a sign-out ends.
        clock: the clock for creation, expiry and event times.
        changed: called after each change with the names of the accounts that it concerned.
    """

    accounts: Accounts
    api_keys: ApiKeys
    journal: Journal
    remembered_accounts: RememberedAccounts
    sessions: Sessions
    clock: Clock
    changed: Changed = _no_gateway

    async def ask(self, change: Change, *, by: str = "") -> Answer:
        """Make the change and return the answer. A refusal, or a failure of the disk, is in `Answer.error`.

        `by` is the name of the person who makes the change on the page; "" for the command line.
        """
        try:
            sentence, usernames = await self._make(change)
            if sentence:
                await self.changed(usernames)
                await self._note(f"{by}: {sentence}" if by else sentence)
            return await self._look()
        except (AccountRefused, NotFoundError, StoreError) as error:
            return Answer(error=str(error))

    async def _make(self, change: Change) -> tuple[str, tuple[str, ...]]:
        """Make the change; return a sentence that describes it ("" for no change), and the accounts concerned."""
        match change:
            case Look():
                return "", ()
            case PutRole() | RemoveRole():
                return await self._make_of_role(change)
            case AddKey() | RemoveKey():
                return await self._make_of_key(change), ()
            case _:
                return await self._make_of_account(change), (change.username,)

    async def _make_of_account(self, change: OfAccount) -> str:
        accounts, name = self.accounts, change.username
        match change:
            case AddAccount(password_hash=password_hash, role=role):
                now = self.clock.wall().micros
                await accounts.add(checked_name(name, "an account"), password_hash=password_hash, role=role, now=now)
                sentence = f"The account {name} was added, with the role {role}."
            case SetPassword(password_hash=password_hash):
                await accounts.set_password(name, password_hash)
                sentence = f"{name} has a new password."
            case SetRole(role=role):
                await accounts.set_role(name, role)
                sentence = f"{name} has the role {role}."
            case SetDisabled(disabled=disabled):
                await accounts.set_disabled(name, disabled=disabled)
                sentence = f"{name} may {'not ' if disabled else ''}sign in."
            case SetSecondFactor(secret=secret, step=step, codes=codes):
                await accounts.set_second_factor(name, secret, step=step, codes=map(bytes.fromhex, codes))
                sentence = f"{name} has {'a' if secret else 'no'} second factor."
            case SetRecoveryCodes(codes=codes):
                await accounts.set_recovery_codes(name, map(bytes.fromhex, codes))
                sentence = f"{name} has new recovery codes."
            case RemoveAccount():
                await accounts.remove(name)
                sentence = f"The account {name} was removed."
            case SignOut():
                ended = await self.sessions.remove_of(name)
                await self.remembered_accounts.forget(name, sessions=False)
                sentence = f"{name} was signed out of {ended} sessions."
        return sentence

    async def _make_of_role(self, change: PutRole | RemoveRole) -> tuple[str, tuple[str, ...]]:
        name = checked_name(change.name, "a role")
        if isinstance(change, RemoveRole):
            await self.accounts.remove_role(name)
            return f"The role {name} was removed.", ()
        holders = await self.accounts.put_role(name, checked_permissions(change.permissions))
        return f"The role {name} allows {', '.join(sorted(change.permissions)) or 'nothing'}.", holders

    async def _make_of_key(self, change: AddKey | RemoveKey) -> str:
        name = checked_name(change.name, "a key")
        if isinstance(change, RemoveKey):
            await self.api_keys.remove(name)
            return f"The key {name} was removed."
        now = self.clock.wall().micros
        await self.api_keys.add(
            name,
            key_hash=bytes.fromhex(change.key_hash),
            permissions=checked_permissions(change.permissions),
            now=now,
            expires_at=None if change.days is None else now + change.days * _DAY,
        )
        return f"The key {name} was added, for {', '.join(sorted(change.permissions)) or 'nothing'}."

    async def _look(self) -> Answer:
        roles = await self.accounts.roles()
        return Answer(
            accounts=tuple(
                AccountShown(
                    username=account.username,
                    role=account.role,
                    disabled=account.disabled,
                    mfa=bool(account.totp_secret),
                    codes_left=account.codes_left,
                )
                for account in await self.accounts.all()
            ),
            roles=tuple(RoleShown(name=name, permissions=tuple(sorted(allowed))) for name, allowed in roles),
            keys=tuple(
                KeyShown(name=key.name, permissions=tuple(sorted(key.permissions)), expires_at=key.expires_at)
                for key in await self.api_keys.all()
            ),
        )

    async def _note(self, sentence: str) -> None:
        stamp = self.clock.wall()
        event = Event(
            kind=EventKind.ACCOUNT_CHANGED, date_at=stamp.micros, clock_trusted=stamp.trusted, description=sentence
        )
        try:
            await self.journal.record(Entry(events=(event,)))
        except StoreError as error:
            log.warning("account_change_not_recorded", error=str(error))  # the change itself is on disk
