"""The takeover of accounts from a site file of an older format into the register, which keeps all accounts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, field

import structlog

from gateway.domain.accounts import is_guessable
from gateway.domain.errors import ConfigError, GatewayError
from gateway.runtime.clock import Clock
from gateway.site import FileAccount, Secrets
from gateway.store.accounts.accounts import Accounts, FoundAccount
from gateway.texts import Text, text

log = structlog.get_logger(__name__)

AGAIN_SECONDS = 10.0
_ADVICE = "take [[api.accounts]] and their secrets out of the file, where they have no effect any more"


@dataclass(kw_only=True, slots=True)
class FileAccounts:
    """The takeover. Each name is taken once, so an account that is removed from the register does not come back.

    Attributes:
        accounts: the register's accounts.
        secrets: the accounts' passwords.
        clock: the clock for the times at which accounts are added.
        guessable: takes the hashes of passwords that are easily guessed, by the account's name.
        tell: records a sentence about accounts.
        changed: called after `run` has taken accounts.
    """

    accounts: Accounts
    secrets: Secrets
    clock: Clock
    guessable: MutableMapping[str, str]
    tell: Callable[[Text], None]
    changed: Callable[[], None]
    _found: Sequence[FileAccount] = field(default=(), init=False)
    _wanted: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    async def begin(self, found: Sequence[FileAccount]) -> None:
        """Take over the accounts of the file at a start. Never raises; if it cannot be done, `run` tries again."""
        self.offer(found)
        await self._try()

    def offer(self, found: Sequence[FileAccount]) -> None:
        """Have `run` take over the accounts of a changed file, once the change is in force for good."""
        self._found = found
        if found:
            self._wanted.set()

    async def run(self) -> None:
        """Take over what is offered, until cancelled."""
        while True:
            await self._wanted.wait()
            if await self._try():
                self.changed()
            elif self._wanted.is_set():
                await asyncio.sleep(AGAIN_SECONDS)

    async def _try(self) -> bool:
        try:
            return await self._take()
        except GatewayError as error:
            log.warning("accounts_not_taken_over", error=str(error))
            return False

    async def _take(self) -> bool:
        """Return whether the register has accounts that it did not have. Raises GatewayError."""
        found = self._found
        known = await self.accounts.of_site_file() if found else {}
        new = [account for account in found if known.get(account.username) != ""]
        hashed = [one for account in new if (one := await self._hashed(account, known.get(account.username)))]
        added = await self.accounts.take_over(hashed, now=self.clock.wall().micros) if hashed else ()
        if self._found is found:
            self._wanted.clear()
        if hashed:
            self._tell(added, tuple(one.username for one in hashed if one.username not in added))
        return bool(added)

    async def _hashed(self, account: FileAccount, known: str | None) -> FoundAccount | None:
        """Return the account with its known hash if the password is the same; None if there is no password."""
        from gateway.web.auth.accounts import hash_password, verify_password  # noqa: PLC0415  # seldom needed

        name = account.username
        try:
            password = await asyncio.to_thread(self.secrets.get, account.password)
        except ConfigError as error:
            log.warning("account_not_taken_over", username=name, why=str(error))
            return None
        if known is None or not await asyncio.to_thread(verify_password, known, password):
            known = await asyncio.to_thread(hash_password, password)
        if is_guessable(name, password):
            self.guessable[name] = known
        return FoundAccount(name, known, frozenset(account.permissions))

    def _tell(self, added: Sequence[str], there: Sequence[str]) -> None:
        log.warning("accounts_taken_over", added=[*added], there=[*there], advice=_ADVICE)
        if added:
            self.tell(text("event.accounts_taken_over", who=", ".join(added)))
        if there:
            self.tell(text("event.accounts_kept", who=", ".join(there)))
