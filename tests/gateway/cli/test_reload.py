"""`edge-gateway reload` and SIGHUP, beside a gateway that runs."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest
from running_gateway import PASSWORD, PROGRAM, SECRETS, SITE, RunningGateway, typed

CAMERA = """
[[cameras]]
id = {id}
name = "{name}"
url = "rtsp://127.0.0.1:1/main"
username = "viewer"
password = "camera"
"""
CAMERA_SECRETS = {"EDGE_GATEWAY_SECRET_CAMERA": "hush-hush"}


class Gateway(RunningGateway):
    """A gateway whose site file is read again."""

    def __init__(self, folder: Path, *, keep: bool = False) -> None:
        self.data = folder / "data"
        if not keep:
            (folder / "site.toml").write_text(SITE)
        super().__init__(folder, "--data", self.data, **SECRETS, **CAMERA_SECRETS)

    def reload(self, *options: str, status: int = 0) -> str:
        """Type the command; what it says."""
        done = typed("reload", "--data", self.data, *options)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    def page(self, port: int, *, username: str = "chief", password: str = PASSWORD) -> dict:
        """Return the state that the page shows."""
        base = f"http://127.0.0.1:{port}"
        body = json.dumps({"username": username, "password": password}).encode()
        asked = urllib.request.Request(f"{base}/v1/auth/login", data=body, headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(asked, timeout=30) as answer:
            session = json.load(answer)["session"]
        with urllib.request.urlopen(
            urllib.request.Request(f"{base}/status/live", headers={"SessionID": session}), timeout=30
        ) as answer:
            for line in answer:
                if line.startswith(b"data: ") and b'"cameras"' in line:
                    return json.loads(line.removeprefix(b"data: "))
        raise AssertionError("the page's stream ended")


def notices(seen: dict) -> list[str]:
    """Return the page's notices about the site file."""
    return [problem["text"] for problem in seen["problems"] if problem["kind"] == "site_file_notice"]


@pytest.fixture
def gateway(tmp_path):
    with Gateway(tmp_path) as running:
        yield running


def test_the_site_file_is_read_again_by_the_command_and_by_a_signal(gateway):
    port = gateway.serves()
    assert "nothing is different" in gateway.reload()

    gateway.site.write_text(SITE + CAMERA.format(id=7, name="Gate"))
    assert gateway.reload("--dry-run").splitlines() == ["camera 7 (Gate) was added", "nothing was changed yet"]
    assert gateway.page(port)["cameras"] == []
    said = json.loads(gateway.reload("--json"))
    assert (said["faults"], said["refused"], said["confirmed"]) == ([], [], True)
    assert [(one["part"], one["id"], one["how"], one["text"]) for one in said["changes"]] == [
        ("camera", "7", "added", "camera 7 (Gate) was added")
    ]
    seen = gateway.page(port)
    assert [camera["name"] for camera in seen["cameras"]] == ["Gate"]
    assert notices(seen) == []
    gateway.hears("nothing listens at the camera's address")

    gateway.site.write_text(SITE + "[live]\nviewers = 3\n")
    said = gateway.reload(status=1)
    assert "[live] changes only with a restart" in said
    assert "Traceback" not in said
    gateway.hears("site_file_needs_restart")
    seen = gateway.page(port)
    assert [camera["name"] for camera in seen["cameras"]] == ["Gate"]
    (notice,) = notices(seen)
    assert notice == "the site file was changed and is not in use: [live] changes only with a restart"

    gateway.site.write_text(SITE + CAMERA.format(id="0", name="Gate") + "[storage]\nmedia_gigabytes = -1\n")
    said = gateway.reload(status=2)
    assert "media_gigabytes" in said
    assert "keeps running as before" in said
    assert "Traceback" not in said
    gateway.hears("site_file_not_taken")
    seen = gateway.page(port)
    assert [camera["name"] for camera in seen["cameras"]] == ["Gate"]
    (notice,) = notices(seen)
    assert "has 2 faults and is not in use" in notice
    gateway.site.unlink()
    assert "cannot be read" in gateway.reload(status=2)

    gateway.site.write_text(SITE + CAMERA.format(id=7, name="Main gate"))
    taken = gateway.heard.count("site_file_taken")
    for times in range(1, 4):
        gateway.process.send_signal(signal.SIGHUP)
        gateway.hears("site_file_taken", times=taken + times)
    seen = gateway.page(port)
    assert [camera["name"] for camera in seen["cameras"]] == ["Main gate"]
    assert notices(seen) == []

    gateway.process.send_signal(signal.SIGHUP)
    assert gateway.end() == 0
    assert "hush-hush" not in gateway.heard
    assert "no gateway runs on" in gateway.reload(status=1)


def test_an_account_that_is_added_may_sign_in_and_the_port_stays(gateway):
    port = gateway.serves()
    gateway.site.write_text(SITE + '[[api.accounts]]\nusername = "second"\npassword = "camera"\n')
    assert "[api]: changed accounts" in gateway.reload()
    assert int(gateway.hears(r'"port": (\d+), "event": "interface_served"', times=2)) == port
    gateway.page(port, username="second", password="hush-hush")
    assert gateway.end() == 0


def test_a_change_that_was_not_confirmed_is_taken_back_after_kill_9(tmp_path):
    named = SITE.replace('name = "Small"', 'name = "Renamed"')
    with Gateway(tmp_path) as gateway:
        gateway.serves()
        gateway.site.write_text(named)
        asked = subprocess.Popen(
            [PROGRAM, "reload", "--data", gateway.data], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        gateway.hears("site_file_taken")
        gateway.process.kill()
        asked.wait(timeout=30)
    assert (tmp_path / "data/site-file/trial").exists()
    with Gateway(tmp_path, keep=True) as gateway:
        gateway.hears("site_file_returned")
        gateway.hears('"site": "Small"')
        assert gateway.site.read_text() == SITE
        assert gateway.site.with_name("site.toml.unconfirmed").read_text() == named
        assert gateway.end() == 0
    with Gateway(tmp_path, keep=True) as gateway:
        gateway.serves()
        assert "site_file_returned" not in gateway.heard
        assert gateway.end() == 0


def test_a_signal_while_it_starts_does_not_end_it(gateway):
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
