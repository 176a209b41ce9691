"""Accounts and keys of the site, with hashes of the least cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from argon2 import PasswordHasher

from gateway.web.auth.accounts import HASHER

LEAST = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
ROLES = {"chief": "administrator", "guard": "guard", "nobody": "nobody"}
"""The role of each account; its name is its password."""
GUARDS = {"guard": frozenset({"can_view_devices", "can_view_events"}), "nobody": frozenset[str]()}
"""The roles that a new register does not have."""


@pytest.fixture(scope="session")
def hashed() -> Mapping[str, str]:
    """The accounts' hashes at the least cost there is: a hash says its own, and nearly every test signs in."""
    return {name: LEAST.hash(name) for name in ROLES}


@pytest.fixture(scope="session")
def cheap_hash() -> Callable[[str], str]:
    """Another hash of the least cost."""
    return LEAST.hash


@pytest.fixture(scope="session")
def costly() -> Mapping[str, str]:
    """At the cost that a gateway takes, for tests of signing in."""
    return {name: HASHER.hash(name) for name in ROLES}


KEYS = {"till": frozenset({"*"}), "counter": frozenset({"can_view_devices"}), "idle": frozenset()}
"""Programs' keys: the key of `till` is `key-of-till`, and so on."""
