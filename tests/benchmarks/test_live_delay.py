"""Delay of a browser behind the camera with live HLS, by hls.js and by the time that the playlist gives.

Run: pytest tests/benchmarks/test_live_delay.py -m benchmark -s
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.request import urlopen

import pytest
from free_ports import free_port
from playwright.sync_api import sync_playwright
from running_demo import running_demo
from waiting import wait_until

from gateway.cli.client import LocalConnection

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(180)]
PLAYER = Path(__file__).parents[1] / "player" / "node_modules" / "hls.js" / "dist" / "hls.min.js"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-web-security"]
CAMERA = 201
SECONDS = 6
JOINS = 4
ENOUGH = 6
PLAY = """
async ({url, seconds, lowLatencyMode}) => {
  const video = document.createElement('video');
  video.muted = true;
  document.body.append(video);
  const hls = new Hls({lowLatencyMode});
  let stalls = 0;
  hls.on(Hls.Events.ERROR, (_, told) => { if (told.details === 'bufferStalledError') stalls += 1; });
  hls.loadSource(url);
  hls.attachMedia(video);
  await new Promise((resolve) => hls.once(Hls.Events.FRAG_BUFFERED, resolve));
  await video.play();
  const behind = [];
  for (let second = 0; second < seconds; second++) {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    behind.push((Date.now() - hls.playingDate.getTime()) / 1000);
  }
  hls.destroy();
  video.remove();
  return {behind, stalls};
}
"""
PLAYERS = (("low latency", True, "master", 2.5), ("classic", False, "classic", 6.0))
"""What is measured, hls.js' `lowLatencyMode`, the playlist, and the most seconds that it may be behind."""


def test_delay_of_live_hls(tmp_path: Path) -> None:
    port = free_port()
    with running_demo(tmp_path / "demo", "--no-traffic", "--port", str(port)) as run, sync_playwright() as playwright:
        url = wait_until(lambda: live_address(run, port), within=60, why="enough footage")
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        page = browser.new_page()
        page.goto("about:blank")
        page.add_script_tag(content=PLAYER.read_text())
        target = re.search(r"TARGETDURATION:(\d+)", playlist(url))
        assert target
        print(f"\nlive HLS in hls.js, target duration {target[1]} s")
        for name, low_latency, file, aim in PLAYERS:
            address = url.replace("master.m3u8", f"{file}.m3u8")
            wanted = {"url": address, "seconds": SECONDS, "lowLatencyMode": low_latency}
            seen = [page.evaluate(PLAY, wanted) for _ in range(JOINS)]
            behind = sorted(second for join in seen for second in join["behind"])
            middle = behind[len(behind) // 2]
            met = "met" if middle <= aim else "MISSED"
            print(f"{name}: {middle:.2f} s behind (median), {behind[-1]:.2f} s at most", end="; ")
            print(f"{JOINS} joins, {sum(join['stalls'] for join in seen)} stalls; aim {aim:g} s: {met}")
        browser.close()


def live_address(run: Path, port: int) -> str:
    """The address for players without a session, once the playlist is long enough; "" before."""
    connection = LocalConnection(run)
    headers = {"Content-Type": "application/json", "Host": f"127.0.0.1:{port}"}
    connection.request("POST", "/v1/camera", json.dumps({"id": CAMERA}), headers)
    camera = json.loads(connection.getresponse().read())["camera"]
    connection.close()
    url = str(camera["hls_url"])
    try:
        return url if playlist(url).count("#EXTINF") >= ENOUGH else ""
    except OSError:  # not served yet
        return ""


def playlist(url: str) -> str:
    with urlopen(url.replace("master.m3u8", "index.m3u8")) as answer:
        return str(answer.read().decode())
