"""Accounts and keys of the site, with hashes of the least cost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from argon2 import PasswordHasher

from gateway.web.auth.site_file_accounts import Accounts, KnownAccount, hash_accounts, hash_password
from tests.gateway.web.setups.site import SITE

LEAST = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


def hashes() -> tuple[tuple[KnownAccount, ...], str]:
    """The site's accounts and nobody's hash, at the cost that a gateway takes."""
    made = asyncio.run(hash_accounts(SITE.api.accounts, lambda name: name))
    return tuple(account for name in made.names() if (account := made.get(name))), hash_password("")


@pytest.fixture(scope="session")
def hashed() -> tuple[tuple[KnownAccount, ...], str]:
    """The same at the least cost there is: a hash says its own, and nearly every test signs in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gateway.web.auth.site_file_accounts.HASHER", LEAST)
        return hashes()


@pytest.fixture(scope="session")
def cheap_hash() -> Callable[[str], str]:
    """Another hash of the least cost."""
    return LEAST.hash


@pytest.fixture(scope="session")
def costly() -> tuple[tuple[KnownAccount, ...], str]:
    """For tests of signing in."""
    return hashes()


@pytest.fixture
def accounts(hashed: tuple[tuple[KnownAccount, ...], str]) -> Accounts:
    known, nobody = hashed
    return Accounts(accounts=known, nobody_hash=nobody)


KEYS = {"till": frozenset({"*"}), "counter": frozenset({"can_view_devices"}), "idle": frozenset()}
"""Programs' keys: the key of `till` is `key-of-till`, and so on."""
