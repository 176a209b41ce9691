"""Changes of accounts, roles and keys, each recorded as an event."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from gateway.domain.accounts import AccountChangeRefused, checked_name, checked_permissions
from gateway.domain.errors import NotFoundError, StoreError
from gateway.domain.events import Event, EventKind
from gateway.runtime.clock import Clock
from gateway.store import Entry
from gateway.store.accounts.accounts import Accounts
from gateway.store.accounts.api_keys import ApiKeyRecords
from gateway.store.accounts.remembered_accounts import RememberedAccounts
from gateway.store.accounts.sessions import SessionRecords
from gateway.store.events.journal import Journal
from gateway.texts import Text, text
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
    api_keys: ApiKeyRecords
    journal: Journal
    remembered_accounts: RememberedAccounts
    sessions: SessionRecords
    clock: Clock
    changed: Changed = _no_gateway

    async def ask(self, change: Change, *, by: str = "") -> Answer:
        """Make the change and return the answer. A refusal, or a failure of the disk, is in `Answer.error`.

        `by` is the name of the person who makes the change on the page; "" for the command line.
        """
        try:
            said, usernames = await self._make(change)
            if said is not None:
                await self.changed(usernames)
                await self._note(text("event.account_changed", by=by, said=said) if by else said)
            return await self._look()
        except (AccountChangeRefused, NotFoundError, StoreError) as error:
            return Answer(error=str(error))

    async def _make(self, change: Change) -> tuple[Text | None, tuple[str, ...]]:
        """Make the change; return a text that describes it (None for no change), and the accounts concerned."""
        match change:
            case Look():
                return None, ()
            case PutRole() | RemoveRole():
                return await self._make_of_role(change)
            case AddKey() | RemoveKey():
                return await self._make_of_key(change), ()
            case _:
                return await self._make_of_account(change), (change.username,)

    async def _make_of_account(self, change: OfAccount) -> Text:
        accounts, name = self.accounts, change.username
        match change:
            case AddAccount(password_hash=password_hash, role=role):
                now = self.clock.wall().micros
                await accounts.add(checked_name(name, "an account"), password_hash=password_hash, role=role, now=now)
                said = text("account.added", who=name, role=role)
            case SetPassword(password_hash=password_hash):
                await accounts.set_password(name, password_hash)
                said = text("account.new_password", who=name)
            case SetRole(role=role):
                await accounts.set_role(name, role)
                said = text("account.new_role", who=name, role=role)
            case SetDisabled(disabled=disabled):
                await accounts.set_disabled(name, disabled=disabled)
                said = text(f"account.sign_in.{'off' if disabled else 'on'}", who=name)
            case SetSecondFactor(secret=secret, step=step, codes=codes):
                await accounts.set_second_factor(name, secret, step=step, codes=map(bytes.fromhex, codes))
                said = text(f"account.second_factor.{'set' if secret else 'none'}", who=name)
            case SetRecoveryCodes(codes=codes):
                await accounts.set_recovery_codes(name, map(bytes.fromhex, codes))
                said = text("account.new_codes", who=name)
            case RemoveAccount():
                await accounts.remove(name)
                said = text("account.removed", who=name)
            case SignOut():
                ended = await self.sessions.remove_of(name)
                await self.remembered_accounts.forget(name, sessions=False)
                said = text("account.signed_out", who=name, count=str(ended))
        return said

    async def _make_of_role(self, change: PutRole | RemoveRole) -> tuple[Text, tuple[str, ...]]:
        name = checked_name(change.name, "a role")
        if isinstance(change, RemoveRole):
            await self.accounts.remove_role(name)
            return text("account.role_removed", role=name), ()
        holders = await self.accounts.put_role(name, checked_permissions(change.permissions))
        return _allowing("role_allows", sorted(change.permissions), name), holders

    async def _make_of_key(self, change: AddKey | RemoveKey) -> Text:
        name = checked_name(change.name, "a key")
        if isinstance(change, RemoveKey):
            await self.api_keys.remove(name)
            return text("account.key_removed", key=name)
        now = self.clock.wall().micros
        await self.api_keys.add(
            name,
            key_hash=bytes.fromhex(change.key_hash),
            permissions=checked_permissions(change.permissions),
            now=now,
            expires_at=None if change.days is None else now + change.days * _DAY,
        )
        return _allowing("key_added", sorted(change.permissions), name)

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

    async def _note(self, said: Text) -> None:
        stamp = self.clock.wall()
        event = Event(kind=EventKind.ACCOUNT_CHANGED, date_at=stamp.micros, clock_trusted=stamp.trusted, text=said)
        try:
            await self.journal.record(Entry(events=(event,)))
        except StoreError as error:
            log.warning("account_change_not_recorded", error=str(error))  # the change itself is on disk


def _allowing(key: str, permissions: list[str], name: str) -> Text:
    """Return the text of a role or a key of a program, with what it allows."""
    if permissions:
        return text(f"account.{key}_these", name=name, permissions=", ".join(permissions))
    return text(f"account.{key}_nothing", name=name)
