"""`edge-gateway demo`, as a newcomer runs it."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect
from stopwatch import Stopwatch

from gateway.domain.events import EventKind

pytestmark = pytest.mark.long("the demo, started as a newcomer does")

GATEWAY = b"simulation.demo.gateway"
_SPEC = importlib.util.spec_from_file_location("pictures", Path(__file__).parents[2] / "scripts" / "pictures.py")
pictures = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(pictures)


@pytest.fixture
def demo(tmp_path_factory, api_of, port):
    folder = tmp_path_factory.mktemp("d")
    words = ["demo", "--data", str(folder), "--port", str(port), "--central-port", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    yield process, api_of(port), folder
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
    assert process.stdout is not None
    process.stdout.close()


def gateway(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gateway", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )


def test_within_a_minute_there_is_traffic_and_a_clip(demo, wait_until, ffprobe, tmp_path):
    process, api, folder = demo
    watch = Stopwatch(children=True)
    wait_until(api.is_ready, within=40, why="the demo is up")
    api.sign_in()
    passed = wait_until(lambda: api.events(types=[EventKind.VEHICLE_PASSED]), within=50, why="a passage")
    proof = wait_until(
        lambda: next((e for e in api.camera_events() if e["ready"]), None), within=50, why="footage is complete"
    )
    status, clip, _ = api.raw("GET", f"/v1/camera/event/clip/{proof['id']}")
    assert status == 200, clip
    took = watch.seconds()
    (tmp_path / "clip.mp4").write_bytes(clip)
    assert ffprobe(tmp_path / "clip.mp4")["streams"][0]["codec_name"] == "h264"
    assert passed
    assert took < 60, f"it took {took:.0f} s"

    package = tmp_path / "proof.zip"
    words = ["evidence", str(proof["event_id"]), "--data", str(folder / "gateway")]
    fetched = gateway(*words, "-o", str(package))
    assert fetched.returncode == 0, fetched.stderr
    judged = gateway("evidence", "verify", str(package))
    assert judged.returncode == 0, judged.stderr
    assert "as it was signed by Demo car park" in judged.stdout
    assert f"clip-{proof['camera_id']}.mp4" in judged.stdout
    package.write_bytes(package.read_bytes().replace(clip[5000:5016], bytes(16), 1))
    broken = gateway("evidence", "verify", str(package))
    assert (broken.returncode, broken.stdout) == (1, "")
    assert f"clip-{proof['camera_id']}.mp4 was changed" in broken.stderr

    status, body, _ = api.raw("GET", "/", Accept="application/json")
    assert status == 200
    assert json.loads(body)["success"] is True

    refuses_a_taken_port_and_a_taken_folder_in_one_sentence(api, folder, tmp_path)
    process.send_signal(signal.SIGINT)
    words, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert f"{api.base}/status/" in words.replace("\n", " ")
    assert "Traceback" not in words


def refuses_a_taken_port_and_a_taken_folder_in_one_sentence(api, folder, tmp_path):
    port = api.base.rsplit(":", 1)[1]
    for words, said in (
        (["--port", port, "--data", str(tmp_path)], f"port {port} is in use"),
        (["--port", "0", "--data", str(folder)], "another demo runs in"),
    ):
        second = subprocess.run(
            [sys.executable, "-m", "gateway", "demo", *words], capture_output=True, text=True, timeout=30, check=False
        )
        assert second.returncode == 1
        assert said in second.stderr
        assert "Traceback" not in second.stderr
    assert api.is_ready()


def test_a_gateway_that_is_killed_comes_back_in_the_demo_and_ends_with_its_launcher(demo, wait_until):
    process, api, _ = demo
    wait_until(api.is_ready, within=40, why="the demo is up")
    (gateway,) = children(process.pid, GATEWAY)
    os.kill(gateway, signal.SIGKILL)
    wait_until(
        lambda: children(process.pid, GATEWAY) not in ([], [gateway]),
        within=20,
        why="it is started again",
    )
    wait_until(api.is_ready, within=40, why="it serves again")
    (gateway,) = children(process.pid, GATEWAY)
    process.kill()
    process.wait()
    wait_until(lambda: not Path(f"/proc/{gateway}").exists(), within=15, why="the gateway ends with its launcher")


def children(parent: int, word: bytes) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                owner = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if owner == parent and word in words:
                found.append(int(folder.name))
    return found


def test_the_readmes_picture_shows_the_page_as_it_is(demo, browser, wait_until):
    _, api, _ = demo
    wait_until(api.is_ready, within=40, why="the demo is up")
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{api.base}/status/")
        page.fill("#name-field", "demo")
        page.fill("#password-field", "demo")
        page.click("#sign-in-form button")
        expect(page.locator("#cameras article")).to_have_count(2)
        expect(page.locator("#lanes article .cards button")).to_have_count(15)
        outline = pictures.outline(page)
    assert outline == (pictures.DOCS / "status-page.txt").read_text(), "run `make pictures`, and look at them"
