"""Hashes of passwords. Slow on purpose: each blocks for about 20 ms."""

from __future__ import annotations

from argon2 import PasswordHasher
from argon2.exceptions import HashingError, InvalidHashError, VerificationError, VerifyMismatchError

from gateway.domain.errors import GatewayError

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
