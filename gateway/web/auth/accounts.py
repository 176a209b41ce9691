"""All accounts of the site: those of the site file, which take precedence, and those of the store."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Mapping

import structlog

from gateway.domain.errors import StoreError
from gateway.store import StoredAccount
from gateway.store.accounts.accounts import Accounts as StoredAccounts
from gateway.web.auth.site_file_accounts import Accounts, KnownAccount

log = structlog.get_logger(__name__)


class Roster:
    """The site's accounts by name, kept in memory. `load` reads the store's accounts again after a change.

    Until the store has been read once, only the site file's accounts can sign in.
    """

    def __init__(self, *, site: Accounts, accounts: StoredAccounts) -> None:
        self._site = site
        self._accounts = accounts
        self._stored: Mapping[str, KnownAccount] = {}
        self._folded: frozenset[str] = frozenset()
        self._loaded = False
        self._noted = False
        self._reading = asyncio.Lock()

    async def load(self) -> None:
        """Read the store's accounts again. Never raises: if the store cannot be read, the next sign-in tries again."""
        async with self._reading:  # an older reading must not come after a newer one
            await self._load()

    async def _load(self) -> None:
        try:
            found = await self._accounts.all()
        except StoreError as error:
            self._loaded = False
            log.warning("accounts_not_read", error=str(error))
            return
        if not self._noted:
            await self._note_site_file()
        self._stored = {account.username: _known(account) for account in found}
        self._folded = frozenset(_folded(name) for name in (*self._site.names(), *self._stored))
        for name in self._stored:
            if self._site.get(name) is not None and not self._loaded:
                log.warning("account_hidden", username=name, why="the site file has an account of that name")
        self._loaded = True

    async def _note_site_file(self) -> None:
        """Compare the site file's passwords with those of the last start, and end the sessions of changed accounts."""
        try:
            for username in await self._accounts.note_site_file(self._site.hashes()):
                log.info("site_file_account_changed", username=username)
            self._noted = True
        except StoreError as error:
            log.warning("site_file_accounts_not_noted", error=str(error))

    def get(self, username: str) -> KnownAccount | None:
        """Return the account, even if it is disabled; None for an unknown name."""
        return self._site.get(username) or self._stored.get(username)

    async def has(self, username: str) -> bool:
        """Return whether the site has an account of that name, ignoring case and marks that do not show.

        It is True while the store is unreadable, too. Such a name is never tried at central, so that no password of a
        site account is sent there.
        """
        if not self._loaded:
            await self.load()
        return not self._loaded or _folded(username) in self._folded

    async def verified(self, username: str, password: str) -> KnownAccount | None:
        """Return the account if the password is right, else None. Every refusal takes the same time."""
        if not self._loaded:
            await self.load()
        account = self.get(username)
        usable = account is not None and not account.disabled
        right = await self._site.matches(account.password_hash if account and usable else None, password)
        if account is None or not right:
            return None
        self._site.signed_in(account, password)
        return account

    async def matches(self, password_hash: str | None, password: str) -> bool:
        """Return whether the password matches this hash. None matches nothing and takes as long as a wrong password."""
        return await self._site.matches(password_hash, password)

    async def hashed(self, password: str) -> str:
        """Return a new hash of a password."""
        return await self._site.hashed(password)


def _known(account: StoredAccount) -> KnownAccount:
    return KnownAccount(
        username=account.username,
        password_hash=account.password_hash,
        permissions=account.permissions,
        role=account.role,
        stored=True,
        disabled=account.disabled,
        totp_secret=account.totp_secret,
    )


def _folded(username: str) -> str:
    """Return the name as people tell it from others: without case, width, blanks and marks that do not show."""
    text = unicodedata.normalize("NFKC", username).casefold()
    return "".join(letter for letter in text if unicodedata.category(letter)[0] not in "CZ")
