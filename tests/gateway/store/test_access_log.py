"""Revoked callers stay out, whatever rows a damaged database gives back; no copy of it gives a second factor."""

from __future__ import annotations

import shutil
import sqlite3
import stat
from contextlib import asynccontextmanager, closing

import pytest

from gateway.domain.errors import StoreError
from gateway.domain.events import Event, EventKind
from gateway.store import UNREADABLE, Entry, Store, Webhook
from gateway.store.accounts.accounts import FoundAccount
from gateway.store.cards.grants import NewGrant
from gateway.store.engine import access_log

TECH = FoundAccount("tech", "hash of tech", frozenset({"*"}))
"""An account of the site file."""
SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
TOLD = Event(EventKind.GRANT_REVOKED, 1, clock_trusted=True, text="x")


@asynccontextmanager
async def opened(folder):
    store = Store(folder=folder, site_name="North", sends=False)
    await store.open()
    try:
        await store.grants.recall()
        yield store
    finally:
        await store.close()


async def fill(store):
    for name in ("ada", "bob", "eve", "kim"):
        await store.accounts.add(name, password_hash=f"old hash of {name}", role="administrator", now=1)
    await store.accounts.put_role("porter", frozenset({"*"}))
    await store.accounts.set_second_factor("kim", SECRET, step=1, codes=(b"one", b"two"))
    for name, key in (("till", b"t" * 32), ("app", b"a" * 32)):
        await store.api_keys.add(name, key_hash=key, permissions=frozenset({"*"}), now=1, expires_at=None)
    for number in (1, 2):
        new = NewGrant(f"grant-{number}", "17", 101, "main", 1, None, "key:till")
        await store.grants.give(new, event=TOLD, most=9, forgets=False)


async def shut_out(store):
    await store.accounts.remove("ada")
    await store.accounts.take_over([TECH], now=2)
    await store.accounts.remove(TECH.username)
    await store.accounts.set_password("bob", "new hash of bob")
    await store.accounts.set_disabled("eve", disabled=True)
    await store.accounts.put_role("porter", frozenset())
    await store.accounts.use_recovery_code("kim", b"one")
    await store.api_keys.remove("till")
    await store.grants.revoke("grant-1", by="user:chief", now=2, event=TOLD)


async def standing(store):
    return (
        {one.username: (one.password_hash, one.disabled, one.codes_left) for one in await store.accounts.all()},
        dict(await store.accounts.roles())["porter"],
        [key.name for key in await store.api_keys.all()],
        [grant.access_id for grant in store.grants.current(now=2)],
    )


AS_IT_IS = (
    {
        "bob": ("new hash of bob", False, 0),
        "eve": ("old hash of eve", True, 0),
        "kim": ("old hash of kim", False, 1),
    },
    frozenset(),
    ["app"],
    ["grant-2"],
)


@pytest.fixture
async def revived(tmp_path):
    """A folder whose database is as it was before people were shut out, and is damaged besides."""
    folder, before = tmp_path / "data", tmp_path / "site.db"
    folder.mkdir()
    async with opened(folder) as store:
        await fill(store)
    shutil.copy(folder / "site.db", before)
    async with opened(folder) as store:
        await shut_out(store)
        assert await standing(store) == AS_IT_IS
    shutil.copy(before, folder / "site.db")
    with closing(sqlite3.connect(folder / "site.db")) as connection:
        rows = connection.execute("SELECT pageno FROM dbstat WHERE name = 'webhook' OR name = 'event'").fetchall()
    with (folder / "site.db").open("r+b") as file:
        file.seek((rows[0][0] - 1) * 4096)
        file.write(b"\xa5" * 4096)
    (folder / "site.db.closed").unlink()
    return folder


async def test_older_rows_let_nobody_in_again(revived):
    async with opened(revived) as store:
        assert store.salvaged
        assert await standing(store) == AS_IT_IS
        assert await store.accounts.take_over([TECH], now=3) == ()
        assert not await store.accounts.use_recovery_code("kim", b"one")
    async with opened(revived) as store:
        assert not store.salvaged
        assert await standing(store) == AS_IT_IS


async def test_an_older_file_put_back_lets_nobody_in_again(revived, tmp_path):
    shutil.copy(tmp_path / "site.db", revived / "site.db")
    async with opened(revived) as store:
        assert await standing(store) == AS_IT_IS


def lost(path):
    path.unlink()


def changed(path):
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


def emptied(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("harm", [lost, changed, emptied])
async def test_when_nothing_says_who_was_shut_out_nobody_is_let_in(revived, harm):
    harm(revived / "access.log")
    async with opened(revived) as store:
        accounts, _, keys, grants = await standing(store)
        assert {name: disabled for name, (_, disabled, _) in accounts.items()} == dict.fromkeys(accounts, True)
        assert (keys, grants) == ([], [])
        assert "4 accounts were disabled, 2 keys removed and 2 grants taken back" in " ".join(store.salvaged)


@pytest.fixture
async def told_again(tmp_path):
    """A damaged folder from before one of two webhooks was removed."""
    folder, before = tmp_path / "data", tmp_path / "site.db"
    folder.mkdir()
    async with opened(folder) as store:
        for name in ("kept", "gone"):
            await store.webhooks.add(
                Webhook(name, f"https://{name}.example/", ("access.granted",), "s" * 16, 1, "chief"), most=9
            )
        await store.journal.record(Entry(events=(TOLD,)))
    shutil.copy(folder / "site.db", before)
    async with opened(folder) as store:
        await store.webhooks.remove("gone")
    shutil.copy(before, folder / "site.db")
    with closing(sqlite3.connect(folder / "site.db")) as connection:
        ((page,),) = connection.execute("SELECT pageno FROM dbstat WHERE name = 'event'").fetchall()
    with (folder / "site.db").open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xa5" * 4096)
    (folder / "site.db.closed").unlink()
    return folder


async def hooks(store):
    return {one.id: bool(one.disabled) for one in await store.webhooks.all()}


async def test_a_webhook_that_was_removed_is_told_nothing_again(told_again):
    for salvaged in (True, False):
        async with opened(told_again) as store:
            assert bool(store.salvaged) is salvaged
            assert await hooks(store) == {"kept": False}
            assert [one.types for one in await store.webhooks.all()] == [("access.granted",)]


@pytest.mark.parametrize("harm", [lost, changed, emptied])
async def test_when_nothing_says_which_webhooks_were_removed_none_is_told(told_again, harm):
    harm(told_again / "access.log")
    async with opened(told_again) as store:
        assert await hooks(store) == {"kept": True, "gone": True}
        assert "2 webhooks were disabled" in " ".join(store.salvaged)


async def test_a_line_that_a_power_cut_tore_was_told_to_nobody(revived):
    with (revived / "access.log").open("ab") as file:
        file.write(b'deadbeef ["account","bo')
    async with opened(revived) as store:
        assert await standing(store) == AS_IT_IS
        await store.accounts.set_disabled("bob", disabled=True)
    assert b"deadbeef" not in (revived / "access.log").read_bytes()


async def test_what_cannot_be_noted_is_not_done(tmp_path, monkeypatch):
    async with opened(tmp_path) as store:
        await fill(store)
        log = (tmp_path / "access.log").read_bytes()
        (tmp_path / "access.log").unlink()
        (tmp_path / "access.log").mkdir()
        with pytest.raises(StoreError, match="nothing was recorded"):
            await store.accounts.remove("ada")
        assert "ada" in {one.username for one in await store.accounts.all()}
        (tmp_path / "access.log").rmdir()
        (tmp_path / "access.log").write_bytes(log)
        await store.accounts.remove("ada")


async def test_the_file_is_for_the_gateway_alone_and_does_not_grow_without_end(tmp_path, monkeypatch):
    path = tmp_path / "access.log"
    async with opened(tmp_path) as store:
        await fill(store)
        short = path.stat().st_size
        for _ in range(20):
            await store.accounts.put_role("porter", frozenset())
        long = path.stat()
    assert stat.S_IMODE(long.st_mode) == 0o600
    assert long.st_size > short
    async with opened(tmp_path):
        assert path.stat().st_size == long.st_size
    monkeypatch.setattr(access_log, "MOST_OUT_OF_DATE", 10)
    async with opened(tmp_path):
        assert path.stat().st_size <= short


async def test_no_copy_of_the_database_gives_a_second_factor(tmp_path):
    async with opened(tmp_path) as store:
        await fill(store)
        (kim,) = [one for one in await store.accounts.all() if one.username == "kim"]
        assert kim.totp_secret == SECRET
        assert await store.accounts.use_step("kim", SECRET, 5)
        assert not await store.accounts.use_step("kim", SECRET, 5)
        raw = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
        assert SECRET.encode() not in raw
    key = tmp_path / "second-factor.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    made = key.read_bytes()
    async with opened(tmp_path) as store:
        await store.accounts.set_second_factor("bob", SECRET, step=1, codes=())
        assert {one.totp_secret for one in await store.accounts.all()} == {"", SECRET}
    assert key.read_bytes() == made


async def test_a_second_factor_is_nowhere_on_disk_in_plain(tmp_path):
    async with opened(tmp_path) as store:
        await fill(store)
        assert SECRET in {one.totp_secret for one in await store.accounts.all()}
        assert all(SECRET.encode() not in path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert all(SECRET.encode() not in path.read_bytes() for path in tmp_path.iterdir() if path.is_file())


async def test_a_secret_in_plain_is_none(tmp_path):
    async with opened(tmp_path) as store:
        await fill(store)
    with closing(sqlite3.connect(tmp_path / "site.db")) as connection:
        connection.execute("UPDATE account SET totp_secret = ? WHERE username = 'kim'", (SECRET,))
        connection.commit()
    async with opened(tmp_path) as store:
        (kim,) = [one for one in await store.accounts.all() if one.username == "kim"]
        assert kim.totp_secret == UNREADABLE


async def test_without_its_key_there_still_is_a_second_factor(tmp_path):
    async with opened(tmp_path) as store:
        await fill(store)
    (tmp_path / "second-factor.key").unlink()
    async with opened(tmp_path) as store:
        (kim,) = [one for one in await store.accounts.all() if one.username == "kim"]
        assert kim.totp_secret == UNREADABLE
        assert not await store.accounts.use_step("kim", SECRET, 9)
        assert await store.accounts.use_recovery_code("kim", b"two")
        await store.accounts.set_second_factor("kim", SECRET, step=1, codes=())
        assert SECRET in {one.totp_secret for one in await store.accounts.all()}


async def test_what_is_sealed_for_one_opens_for_no_other(tmp_path):
    async with opened(tmp_path) as store:
        await fill(store)
    with closing(sqlite3.connect(tmp_path / "site.db")) as connection:
        connection.execute("UPDATE account SET totp_secret = (SELECT totp_secret FROM account WHERE username = 'kim')")
        connection.commit()
    async with opened(tmp_path) as store:
        found = {one.username: one.totp_secret for one in await store.accounts.all()}
    assert found == {"ada": UNREADABLE, "bob": UNREADABLE, "eve": UNREADABLE, "kim": SECRET}
