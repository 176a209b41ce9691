"""The site's own accounts: who may sign in when central is far away. Passwords are kept as argon2 hashes only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from argon2 import PasswordHasher
from argon2.exceptions import VerificationError

from gateway.site.models import Account

# OWASP's second choice for argon2id: 19 MiB and 2 passes, about 20 ms on an edge box.
_HASHER = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
LONGEST_PASSWORD = 1000


@dataclass(frozen=True, slots=True)
class KnownAccount:
    """An account of the site file with its hashed password."""

    username: str
    password_hash: str
    permissions: frozenset[str]


class Accounts:
    """Accounts by username. One verification runs at a time, in a thread: guessing cannot take the machine."""

    def __init__(self, *, accounts: Iterable[KnownAccount], nobody_hash: str) -> None:
        self._accounts = {account.username: account for account in accounts}
        self._nobody_hash = nobody_hash
        self._one = asyncio.Semaphore(1)

    def get(self, username: str) -> KnownAccount | None:
        """The account, or None."""
        return self._accounts.get(username)

    async def verified(self, username: str, password: str) -> KnownAccount | None:
        """The account if the password is right. An unknown username takes as long as a wrong password."""
        account = self._accounts.get(username)
        async with self._one:
            right = await asyncio.to_thread(_verify, account.password_hash if account else self._nobody_hash, password)
        return account if right else None


async def hash_accounts(accounts: Iterable[Account], password_of: Callable[[str], str]) -> Accounts:
    """The site file's accounts. `password_of` looks a secret up by its name and raises ConfigError."""

    def hashed() -> tuple[list[KnownAccount], str]:
        known = [
            KnownAccount(
                username=account.username,
                password_hash=_HASHER.hash(password_of(account.password)),
                permissions=frozenset(account.permissions),
            )
            for account in accounts
        ]
        return known, _HASHER.hash("")

    known, nobody = await asyncio.to_thread(hashed)
    return Accounts(accounts=known, nobody_hash=nobody)


def _verify(password_hash: str, password: str) -> bool:
    try:
        return _HASHER.verify(password_hash, password)
    except VerificationError:
        return False
