"""Accounts of a site file of an older format: the register takes them over, once, and then the file has no say."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import ClientSession
from argon2 import PasswordHasher
from at_work import opened_store
from running_gateway import PASSWORD, SITE, typed
from running_house import at_work
from structlog.testing import capture_logs
from waiting import until

from gateway.app import file_accounts
from gateway.app.file_accounts import FileAccounts
from gateway.domain.events import EventKind
from gateway.runtime.clock import SystemClock
from gateway.site import FileAccount, Secrets
from gateway.store import EventFilter
from gateway.web.auth import accounts

SECOND = "another long one"
ACCOUNTS = """
[[api.accounts]]
username = "chief"
password = "chief"

[[api.accounts]]
username = "guard"
password = "guard"
permissions = ["can_view_devices"]
"""
ENVIRON = {"EDGE_GATEWAY_SECRET_CHIEF": PASSWORD, "EDGE_GATEWAY_SECRET_GUARD": SECOND}


@pytest.fixture
def site(tmp_path):
    path = tmp_path / "site.toml"
    path.write_text(SITE + ACCOUNTS)
    return path


@pytest.fixture
def data(tmp_path):
    return tmp_path / "data"


async def command(*words):
    """Type a command; how it ends, and what it says."""
    done = await asyncio.to_thread(typed, *words)
    return done.returncode, done.stdout + done.stderr


async def signs_in(port, username, password):
    """Return the status of a sign-in, and the role's permissions."""
    body = {"username": username, "password": password}
    async with ClientSession() as client, client.post(f"http://127.0.0.1:{port}/v1/auth/login", json=body) as answer:
        told = await answer.json()
        return answer.status, told["role"]["permissions"] if answer.status == 200 else None


async def test_they_sign_in_as_before_and_can_then_be_taken_out_of_the_file(site, data, tmp_path):
    status, said = await command("check", site, "--data", data)
    assert status == 0
    assert "warning: api.accounts[0].password: the register cannot take over 'chief': no secret 'chief'" in said
    rewrite = ("check", "--rewrite", site, "--data", data)
    status, said = await command(*rewrite)
    assert status == 2
    assert "has no account chief, guard yet: start or reload the gateway with this file first" in said
    async with at_work(tmp_path, data, ENVIRON) as gateway:
        port = await gateway.serves()
        assert await signs_in(port, "chief", PASSWORD) == (200, ["*"])
        assert await signs_in(port, "guard", SECOND) == (200, ["can_view_devices"])
        (told,) = gateway.told("accounts_taken_over")
        assert told["added"] == ["chief", "guard"]
        assert "take [[api.accounts]] and their secrets out of the file" in told["advice"]
        _, listed = await command("users", "list", "--data", data)
        assert [line.split() for line in listed.splitlines()] == [["chief", "administrator"], ["guard", "guard"]]
        status, said = await command("check", site, "--data", data)  # which finds no secret
        assert (status, "cannot take over" in said, "nobody can sign in" in said) == (0, False, False)
    assert (await command(*rewrite))[0] == 0
    assert "api" not in site.read_text().partition("[api]\nport = 0\n")[2]
    async with at_work(tmp_path, data, {}) as gateway:  # without the passwords, too
        port = await gateway.serves()
        assert await signs_in(port, "chief", PASSWORD) == (200, ["*"])
        assert not gateway.told("accounts_taken_over")


@pytest.mark.usefixtures("site")
async def test_what_the_register_says_since_counts_though_the_file_has_them_still(data, tmp_path):
    async with at_work(tmp_path, data, ENVIRON) as gateway:
        await gateway.serves()
        assert (await command("users", "remove", "guard", "--data", data))[0] == 0
    environ = ENVIRON | {"EDGE_GATEWAY_SECRET_CHIEF": "another in the file"}
    async with at_work(tmp_path, data, environ) as gateway:
        port = await gateway.serves()
        assert (await signs_in(port, "guard", SECOND))[0] == 404
        assert (await signs_in(port, "chief", "another in the file"))[0] == 404
        assert (await signs_in(port, "chief", PASSWORD))[0] == 200


@pytest.fixture
async def store(tmp_path):
    async with opened_store(tmp_path) as store:
        yield store


@pytest.fixture
def taking(store, tmp_path):
    """The takeover, with what it told, and the guessable passwords that it met."""
    said, guessable = [], {}
    environ = {"EDGE_GATEWAY_SECRET_ADA": "seven grey herons", "EDGE_GATEWAY_SECRET_TECH": "tech2024"}
    return FileAccounts(
        accounts=store.accounts,
        secrets=Secrets(folder=tmp_path, environ=environ),
        clock=SystemClock(),
        guessable=guessable,
        tell=said.append,
        changed=lambda: said.append("changed"),
    ), said, guessable  # fmt: skip


ADA, TECH, GONE = (FileAccount(username=name, password=name) for name in ("ada", "tech", "gone"))


async def test_one_without_its_password_is_left_and_an_account_of_the_register_stays(taking, store):
    taken, said, guessable = taking
    await store.accounts.add("ada", password_hash="her own", role="viewer", now=1)
    await taken.begin([ADA, TECH, GONE])
    known = {one.username: one for one in await store.accounts.all()}
    assert {name: one.role for name, one in known.items()} == {"ada": "viewer", "tech": "administrator"}
    assert known["ada"].password_hash == "her own"
    assert guessable["tech"] == known["tech"].password_hash
    assert [str(one).partition(";")[0] for one in said] == [
        "The register has taken over tech from the site file", "The register had ada already and keeps its own",
    ]  # fmt: skip


async def test_while_the_disk_refuses_it_is_tried_again(taking, store, tmp_path, monkeypatch):
    monkeypatch.setattr(file_accounts, "AGAIN_SECONDS", 0.01)
    taken, said, _ = taking
    (tmp_path / "access.log").unlink()
    (tmp_path / "access.log").mkdir()
    with capture_logs() as logs:
        await taken.begin([ADA])
    assert [line["event"] for line in logs] == ["accounts_not_taken_over"]
    assert await store.accounts.all() == ()
    running = asyncio.get_running_loop().create_task(taken.run())
    (tmp_path / "access.log").rmdir()
    await until(lambda: "changed" in said)
    running.cancel()
    assert [one.username for one in await store.accounts.all()] == ["ada"]


async def test_while_memory_is_short_it_is_tried_again(taking, store, monkeypatch):
    taken, _, _ = taking
    with monkeypatch.context() as patch:
        patch.setattr(accounts, "HASHER", PasswordHasher(memory_cost=2**31))  # 2 TiB
        await taken.begin([ADA])
        assert await store.accounts.all() == ()
    await taken.begin([ADA])
    assert [one.username for one in await store.accounts.all()] == ["ada"]


@pytest.mark.parametrize("confirms", [True, False])
async def test_a_change_on_trial_brings_no_account_before_it_is_confirmed(site, data, tmp_path, confirms):
    site.write_text(SITE)
    async with at_work(tmp_path, data, ENVIRON | {"EDGE_GATEWAY_SECRET_NEXT": SECOND}) as gateway:
        await gateway.serves()
        assert gateway.told("no_account_can_sign_in")
        _, said = await command("check", site, "--data", data)
        assert "; nobody can sign in: see edge-gateway users" in said
        site_file = gateway.gateway.services.site_file
        site.write_text(SITE + ACCOUNTS)
        done = await site_file.reload(asks_person=True)
        assert tuple(map(str, done.words())) == ("account chief was added", "account guard was added")
        store = gateway.gateway.store
        assert await store.accounts.all() == ()
        (site_file.confirm if confirms else site_file.take_back)(by="user:ada")
        await site_file.outcome()
        if confirms:
            port = (await gateway.tells("interface_served", times=2))["port"]
            assert (await signs_in(port, "chief", PASSWORD))[0] == 200
            assert await gateway.gateway.lanes.recorder.drained(within=10)
            page = await store.events.page(EventFilter(types=(int(EventKind.ACCOUNT_CHANGED),)))
            (event,) = page.events
            assert event.description.startswith("The register has taken over chief, guard from the site file;")
        else:
            assert site.read_text() == SITE
            site.write_text(SITE + ACCOUNTS.replace("chief", "next"))  # what was taken back has had its time by then
            assert (await site_file.reload(asks_person=True)).on_trial
            site_file.confirm(by="user:ada")
            await gateway.tells("accounts_taken_over")
            assert [one.username for one in await store.accounts.all()] == ["guard", "next"]
