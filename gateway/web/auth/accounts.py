"""The accounts of the site, which the register keeps: look-up by name, and the check of passwords."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Mapping, MutableMapping

import structlog
from argon2 import PasswordHasher
from argon2.exceptions import HashingError, InvalidHashError, VerificationError, VerifyMismatchError

from gateway.domain.accounts import is_guessable
from gateway.domain.errors import GatewayError, StoreError
from gateway.store import StoredAccount
from gateway.store.accounts.accounts import Accounts
from gateway.texts import text
from gateway.web.http.errors import RequestRefused

log = structlog.get_logger(__name__)

# OWASP's second choice for argon2id: 19 MiB and 2 passes, about 20 ms on an edge box.
HASHER = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
NOBODYS_HASH = "$argon2id$v=19$m=19456,t=2,p=1$ScPUxLwWpydNdxcW34vPdg$ES/uDWhFwTvcjeQ3/yjlFIyJ77na5pudhRBuy0hpEpU"
"""The hash of a password that nobody has, of HASHER's cost: an unknown name takes as long as a wrong password."""


class HashNotComputed(GatewayError):
    """A hash that cannot be computed now, for example for lack of memory. It says nothing about the password."""


def hash_password(password: str) -> str:
    """Return an argon2id hash. Raises HashNotComputed."""
    try:
        return HASHER.hash(password)
    except HashingError as error:
        raise HashNotComputed(str(error)) from error


def verify_password(password_hash: str, password: str) -> bool:
    """Return whether the password matches the hash. Raises HashNotComputed."""
    try:
        return HASHER.verify(password_hash, password)
    except (VerifyMismatchError, InvalidHashError):
        return False
    except VerificationError as error:
        raise HashNotComputed(str(error)) from error


class Roster:
    """The site's accounts by name, kept in memory. `load` reads them again after a change.

    They are kept while the store cannot be read. One hash is computed at a time, in a thread, so that guessing cannot
    use up the CPU.
    """

    def __init__(self, *, accounts: Accounts, guessable: MutableMapping[str, str]) -> None:
        """`guessable`: takes the hashes of passwords that sign-ins show to be easily guessed, by the account's name."""
        self._accounts = accounts
        self._guessable = guessable
        self._known: Mapping[str, StoredAccount] = {}
        self._folded: frozenset[str] = frozenset()
        self._loaded = False
        self._reading = asyncio.Lock()
        self._hashing = asyncio.Semaphore(1)

    async def load(self) -> None:
        """Read the accounts again. Never raises: if the store cannot be read, the next sign-in tries again."""
        async with self._reading:  # an older reading must not come after a newer one
            try:
                found = await self._accounts.all()
            except StoreError as error:
                self._loaded = False
                log.warning("accounts_not_read", error=str(error))
                return
            self._known = {account.username: account for account in found}
            self._folded = frozenset(map(_folded, self._known))
            self._loaded = True
            if all(account.disabled for account in found):
                log.warning("no_account_can_sign_in", todo="edge-gateway users add NAME --role administrator")

    def get(self, username: str) -> StoredAccount | None:
        """Return the account, even if it is disabled; None for an unknown name."""
        return self._known.get(username)

    async def has(self, username: str) -> bool:
        """Return whether the site has an account of that name, ignoring case and marks that do not show.

        It is True while the store is unreadable, too. Such a name is never tried at central, so that no password of a
        site account is sent there.
        """
        if not self._loaded:
            await self.load()
        return not self._loaded or _folded(username) in self._folded

    async def verified(self, username: str, password: str) -> StoredAccount | None:
        """Return the account if the password is right, else None. Every refusal takes the same time."""
        if not self._loaded:
            await self.load()
        account = self.get(username)
        usable = account is not None and not account.disabled
        right = await self.matches(account.password_hash if account and usable else None, password)
        if account is None or not right:
            return None
        if is_guessable(username, password):
            self._guessable[username] = account.password_hash
        return account

    async def matches(self, password_hash: str | None, password: str) -> bool:
        """Return whether the password matches this hash. False for None, after the same time as for a wrong password.

        Raises RequestRefused (503) when the hash cannot be computed, for example for lack of memory.
        """
        async with self._hashing:
            try:
                right = await asyncio.to_thread(verify_password, password_hash or NOBODYS_HASH, password)
            except HashNotComputed as error:
                raise _not_computed(error) from error
        return right and password_hash is not None

    async def hashed(self, password: str) -> str:
        """Return a new hash of a password. Raises RequestRefused (503) when the hash cannot be computed."""
        async with self._hashing:
            try:
                return await asyncio.to_thread(hash_password, password)
            except HashNotComputed as error:
                raise _not_computed(error) from error


def _not_computed(error: Exception) -> RequestRefused:
    """Log that the hash could not be computed, and return the refusal. It says nothing about the password."""
    log.warning("password_not_checked", error=str(error))
    return RequestRefused(503, text("refused.short_of_memory"), headers={"Retry-After": "5"})


def _folded(username: str) -> str:
    """Return the name as people tell it from others: without case, width, blanks and marks that do not show."""
    text = unicodedata.normalize("NFKC", username).casefold()
    return "".join(letter for letter in text if unicodedata.category(letter)[0] not in "CZ")
