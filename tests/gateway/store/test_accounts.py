"""The site's own accounts on disk: what a change ends, and what counts once."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing

import pytest

from gateway.domain.accounts import AccountChangeRefused, checked_name, checked_permissions
from gateway.domain.errors import NotFoundError
from gateway.store import RememberedAccount, Session
from gateway.store.accounts import remembered_accounts as remembered_module
from gateway.store.accounts.accounts import FoundAccount


@pytest.fixture
async def accounts(store):
    await store.accounts.add("ada", password_hash="hash-1", role="viewer", now=1)
    return store.accounts


async def signed_in(store, username: str = "ada", *, proven: str = "hash-1") -> bool:
    token = f"token-{username}"
    return await store.sessions.add(token, Session(username, 1, 1, 100), proven=proven)


async def test_an_account_has_what_its_role_allows(accounts):
    (ada,) = await accounts.all()
    assert (ada.username, ada.role, ada.disabled, ada.totp_secret, ada.codes_left) == ("ada", "viewer", False, "", 0)
    assert "can_view_events" in ada.permissions
    assert "can_control_devices" not in ada.permissions
    assert "hash-1" not in repr(ada)
    await accounts.put_role("viewer", frozenset({"can_view_devices"}))
    assert (await accounts.all())[0].permissions == {"can_view_devices"}


async def test_a_name_is_taken_once_and_a_role_must_be_known(accounts):
    with pytest.raises(AccountChangeRefused, match="already"):
        await accounts.add("ada", password_hash="x", role="viewer", now=2)
    with pytest.raises(NotFoundError, match="administrator, operator, viewer"):
        await accounts.add("bob", password_hash="x", role="king", now=2)
    for change in (
        accounts.set_password("bob", "x"),
        accounts.set_role("bob", "viewer"),
        accounts.set_disabled("bob", disabled=True),
        accounts.set_second_factor("bob", "A", step=1, codes=()),
        accounts.set_recovery_codes("bob", ()),
        accounts.remove("bob"),
        accounts.remove_role("bob"),
    ):
        with pytest.raises(NotFoundError):
            await change


@pytest.mark.parametrize(
    "change",
    [
        lambda accounts: accounts.set_password("ada", "hash-2"),
        lambda accounts: accounts.set_role("ada", "operator"),
        lambda accounts: accounts.set_disabled("ada", disabled=True),
        lambda accounts: accounts.set_second_factor("ada", "SECRET", step=5, codes=(b"c",)),
        lambda accounts: accounts.put_role("viewer", frozenset()),
        lambda accounts: accounts.remove("ada"),
    ],
)
async def test_a_change_ends_the_accounts_sessions_and_no_other(store, accounts, change):
    assert await signed_in(store)
    assert await signed_in(store, "bob", proven="")
    await change(accounts)
    assert await store.sessions.get("token-ada") is None
    assert await store.sessions.get("token-bob") is not None


async def test_a_password_that_was_changed_meanwhile_signs_nobody_in(store, accounts):
    await asyncio.gather(accounts.set_password("ada", "hash-2"), signed_in(store))
    assert await store.sessions.get("token-ada") is None
    await accounts.set_disabled("ada", disabled=True)
    assert not await signed_in(store, proven="hash-2")


async def test_a_role_in_use_stays(accounts):
    with pytest.raises(AccountChangeRefused, match="ada have the role"):
        await accounts.remove_role("viewer")
    await accounts.set_role("ada", "operator")
    await accounts.remove_role("viewer")
    assert [name for name, _ in await accounts.roles()] == ["administrator", "operator"]


async def test_a_code_counts_once_and_none_before_it(accounts):
    await accounts.set_second_factor("ada", "SECRET", step=5, codes=(b"one", b"two"))
    used = await asyncio.gather(*(accounts.use_step("ada", "SECRET", step) for step in (5, 7, 7, 6)))
    assert used == [False, True, False, False]
    assert not await accounts.use_step("ada", "ANOTHER", 9)
    used = await asyncio.gather(*(accounts.use_recovery_code(name, b"one") for name in ("bob", "ada", "ada")))
    assert used == [False, True, False]
    assert (await accounts.all())[0].codes_left == 1
    await accounts.set_recovery_codes("ada", (b"three",))
    assert not await accounts.use_recovery_code("ada", b"two")
    await accounts.set_second_factor("ada", "", step=0, codes=())
    with pytest.raises(AccountChangeRefused, match="no second factor"):
        await accounts.set_recovery_codes("ada", (b"four",))


async def test_keys(store):
    await store.api_keys.add(
        "barrier app", key_hash=b"h", permissions=frozenset({"can_view_devices"}), now=1, expires_at=9
    )
    (key,) = await store.api_keys.all()
    assert (key.name, key.key_hash, key.permissions, key.expires_at) == ("barrier app", b"h", {"can_view_devices"}, 9)
    with pytest.raises(AccountChangeRefused, match="already"):
        await store.api_keys.add("barrier app", key_hash=b"i", permissions=frozenset(), now=1, expires_at=None)
    await store.api_keys.remove("barrier app")
    with pytest.raises(NotFoundError):
        await store.api_keys.remove("barrier app")


async def test_what_is_remembered_of_central_is_bounded_and_can_be_forgotten(store, monkeypatch):
    monkeypatch.setattr(remembered_module, "MOST_REMEMBERED", 2)
    for moment, name in enumerate(("ada", "bob", "cleo"), start=1):
        await store.remembered_accounts.put(RememberedAccount(name, f"hash {name}", "Guard", frozenset({"*"}), moment))
    assert await store.remembered_accounts.get("ada") is None
    bob = await store.remembered_accounts.get("bob")
    assert bob == RememberedAccount("bob", "hash bob", "Guard", frozenset({"*"}), 2)
    await store.sessions.add("here", Session("bob", 1, 1, 100))
    await store.sessions.add("central", Session("bob", 1, 1, 100, central=True, permissions=frozenset({"can_x"})))
    await store.remembered_accounts.forget("bob", sessions=True)
    assert await store.remembered_accounts.get("bob") is None
    assert await store.sessions.get("central") is None
    assert await store.sessions.get("here") is not None
    await store.remembered_accounts.forget_older(4)
    assert await store.remembered_accounts.get("cleo") is None


def test_names_and_permissions_that_are_none():
    for name in ("", " ada", "a\nb", "x" * 121):
        with pytest.raises(AccountChangeRefused):
            checked_name(name, "an account")
    assert checked_name("Ada Lovelace", "an account") == "Ada Lovelace"
    assert checked_permissions(frozenset({"*", "can_view_devices"}))
    for permission in ("view_devices", "can_View", "can_", "**"):
        with pytest.raises(AccountChangeRefused, match="no permission"):
            checked_permissions(frozenset({permission}))


EVERYTHING = frozenset({"*"})


def noted(folder, hashes):
    """Write the hashes of the site file's accounts, as earlier releases did."""
    with closing(sqlite3.connect(folder / "site.db")) as connection:
        connection.executemany("INSERT INTO site_file_account VALUES (?, ?)", hashes.items())
        connection.commit()


async def test_accounts_of_the_site_file_are_taken_over_once_and_keep_their_sessions(store, accounts, tmp_path):
    noted(tmp_path, {"chief": "hash-c", "tech": "hash-t"})
    for name in ("chief", "tech"):
        await signed_in(store, name, proven="")
    found = [FoundAccount("chief", "hash-c", EVERYTHING), FoundAccount("tech", "hash-2", EVERYTHING)]
    assert await accounts.take_over(found, now=2) == ("chief", "tech")
    assert [(one.username, one.password_hash, one.role) for one in await accounts.all()] == [
        ("ada", "hash-1", "viewer"), ("chief", "hash-c", "administrator"), ("tech", "hash-2", "administrator"),
    ]  # fmt: skip
    assert await store.sessions.get("token-chief") is not None
    assert await store.sessions.get("token-tech") is None  # its password is another one
    await accounts.remove("chief")
    await accounts.set_password("tech", "hash-3")
    assert await accounts.take_over(found, now=3) == ()
    assert await accounts.of_site_file() == {"chief": "", "tech": ""}
    assert [(one.username, one.password_hash) for one in await accounts.all()] == [
        ("ada", "hash-1"),
        ("tech", "hash-3"),
    ]


async def test_an_account_of_the_register_stays_and_the_files_sessions_of_that_name_end(store, accounts):
    assert await signed_in(store)
    assert await accounts.take_over([FoundAccount("ada", "hash-2", EVERYTHING)], now=2) == ()
    (ada,) = await accounts.all()
    assert (ada.password_hash, ada.role) == ("hash-1", "viewer")
    assert await store.sessions.get("token-ada") is None


async def test_an_account_that_was_taken_over_has_the_permissions_of_the_file(accounts):
    looks, opens = frozenset({"can_view_devices"}), frozenset({"can_control_devices"})
    await accounts.put_role("guard", looks)
    found = [("tom", looks), ("guard", opens), ("zoe", opens), ("no", frozenset())]
    await accounts.take_over([FoundAccount(name, "hash", allowed) for name, allowed in found], now=2)
    known = {one.username: one for one in await accounts.all()}
    assert {name: known[name].permissions for name, _ in found} == dict(found)
    assert [known[name].role for name, _ in found] == ["guard", "guard 2", "guard 2", "no"]
