"""The site file's accounts, which can sign in without the store and central. Passwords are kept as argon2 hashes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import structlog
from argon2 import PasswordHasher
from argon2.exceptions import HashingError, InvalidHashError, VerificationError, VerifyMismatchError

from gateway.domain.guessable import is_guessable
from gateway.site.api_section import Account
from gateway.web.http.errors import RequestRefused

log = structlog.get_logger(__name__)

# OWASP's second choice for argon2id: 19 MiB and 2 passes, about 20 ms on an edge box.
HASHER = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
LONGEST_PASSWORD = 1000


@dataclass(frozen=True, slots=True)
class KnownAccount:
    """An account of the site with its hashed password.

    Attributes:
        stored: True for an account of the store, False for one of the site file.
        totp_secret: the base32 secret of its authenticator; "" without a second factor.
    """

    username: str
    password_hash: str = field(repr=False)
    permissions: frozenset[str]
    role: str = "site account"
    stored: bool = False
    disabled: bool = False
    totp_secret: str = field(repr=False, default="")


class Accounts:
    """The site file's accounts. One hash is computed at a time, in a thread, so that guessing cannot use up the CPU."""

    def __init__(
        self, *, accounts: Iterable[KnownAccount], nobody_hash: str, guessable: Iterable[KnownAccount] = ()
    ) -> None:
        """`guessable`: the accounts whose password is easily guessed; `nobody_hash`: a hash for unknown names."""
        self._accounts = {account.username: account for account in accounts}
        self._guessable = {account.username: account.password_hash for account in guessable}
        self._nobody_hash = nobody_hash
        self._one = asyncio.Semaphore(1)

    def get(self, username: str) -> KnownAccount | None:
        """Return the account, or None."""
        return self._accounts.get(username)

    def names(self) -> tuple[str, ...]:
        """Return the accounts' names."""
        return tuple(self._accounts)

    def hashes(self) -> dict[str, str]:
        """Return the password hashes by account name."""
        return {name: account.password_hash for name, account in self._accounts.items()}

    def guessable(self) -> dict[str, str]:
        """Return the password hashes, by account name, of accounts with an easily guessed password.

        Accounts of the store appear only after their owner has signed in, since only then is the password known.
        """
        return dict(self._guessable)

    def signed_in(self, account: KnownAccount, password: str) -> None:
        """Note after a sign-in whether the account's password is easily guessed. The password itself is not kept."""
        if is_guessable(account.username, password):
            self._guessable[account.username] = account.password_hash
        else:
            self._guessable.pop(account.username, None)

    async def matches(self, password_hash: str | None, password: str) -> bool:
        """Return whether the password matches this hash. False for None, after the same time as for a wrong password.

        Raises RequestRefused (503) when the hash cannot be computed, for example for lack of memory.
        """
        async with self._one:
            try:
                right = await asyncio.to_thread(verify_password, password_hash or self._nobody_hash, password)
            except VerificationError as error:
                raise _not_computed(error) from error
        return right and password_hash is not None

    async def hashed(self, password: str) -> str:
        """Return a new hash of a password. Raises RequestRefused (503) when the hash cannot be computed."""
        async with self._one:
            try:
                return await asyncio.to_thread(hash_password, password)
            except HashingError as error:
                raise _not_computed(error) from error


def hash_password(password: str) -> str:
    """Return an argon2id hash. Blocks for about 20 ms."""
    return HASHER.hash(password)


async def hash_accounts(
    accounts: Iterable[Account],
    password_of: Callable[[str], str],
    known: Mapping[str, str] = MappingProxyType({}),
) -> Accounts:
    """Hash the site file's accounts. `password_of` looks a secret up by its name and raises ConfigError.

    `known` are earlier hashes by name. A hash that still matches its password is kept, so that a changed password shows
    as a changed hash.
    """

    def hashed() -> Accounts:
        found, guessable = [], []
        for account in accounts:
            password = password_of(account.password)
            one = KnownAccount(
                username=account.username,
                password_hash=_kept_or_new(known.get(account.username), password),
                permissions=frozenset(account.permissions),
            )
            found.append(one)
            if is_guessable(account.username, password):
                guessable.append(one)
        return Accounts(accounts=found, nobody_hash=hash_password(""), guessable=guessable)

    return await asyncio.to_thread(hashed)


def _kept_or_new(known: str | None, password: str) -> str:
    return known if known is not None and verify_password(known, password) else hash_password(password)


def verify_password(password_hash: str, password: str) -> bool:
    """Return whether the password matches the hash. Slow on purpose, see `HASHER`."""
    try:
        return HASHER.verify(password_hash, password)
    except (VerifyMismatchError, InvalidHashError):
        return False


def _not_computed(error: Exception) -> RequestRefused:
    """Log that the hash could not be computed, and return the refusal. It says nothing about the password."""
    log.warning("password_not_checked", error=str(error))
    return RequestRefused(
        503, "the gateway cannot check passwords now: it is short of memory; try again", headers={"Retry-After": "5"}
    )
