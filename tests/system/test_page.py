"""The page and the cameras of a running site in a real browser, on a phone's screen."""

from __future__ import annotations

import os

import pytest
from playwright.sync_api import expect
from stopwatch import Stopwatch

from gateway.domain.events import EventKind

pytestmark = pytest.mark.long("a real browser at a running site")

WATCH = """
async ({url, pictures}) => {
  const pc = new RTCPeerConnection();
  const video = document.createElement('video');
  video.muted = true; video.autoplay = true; video.playsInline = true;
  document.body.append(video);
  const began = performance.now();
  const first = new Promise((resolve) => video.requestVideoFrameCallback(() => resolve(performance.now() - began)));
  pc.addTransceiver('video', {direction: 'recvonly'});
  pc.ontrack = (event) => { video.srcObject = new MediaStream([event.track]); };
  await pc.setLocalDescription(await pc.createOffer());
  const answer = await fetch(url, {method: 'POST', body: pc.localDescription.sdp,
    headers: {'Content-Type': 'application/sdp'}});
  if (answer.status !== 201) return {status: answer.status, text: await answer.text()};
  await pc.setRemoteDescription({type: 'answer', sdp: await answer.text()});
  const waited = await Promise.race([first, new Promise((resolve) => setTimeout(() => resolve(-1), 30000))]);
  const received = async () => [...(await pc.getStats()).values()].find((one) => one.type === 'inbound-rtp');
  let stats = await received();
  while (!(stats?.framesDecoded >= pictures) && performance.now() - began < 40000) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    stats = await received();
  }
  const gone = await fetch(new URL(answer.headers.get('Location'), url), {method: 'DELETE'});
  pc.close();
  return {status: 201, first: waited, width: video.videoWidth, decoded: stats?.framesDecoded,
    lost: stats?.packetsLost, pli: stats?.pliCount, ended: gone.status, total: stats?.totalDecodeTime};
}
"""


@pytest.fixture(scope="module")
def site(make_lasting_site, wait_until):
    site = make_lasting_site(demo_page=True)
    wait_until(lambda: site.api.events(types=[EventKind.CARDS_CHANGED]), within=20, why="cards come from central")
    for camera in (201, 202):  # before its first footage a camera has no picture to load
        picture = f"/v1/camera/thumbnail/{camera}"
        wait_until(lambda picture=picture: site.api.raw("GET", picture)[0] == 200, within=30, why="footage")
    return site


@pytest.fixture
def page(browser, site):
    """The page as a technician sees it who has just signed in; the browser must not complain of it."""
    complaints: list[str] = []
    with browser.new_context(viewport={"width": 390, "height": 844}, is_mobile=True) as context:
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("requestfailed", lambda request: print(f"not loaded: {request.url} ({request.failure})"))
        page.goto(f"{site.api.base}/", wait_until="domcontentloaded")
        page.fill("input[name=username]", "demo")
        page.fill("input[name=password]", "demo")
        page.click("button[type=submit]")
        yield page
        assert complaints == []


def test_chromium_shows_a_camera_live(browser, site):
    stream = site.api.call("/v1/camera", id=201)["camera"]["stream"]
    assert stream.startswith(f"{site.api.base}/v1/camera/whep/201?token=")
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{site.api.base}/health/live")
        watch = Stopwatch(children=True)
        seen = page.evaluate(WATCH, {"url": stream, "pictures": 10})
    print(seen)
    assert seen["status"] == 201
    assert 0 < seen["first"] < 5000 + 1000 * watch.held_up()
    assert seen["width"] > 0
    assert seen["decoded"] >= 10
    assert seen["ended"] == 200


def test_a_technician_watches_a_camera_on_the_page(page):
    page.locator("#cameras button.picture").first.click()
    expect(page.locator("#cameras .live-state").first).to_have_text("Live")
    shown = "(({videoWidth, paused}) => [videoWidth, paused])(document.querySelector('#cameras video'))"
    size = page.evaluate(shown)
    assert size[0] > 0
    assert size[1] is False
    if folder := os.environ.get("PICTURES"):
        page.wait_for_timeout(1000)
        page.screenshot(path=f"{folder}/live-phone.png")
    page.locator("#cameras button.picture").first.click()
    expect(page.locator("#cameras .live-state").first).to_be_hidden()


def test_a_technician_sends_a_vehicle_and_watches_its_clip(page):
    entry = page.locator("#lanes > *").filter(has_text="North entry")
    expect(entry).to_contain_text("Gate closed")
    entry.get_by_role("button", name="valid card 1").click()
    expect(entry).to_contain_text("Gate open")
    expect(entry).to_contain_text("Gate closed")
    passed = page.locator("#events > *").filter(has_text="Vehicle passed").first
    expect(passed).to_be_visible()

    clip = passed.get_by_role("button")
    expect(clip).to_be_enabled(timeout=30_000)
    clip.click()
    page.wait_for_function(
        "() => { const video = document.querySelector('#video'); return video?.currentTime > 1 && !video.error }"
    )
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390, "the page is wider than the phone"


def test_a_killed_gateway_shows_nothing_live_sends_nothing_twice_and_is_found_again(browser, site):
    asked: list[str] = []
    before = len(site.api.events(types=[EventKind.COMMAND_RECORDED]))
    with browser.new_context() as context:
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url) if "/v1/device/open" in request.url else None)
        page.goto(f"{site.api.base}/status/lanes/entry")
        page.fill("input[name=username]", "demo")
        page.fill("input[name=password]", "demo")
        page.click("button[type=submit]")
        live = page.locator("#lane .live-state")
        expect(live).to_have_text("Live")
        site.kill_gateway()
        page.get_by_role("button", name="Open North entry").click(force=True)
        expect(page.get_by_text("Connection lost")).to_be_visible()
        expect(live).to_be_hidden()
        site.start_gateway()
        expect(page.get_by_text("Connection lost")).to_be_hidden(timeout=30_000)
        expect(live).to_have_text("Live")
    assert len(asked) <= 1
    assert len(site.api.events(types=[EventKind.COMMAND_RECORDED])) == before
