"""`edge-gateway users` as a person types it: beside no gateway, and with one that runs."""

from __future__ import annotations

import asyncio
import re

import pytest
from aiohttp import ClientSession
from running_gateway import SITE
from running_house import at_work
from terminal import Terminal
from typer.testing import CliRunner

from gateway.cli.users import app
from gateway.domain.errors import ConfigError, GatewayError
from gateway.runtime.clock import SystemClock
from gateway.store import Store
from simulation.far_ends.central.accounts import totp

PASSWORD = "correct horse"


@pytest.fixture
def data(tmp_path):
    """A data folder that a gateway has used."""
    folder = tmp_path / ("deep-" * 25) / "data"  # longer than the name of a Unix socket may be
    folder.mkdir(parents=True)

    async def used() -> None:
        store = Store(folder=folder, site_name="Small", sends=False)
        await store.open()
        await store.close()

    asyncio.run(used())
    return folder


@pytest.fixture
def users(data):
    """Types a command; gives what it says, or how it is refused."""

    def call(*arguments, typed="", refused=None):
        result = CliRunner().invoke(app, [*arguments, "--data", str(data)], input=typed)
        if refused is not None:
            assert isinstance(result.exception, refused), result.output
            return str(result.exception)
        assert result.exit_code == 0, result.output + str(result.exception)
        return result.stdout

    return call


async def login(port: int, username: str, password: str) -> int:
    async with ClientSession() as client:
        body = {"username": username, "password": password}
        async with client.post(f"http://127.0.0.1:{port}/v1/auth/login", json=body) as answer:
            return answer.status


def test_a_password_by_a_pipe_that_is_not_utf_8_is_refused(users):
    said = users("add", "ada", "--role", "operator", typed="café horse\n".encode("latin-1"), refused=ConfigError)
    assert said == "the password on standard input is not text in UTF-8; write it again in UTF-8"


def test_accounts_beside_no_gateway(users):
    assert "ada may sign in, with the role operator" in users("add", "ada", "--role", "operator", typed=f"{PASSWORD}\n")
    assert users("list") == "ada  operator\n"
    users("disable", "ada")
    users("role", "ada", "viewer")
    assert users("list") == "ada  viewer, disabled\n"
    for faulty, said in (
        (("add", "ada", "--role", "viewer"), "there is an account 'ada' already"),
        (("add", "bob", "--role", "king"), "there is no role 'king'; there are administrator, operator, viewer"),
        (("password", "eve"), "there is no account 'eve'"),
    ):
        assert said in users(*faulty, typed=f"{PASSWORD}\n", refused=GatewayError)
    assert "no password was given" in users("add", "bob", "--role", "viewer", typed="", refused=ConfigError)
    assert "8 to 1000 characters" in users("add", "bob", "--role", "viewer", typed="short\n", refused=ConfigError)
    users("remove", "ada")
    assert "there are no accounts" in users("list")


def test_roles_and_keys(users):
    users("roles", "set", "porter", "can_view_devices", "can_control_devices")
    assert "porter: can_control_devices can_view_devices" in users("roles", "list")
    assert "'may_open' is no permission" in users("roles", "set", "porter", "may_open", refused=GatewayError)
    users("roles", "remove", "porter")
    key = users("key", "add", "app", "--may", "can_view_devices", "--days", "30").strip()
    assert re.fullmatch(r"egk_[\w-]{43}", key)
    listed = users("key", "list")
    assert re.fullmatch(r"app: can_view_devices, until \d{4}-\d\d-\d\d\n", listed)
    assert key not in listed
    users("key", "remove", "app")
    assert users("key", "list") == ""


async def test_a_running_gateway_takes_changes_over(users, data, tmp_path):
    (tmp_path / "site.toml").write_text(SITE)
    async with at_work(tmp_path, data, {}) as gateway:
        port = await gateway.serves()
        await asyncio.to_thread(users, "add", "ada", "--role", "viewer", typed=f"{PASSWORD}\n")
        assert await asyncio.to_thread(users, "list") == "ada  viewer\n"
        assert await login(port, "ada", PASSWORD) == 200
        await asyncio.to_thread(users, "disable", "ada")
        assert await login(port, "ada", PASSWORD) == 404
    assert await asyncio.to_thread(users, "list") == "ada  viewer, disabled\n"
    assert PASSWORD not in str(gateway.log)


def test_an_unclean_end_is_still_told_after_a_change(users, data):
    (data / "site.db.closed").unlink()
    users("list")

    async def found() -> bool:
        store = Store(folder=data, site_name="Small", sends=False)
        await store.open()
        unclean = store.was_unclean
        await store.close()
        return unclean

    assert asyncio.run(found())


def test_a_folder_without_a_gateway_is_named(tmp_path):
    result = CliRunner().invoke(app, ["list", "--data", str(tmp_path / "nowhere")])
    assert "no gateway has run on" in str(result.exception)


def test_an_authenticator_is_enrolled_in_a_terminal(users, data):
    users("add", "ada", "--role", "viewer", typed=f"{PASSWORD}\n")
    with Terminal("users", "mfa", "ada", "--data", data) as terminal:
        secret = terminal.hears(r"type this secret: ([A-Z2-7 ]+)")[1].replace(" ", "")
        assert len(re.findall("[▄▀█ ]{20,}", terminal.heard)) > 10
        terminal.hears("shows now")
        terminal.types("000000x")
        terminal.hears("not valid now.*shows now")
        terminal.types(totp(secret, SystemClock().wall().micros // 1_000_000))
        codes = re.findall(r"  ([a-z0-9]{4}(?:-[a-z0-9]{4}){3})", terminal.hears(r"(?:  \S+\s+){10}")[0])
        assert len(set(codes)) == 10
        assert terminal.ends() == 0
    assert users("list") == "ada  viewer, second factor, 10 recovery codes left\n"
    assert len(re.findall(r"-", users("recovery", "ada"))) >= 30
    users("mfa", "ada", "--off")
    assert users("list") == "ada  viewer\n"
    assert "has no second factor" in users("recovery", "ada", refused=GatewayError)
