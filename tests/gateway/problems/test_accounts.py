"""Accounts that are easily taken over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.domain.accounts import is_guessable
from gateway.domain.problems import ProblemKind as K
from gateway.problems.found import WeakAccounts, problems_of_accounts, weak_accounts
from gateway.store.accounts.accounts import StoredAccount

ADA = StoredAccount(
    username="ada",
    password_hash="hash of ada",
    role="operator",
    permissions=frozenset({"can_control_devices"}),
    disabled=False,
    created_at=0,
)


def single_factor(account):
    return weak_accounts([account], guessable={}).single_factor


@pytest.mark.parametrize("permission", ["*", "can_control_devices", "can_edit_settings", "can_edit_access_cards"])
def test_an_account_that_may_do_harm_and_has_a_password_alone(permission):
    assert single_factor(replace(ADA, permissions=frozenset({permission}))) == ("ada",)


@pytest.mark.parametrize(
    "change",
    [
        {"totp_secret": "BASE32"},
        {"disabled": True},
        {"permissions": frozenset({"can_view_devices", "can_view_events"})},
    ],
    ids=["second factor", "disabled", "only looks"],
)
def test_other_accounts_need_none(change):
    assert single_factor(replace(ADA, **change)) == ()


def test_a_guessable_password_counts_until_it_is_changed_or_its_account_is_disabled():
    guessable = {"ada": "hash of ada", "tech": "hash of tech", "gone": "hash of gone"}
    tech = replace(ADA, username="tech", password_hash="hash of tech")
    assert weak_accounts([tech, ADA], guessable=guessable).guessable == ("ada", "tech")
    changed = replace(ADA, password_hash="another")
    assert weak_accounts([changed], guessable=guessable).guessable == ()
    assert weak_accounts([replace(ADA, disabled=True)], guessable=guessable).guessable == ()


def test_each_is_one_problem_that_another_account_makes_anew():
    first, second = problems_of_accounts(WeakAccounts(single_factor=("ada", "bo"), guessable=("tech",)))
    assert (first.kind, str(first.text)) == (
        K.ACCOUNT_GUESSABLE,
        "accounts with a password that is guessed first: tech",
    )
    assert (second.kind, str(second.text)) == (
        K.ACCOUNT_SINGLE_FACTOR,
        "accounts that may open gates or change the site, by a password alone: ada, bo",
    )
    (other,) = problems_of_accounts(WeakAccounts(single_factor=("ada",)))
    assert other.key != second.key


@pytest.mark.parametrize(
    "password",
    [
        "ada",
        "Ada2024!",
        "password",
        "Passw0rd",
        "admin123",
        "12345678",
        "87654321",
        "aaaaaaaa",
        "qwertyui",
        "!demo!",
        "",
    ],
)
def test_passwords_that_are_tried_first(password):
    assert is_guessable("ada", password)


@pytest.mark.parametrize(
    "password", ["correct horse battery", "7391-4482-9917", "k9$gate77Q!x", "adamant-otter", "Tr0ub4dor&3", "mEhR-z1nn"]
)
def test_other_passwords(password):
    assert not is_guessable("ada", password)
