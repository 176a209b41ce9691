"""The local socket: the whole interface without a password, for whoever may open it."""

from __future__ import annotations

import getpass
import os
import pwd
import stat

import pytest
from aiohttp import ClientSession, UnixConnector

from gateway.domain.events import EventKind
from gateway.runtime.unix_sockets import INTERFACE_SOCKET
from gateway.web.register.changes import REGISTER_PATH, RELOAD_PATH, TRIAL_PATH, PutRole
from tests.gateway.web.setups.local import local

OWN_ROLE = PutRole(name="own", permissions=frozenset({"*"})).model_dump(mode="json")
COMMANDS = [(REGISTER_PATH, OWN_ROLE), (RELOAD_PATH, {"dry_run": True}), (TRIAL_PATH, {})]


def socket_of(folder):
    return folder / "run" / INTERFACE_SOCKET


async def test_only_the_owner_root_and_the_group_may_open_it(gateway, tmp_path):
    assert stat.S_IMODE(socket_of(tmp_path).stat().st_mode) == 0o660


async def test_every_operation_is_open_on_it_and_names_the_user(gateway, tmp_path):
    status, answer = await local(tmp_path, "/v1/device/list", {})
    assert (status, len(answer["devices"]) > 0) == (200, True)
    status, answer = await local(tmp_path, "/api/v1/webhooks", method="GET")
    assert (status, "webhooks" in answer) == (200, True)
    status, _ = await local(tmp_path, "/status/area/count", {"area_id": "garage", "count": 7})
    assert status == 200
    _, listed = await gateway.call("/v1/event/list", {"types": [EventKind.COUNT_CORRECTED]})
    (counted,) = listed["events"]
    assert f"local:{getpass.getuser()}" in counted["description"]


async def test_what_is_not_ready_is_told_on_it(gateway, tmp_path):
    _, answer = await local(tmp_path, "/health/ready", method="GET")
    assert {"headline", "problems"} <= answer.keys()


async def test_the_network_is_not_let_in_for_saying_localhost(gateway):
    async with gateway.client.post(f"{gateway.url}/v1/device/list", json={}, headers={"Host": "localhost"}) as answer:
        assert (await answer.json())["error"] == "authentication required"


async def test_a_stream_goes_on_as_long_as_it_is_read(gateway, tmp_path, monkeypatch):
    monkeypatch.setattr("gateway.web.status.live.CHECK_SECONDS", 0.0)
    connector = UnixConnector(str(socket_of(tmp_path)))
    async with (
        ClientSession(connector=connector) as client,
        client.get("http://localhost/status/live") as answer,
    ):
        said = []
        for number in range(4):
            said += [await answer.content.readline() for _ in range(3)]
            gateway.board.show(note=f"card {number}")  # something to say at once
    assert b"event: signed-out\n" not in said


async def test_a_process_of_the_gateway_itself_is_refused(gateway, tmp_path, monkeypatch):
    """A camera worker that was taken over has the gateway's user, and no business here."""
    nobody = pwd.getpwnam("nobody")
    monkeypatch.setattr("pwd.getpwuid", lambda _: nobody)
    status, answer = await local(tmp_path, "/v1/device/open", {"id": 101})
    assert (status, "own processes" in answer["error"]) == (403, True)
    assert (await local(tmp_path, "/api/v1/webhooks", method="GET"))[0] == 403
    assert (await local(tmp_path, REGISTER_PATH, OWN_ROLE))[0] == 403
    assert "own" not in [name for name, _ in await gateway.store.accounts.roles()]


@pytest.mark.parametrize(("path", "body"), COMMANDS)
async def test_only_root_and_the_owner_change_accounts_and_read_the_site_file_again(
    gateway, tmp_path, monkeypatch, path, body
):
    """Members of the group may open the socket, but had no right to these two."""
    monkeypatch.setattr("gateway.web.local_commands.peer_user", lambda _: os.geteuid() + 1)
    status, answer = await local(tmp_path, path, body)
    assert (status, answer["error"]) == (403, "only root and the gateway's own user may do this; try it with sudo")
    assert "own" not in [name for name, _ in await gateway.store.accounts.roles()]


@pytest.mark.parametrize(("path", "body"), COMMANDS)
async def test_the_network_does_not_find_what_commands_ask(gateway, path, body):
    for user in ("", "chief"):
        assert (await gateway.call(path, body, user=user))[0] == 404
    assert "own" not in [name for name, _ in await gateway.store.accounts.roles()]
