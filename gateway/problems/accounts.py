"""The problems of the accounts that sign in at the interface. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gateway.domain.problems import ProblemKind
from gateway.problems.problem import Problem, gateway_problem, listed
from gateway.store.accounts.accounts import StoredAccount
from gateway.texts import text

_WEIGHTY = frozenset({"*", "can_control_devices", "can_edit_settings", "can_edit_access_cards"})
"""Permissions with which an account can open gates, change the site or let people in."""


@dataclass(frozen=True, slots=True)
class WeakAccounts:
    """Names of accounts that are easily taken over, sorted.

    Attributes:
        single_factor: accounts that may open gates or change the site and have no second factor.
        guessable: accounts that are known to have a common or default password.
    """

    single_factor: tuple[str, ...] = ()
    guessable: tuple[str, ...] = ()


def weak_accounts(stored: Iterable[StoredAccount], *, guessable: Mapping[str, str]) -> WeakAccounts:
    """Return the accounts that are easily taken over.

    Args:
        stored: the accounts of the register.
        guessable: the password hashes that were found to be of guessable passwords, by the account's name; one that is
            no longer the account's hash does not count.
    """
    enabled = [account for account in stored if not account.disabled]
    hashes = {account.username: account.password_hash for account in enabled}
    return WeakAccounts(
        single_factor=tuple(
            sorted(one.username for one in enabled if not one.totp_secret and one.permissions & _WEIGHTY)
        ),
        guessable=tuple(sorted(name for name, hashed in guessable.items() if hashes.get(name) == hashed)),
    )


def problems_of_accounts(weak: WeakAccounts) -> Iterator[Problem]:
    """Yield one problem for all accounts of each kind. With another account it is a new problem to acknowledge."""
    if names := weak.guessable:
        said = text("problem.account_guessable.text", names=listed(names))
        yield gateway_problem(ProblemKind.ACCOUNT_GUESSABLE, said, str(listed(names)))
    if names := weak.single_factor:
        said = text("problem.account_single_factor.text", names=listed(names))
        yield gateway_problem(ProblemKind.ACCOUNT_SINGLE_FACTOR, said, str(listed(names)))
