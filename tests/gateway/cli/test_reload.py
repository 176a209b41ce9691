"""`edge-gateway reload` and SIGHUP, beside a gateway that runs."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from aiohttp import ClientSession
from running_gateway import PASSWORD, PROGRAM, SITE, RunningGateway, give_account, typed
from running_house import at_work

CAMERA = """
[[cameras]]
id = {id}
name = "{name}"
url = "rtsp://127.0.0.1:1/main"
username = "viewer"
password = "camera"
"""
SECRETS = {"EDGE_GATEWAY_SECRET_CAMERA": "hush-hush"}


async def reload(data: Path, *options: str, status: int = 0) -> str:
    """Type the command; what it says."""
    done = await asyncio.to_thread(typed, "reload", "--data", data, *options)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


async def page(port: int, *, username: str = "chief", password: str = PASSWORD) -> dict:
    """Return the state that the page shows."""
    account = {"username": username, "password": password}
    async with ClientSession(f"http://127.0.0.1:{port}") as client:
        async with client.post("/v1/auth/login", json=account) as answer:
            headers = {"SessionID": (await answer.json())["session"]}
        async with client.get("/status/now", headers=headers) as answer:
            return (await answer.json())["snapshot"]


def notices(seen: dict) -> list[str]:
    """Return the page's notices about the site file."""
    return [problem["text"] for problem in seen["problems"] if problem["kind"] == "site_file_notice"]


@pytest.fixture
def soon_good(monkeypatch):
    """A change that did no harm is confirmed after a moment."""
    monkeypatch.setattr("gateway.site.running_site.GOOD_SECONDS", 0.1)


@pytest.fixture
def site(tmp_path):
    path = tmp_path / "site.toml"
    path.write_text(SITE)
    give_account(tmp_path / "data")
    return path


@pytest.mark.usefixtures("soon_good")
async def test_the_site_file_is_read_again_by_the_command_and_by_a_signal(site, tmp_path):
    data = tmp_path / "data"
    async with at_work(tmp_path, data, SECRETS) as gateway:
        port = await gateway.serves()
        assert "nothing is different" in await reload(data)

        site.write_text(SITE + CAMERA.format(id=7, name="Gate"))
        said = await reload(data, "--dry-run")
        assert said.splitlines() == ["camera 7 (Gate) was added", "nothing was changed yet"]
        assert (await page(port))["cameras"] == []
        said = json.loads(await reload(data, "--json"))
        assert (said["faults"], said["refused"], said["confirmed"]) == ([], [], True)
        assert [(one["part"], one["id"], one["how"], one["text"]) for one in said["changes"]] == [
            ("camera", "7", "added", "camera 7 (Gate) was added")
        ]
        seen = await page(port)
        assert [camera["name"] for camera in seen["cameras"]] == ["Gate"]
        assert notices(seen) == []

        site.write_text(SITE + "[live]\nviewers = 3\n")
        said = await reload(data, status=1)
        assert "[live] changes only with a restart" in said
        assert "Traceback" not in said
        await gateway.tells("site_file_needs_restart")
        seen = await page(port)
        assert [camera["name"] for camera in seen["cameras"]] == ["Gate"]
        (notice,) = notices(seen)
        assert notice == "the site file was changed and is not in use: [live] changes only with a restart"

        site.write_text(SITE + CAMERA.format(id="0", name="Gate") + "[storage]\nmedia_gigabytes = -1\n")
        said = await reload(data, status=2)
        assert "media_gigabytes" in said
        assert "keeps running as before" in said
        assert "Traceback" not in said
        await gateway.tells("site_file_not_taken")
        seen = await page(port)
        assert [camera["name"] for camera in seen["cameras"]] == ["Gate"]
        (notice,) = notices(seen)
        assert "has 2 faults and is not in use" in notice
        site.unlink()
        assert "cannot be read" in await reload(data, status=2)

        site.write_text(SITE + CAMERA.format(id=7, name="Main gate"))
        taken = len(gateway.told("site_file_taken"))
        for times in range(1, 4):
            signal.raise_signal(signal.SIGHUP)
            await gateway.tells("site_file_taken", times=taken + times)
        seen = await page(port)
        assert [camera["name"] for camera in seen["cameras"]] == ["Main gate"]
        assert notices(seen) == []
        signal.raise_signal(signal.SIGHUP)
    assert "hush-hush" not in str(gateway.log)
    assert "no gateway runs on" in await reload(data, status=1)


@pytest.mark.usefixtures("soon_good")
async def test_an_account_that_is_added_may_sign_in_and_the_port_stays(site, tmp_path):
    async with at_work(tmp_path, tmp_path / "data", SECRETS) as gateway:
        port = await gateway.serves()
        site.write_text(SITE + '[[api.accounts]]\nusername = "second"\npassword = "camera"\n')
        assert "account second was added" in await reload(tmp_path / "data")
        assert (await gateway.tells("interface_served", times=2))["port"] == port
        await page(port, username="second", password="hush-hush")


class Gateway(RunningGateway):
    """A gateway in a process of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "--data", folder / "data")


@pytest.mark.long("three starts of a gateway; test_trial_files has each moment at which it may be killed")
def test_a_change_that_was_not_confirmed_is_taken_back_after_kill_9(site, tmp_path):
    named = SITE.replace('name = "Small"', 'name = "Renamed"')
    with Gateway(tmp_path) as gateway:
        gateway.serves()
        site.write_text(named)
        asked = subprocess.Popen(
            [PROGRAM, "reload", "--data", tmp_path / "data"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        gateway.hears("site_file_taken")
        gateway.process.kill()
        asked.wait(timeout=30)
    assert (tmp_path / "data/site-file/trial").exists()
    with Gateway(tmp_path) as gateway:
        gateway.hears("site_file_returned")
        gateway.hears('"site": "Small"')
        assert site.read_text() == SITE
        assert site.with_name("site.toml.unconfirmed").read_text() == named
        assert gateway.end() == 0
    with Gateway(tmp_path) as gateway:
        gateway.serves()
        assert "site_file_returned" not in gateway.heard
        assert gateway.end() == 0


def test_a_signal_while_it_starts_does_not_end_it(site, tmp_path):
    with Gateway(tmp_path) as gateway:
        deadline = time.monotonic() + 40
        while not survives_hangup(gateway.process.pid):
            assert time.monotonic() < deadline
        while "interface_served" not in gateway.heard:
            gateway.process.send_signal(signal.SIGHUP)
            gateway.hears(".", times=len(gateway.heard.replace("\n", "")) + 1)
        assert gateway.end() == 0


def survives_hangup(pid: int) -> bool:
    """Return whether the process ignores or handles SIGHUP, which ends a process by default."""
    status = Path(f"/proc/{pid}/status").read_text()
    masks = [int(found, 16) for found in re.findall(r"Sig(?:Ign|Cgt):\s+([0-9a-f]+)", status)]
    return any(mask & 1 << signal.SIGHUP - 1 for mask in masks)
