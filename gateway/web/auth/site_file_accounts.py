"""The site file's accounts, which can sign in whatever happens. Passwords are kept as argon2 hashes only."""

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
        stored: True when it is kept in the store, False when it is the site file's.
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
    """The site file's accounts. One hash is computed at a time, in a thread: guessing cannot take the machine."""

    def __init__(
        self, *, accounts: Iterable[KnownAccount], nobody_hash: str, guessable: Iterable[KnownAccount] = ()
    ) -> None:
        """`guessable`: those whose password is among the first that are tried."""
        self._accounts = {account.username: account for account in accounts}
        self._guessable = {account.username: account.password_hash for account in guessable}
        self._nobody_hash = nobody_hash
        self._one = asyncio.Semaphore(1)

    def get(self, username: str) -> KnownAccount | None:
        """Return the account, or None."""
        return self._accounts.get(username)

    def names(self) -> tuple[str, ...]:
        """Return their names."""
        return tuple(self._accounts)

    def hashes(self) -> dict[str, str]:
        """Return their passwords' hashes by name."""
        return {name: account.password_hash for name, account in self._accounts.items()}

    def guessable(self) -> dict[str, str]:
        """Return the accounts, by name, that have a password that is guessed first, with its hash.

        The password of an account of the register is known only while its owner signs in.
        """
        return dict(self._guessable)

    def signed_in(self, account: KnownAccount, password: str) -> None:
        """Judge the password that was right. It is kept nowhere."""
        if is_guessable(account.username, password):
            self._guessable[account.username] = account.password_hash
        else:
            self._guessable.pop(account.username, None)

    async def matches(self, password_hash: str | None, password: str) -> bool:
        """Return whether the password is the one of this hash. None, for nobody's, takes as long as a wrong one.

        Raises RequestRefused (503) when that cannot be computed, as for want of memory.
        """
        async with self._one:
            try:
                right = await asyncio.to_thread(verify_password, password_hash or self._nobody_hash, password)
            except VerificationError as error:
                raise _not_computed(error) from error
        return right and password_hash is not None

    async def hashed(self, password: str) -> str:
        """Return a new hash of a password. Raises RequestRefused (503) when that cannot be computed."""
        async with self._one:
            try:
                return await asyncio.to_thread(hash_password, password)
            except HashingError as error:
                raise _not_computed(error) from error


def hash_password(password: str) -> str:
    """Return an argon2id hash. Blocks for some 20 ms."""
    return HASHER.hash(password)


async def hash_accounts(
    accounts: Iterable[Account],
    password_of: Callable[[str], str],
    known: Mapping[str, str] = MappingProxyType({}),
) -> Accounts:
    """Hash the site file's accounts. `password_of` looks a secret up by its name and raises ConfigError.

    `known` are hashes of before, by name: one that fits the password still is kept, so that a change can be seen.
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
    """Tell whether this is the password of the hash; slow on purpose."""
    try:
        return HASHER.verify(password_hash, password)
    except (VerifyMismatchError, InvalidHashError):
        return False


def _not_computed(error: Exception) -> RequestRefused:
    """Return a fault of this machine, which says nothing of the password."""
    log.warning("password_not_checked", error=str(error))
    return RequestRefused(
        503, "the gateway cannot check passwords now: it is short of memory; try again", headers={"Retry-After": "5"}
    )
