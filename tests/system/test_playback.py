"""Footage of the site, played by others: ffmpeg, GStreamer, and Chromium by hls.js and by its own player; and linted.

Players with nothing but an address get one with a token.
"""

from __future__ import annotations

import shutil
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hls_linter import lint_all, lint_update
from lacks import lacks

from gateway.domain.events import EventKind
from simulation.demo.scene import GOOD_CARDS

pytestmark = pytest.mark.long("real players: ffmpeg, GStreamer, Chromium")

PLAYER = Path(__file__).parents[1] / "player" / "node_modules" / "hls.js" / "dist" / "hls.min.js"

PLAY = """
async ({url, session, seconds, native}) => {
  const video = document.createElement('video');
  video.muted = true;
  document.body.append(video);
  let frames = 0, fault = '';
  const count = () => { frames += 1; video.requestVideoFrameCallback(count); };
  video.requestVideoFrameCallback(count);
  if (native) {
    video.src = url;
  } else {
    const hls = new Hls(session ? {xhrSetup: (xhr) => xhr.setRequestHeader('SessionID', session)} : {});
    hls.on(Hls.Events.ERROR, (_, told) => { if (told.fatal) fault = told.details; });
    hls.loadSource(url);
    hls.attachMedia(video);
  }
  await new Promise((resolve) => {
    video.addEventListener('loadedmetadata', resolve, {once: true});
    video.addEventListener('error', resolve, {once: true});
    setTimeout(resolve, 20000);
  });
  if (video.readyState) await video.play();
  const end = performance.now() + 20000;
  const from = video.currentTime;
  while (performance.now() < end && !fault && video.currentTime - from < seconds && !video.ended) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return {frames, fault, at: video.currentTime - from, width: video.videoWidth, duration: video.duration,
    error: video.error && video.error.message};
}
"""


def need(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        lacks(f"{program} is missing")
    return found


class Footage:
    """A site with a passage that is on film."""

    def __init__(self, site, event) -> None:
        self.site = site
        self.event = event
        self.vod = f"/v1/camera/event/vod/{event['id']}"
        self.live = f"/v1/camera/live/{event['camera_id']}"

    def addresses(self) -> dict[str, str]:
        """Those for players that send no session."""
        camera = self.site.api.call("/v1/camera", id=self.event["camera_id"])["camera"]
        event = self.site.api.call("/v1/camera/event", id=self.event["id"])["event"]
        return {"live": camera["hls_url"], "vod": event["vod_url"], "clip": event["clip_url"]}

    def get(self, path: str) -> bytes:
        status, body, _ = self.site.api.raw("GET", path)
        assert status == 200, (path, status, body)
        return body

    def text(self, path: str) -> str:
        return self.get(path).decode()

    def linted(self, folder: str) -> list[str]:
        return lint_all(
            self.text(f"{folder}/master.m3u8"),
            self.text(f"{folder}/index.m3u8"),
            lambda uri: self.get(f"{folder}/{uri}"),
        )

    def decoded(self, path: str, *more: str, level: str = "warning") -> int:
        """Return how many frames ffmpeg decodes with a session, without a complaint of that level."""
        session = ("-headers", f"SessionID: {self.site.api.session}\r\n")
        return self.decoded_of(self.site.api.base + path, *session, *more, level=level)

    def decoded_of(self, url: str, *more: str, level: str = "warning") -> int:
        """Return how many frames ffmpeg decodes of an address, without a complaint of that level."""
        run = subprocess.run(
            [need("ffmpeg"), "-v", level, *more, "-i", url, "-map", "0:v:0", "-f", "framemd5", "-"],
            capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        assert run.returncode == 0, run.stderr.decode()
        assert not run.stderr, run.stderr.decode()
        return sum(not line.startswith(b"#") for line in run.stdout.splitlines())


@pytest.fixture(scope="module")
def footage(make_lasting_site, wait_until):
    site = make_lasting_site()
    wait_until(lambda: site.api.events(types=[EventKind.CARDS_CHANGED]), within=20, why="cards come from central")
    picture = "/v1/camera/thumbnail/201"
    wait_until(lambda: site.api.raw("GET", picture)[0] == 200, within=30, why="footage")
    site.present("entry", GOOD_CARDS[0].sent)
    ready = wait_until(
        lambda: [event for event in site.api.camera_events() if event["ready"]], within=60, why="a passage on film"
    )
    return Footage(site, ready[0])


def test_recorded_playlists_keep_the_rules_and_never_change(footage):
    assert footage.linted(footage.vod) == []
    for file, kept in (("index.m3u8", "immutable"), ("master.m3u8", "no-cache")):
        status, text, headers = footage.site.api.raw("GET", f"{footage.vod}/{file}")
        assert status == 200
        assert kept in headers["Cache-Control"]
        assert headers["Content-Type"] == "application/vnd.apple.mpegurl"
        assert footage.site.api.raw("GET", f"{footage.vod}/{file}", If_None_Match=headers["Etag"])[0] == 304
        assert footage.text(f"{footage.vod}/{file}") == text.decode()


def test_live_playlists_keep_the_rules_as_they_move_and_over_a_restart(footage, wait_until):
    index = f"{footage.live}/index.m3u8"
    wait_until(lambda: footage.text(index).count("#EXTINF") >= 6, within=40, why="six segments")
    first = footage.text(index)
    assert footage.linted(footage.live) == []
    moved = wait_until(lambda: (now := footage.text(index)) != first and now, within=20, why="it moves")
    assert lint_update(first, moved) == []
    footage.site.stop_gateway()
    footage.site.start_gateway()
    again = wait_until(
        lambda: footage.site.api.raw("GET", index)[0] == 200 and (now := footage.text(index)) != moved and now,
        within=40,
        why="it goes on after a restart",
    )
    assert lint_update(moved, again) == []
    longer = wait_until(
        lambda: "#EXT-X-DISCONTINUITY\n" in (now := footage.text(index)) and now, within=40, why="it tells of the break"
    )
    assert lint_update(again, longer) == []
    assert footage.linted(footage.live) == []


def test_ffmpeg_plays_all(footage, tmp_path):
    recorded = footage.decoded(f"{footage.vod}/master.m3u8")
    clip = footage.decoded(f"/v1/camera/event/clip/{footage.event['id']}")
    assert recorded >= clip > 50
    # at a discontinuity it warns of the counters that begin anew
    assert footage.decoded(f"{footage.live}/master.m3u8", "-t", "4", level="error") >= 30


def by_gstreamer(url: str, *more: str) -> int:
    """Return how many pictures GStreamer shows."""
    player = Path(__file__).parents[1] / "simulators" / "gst_hls_player.py"
    run = subprocess.run(["/usr/bin/python3", str(player), url, *more], capture_output=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr.decode()
    return int(run.stdout)


def test_gstreamer_plays_the_playlists_by_their_addresses(footage):
    found = footage.addresses()
    assert by_gstreamer(found["vod"]) == footage.decoded(f"{footage.vod}/master.m3u8")
    assert by_gstreamer(found["live"], "--pictures", "60") >= 60


def test_ffmpeg_plays_all_by_its_address(footage):
    found = footage.addresses()
    recorded, clip = footage.decoded_of(found["vod"]), footage.decoded_of(found["clip"])
    assert recorded >= clip > 50
    assert footage.decoded_of(found["live"], "-t", "4", level="error") >= 30


@pytest.fixture
def foreign_page(browser, tmp_path):
    """A page of another origin, without cookies: it can play by an address alone."""
    if not PLAYER.is_file():
        lacks("hls.js is missing: make test-all installs it")
    (tmp_path / "index.html").write_text("<!doctype html><title>Player</title>")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        with browser.new_context() as context:
            page = context.new_page()
            page.goto(f"http://127.0.0.1:{server.server_port}/index.html")
            page.add_script_tag(content=PLAYER.read_text())
            yield page
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("native", [False, True], ids=["hls.js", "the browser's own player"])
def test_a_page_of_another_origin_plays_all_by_its_address(footage, foreign_page, wait_until, native):
    """The browser's own player is what Safari is: it sets no header, and takes an address alone.

    Chromium's own player takes continuity counters that begin anew for an error, also at a discontinuity of the
    playlist. After a restart of the gateway it can play once that has moved out of the live playlist.
    """
    if native:
        index = f"{footage.live}/index.m3u8"
        wait_until(lambda: "#EXT-X-DISCONTINUITY\n" not in footage.text(index), within=90, why="the break has passed")
    for name, url in footage.addresses().items():
        by_itself = native or name == "clip"
        seen = foreign_page.evaluate(PLAY, {"url": url, "session": "", "seconds": 3, "native": by_itself})
        assert (seen["fault"], seen["error"]) == ("", None), (name, seen)
        assert seen["at"] >= 3, (name, seen)
        assert seen["frames"] > 15, (name, seen)


def test_no_token_is_in_a_log(footage):
    tokens = [url.partition("token=")[2] for url in footage.addresses().values()]
    log = footage.site.log.read_text()
    assert all(token and token not in log for token in tokens)


def test_chromium_plays_the_playlists_by_a_javascript_player_and_the_clip_by_itself(footage, browser):
    if not PLAYER.is_file():
        lacks("hls.js is missing: make test-all installs it")
    api = footage.site.api
    with browser.new_context(bypass_csp=True) as context:  # a player's own page has its own policy
        context.add_cookies([{"name": "session", "value": api.session, "url": api.base}])
        page = context.new_page()
        page.goto(f"{api.base}/health/live")
        page.add_script_tag(content=PLAYER.read_text())
        for path, native in (
            (f"{footage.vod}/master.m3u8", False),
            (f"{footage.live}/master.m3u8", False),
            (f"/v1/camera/event/clip/{footage.event['id']}", True),
        ):
            wanted = {"url": api.base + path, "session": api.session, "seconds": 3, "native": native}
            seen = page.evaluate(PLAY, wanted)
            assert (seen["fault"], seen["error"]) == ("", None), (path, seen)
            assert seen["at"] >= 3, (path, seen)
            assert seen["frames"] > 15, (path, seen)
            assert seen["width"] > 0
