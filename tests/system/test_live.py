"""Cameras watched live in a real browser: WebRTC by WHEP, from a running site."""

from __future__ import annotations

import os

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.timeout(120)

WATCH = """
async ({url, hold}) => {
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
  const waited = await Promise.race([first, new Promise((resolve) => setTimeout(() => resolve(-1), 10000))]);
  await new Promise((resolve) => setTimeout(resolve, hold));
  const stats = [...(await pc.getStats()).values()].find((one) => one.type === 'inbound-rtp');
  const gone = await fetch(new URL(answer.headers.get('Location'), url), {method: 'DELETE'});
  pc.close();
  return {status: 201, first: waited, width: video.videoWidth, decoded: stats?.framesDecoded,
    lost: stats?.packetsLost, pli: stats?.pliCount, ended: gone.status, total: stats?.totalDecodeTime};
}
"""


def test_chromium_shows_a_camera_live(browser, make_site, wait_until):
    site = make_site()
    wait_until(lambda: site.api.raw("GET", "/v1/camera/thumbnail/201")[0] == 200, within=30, why="footage")
    stream = site.api.call("/v1/camera", id=201)["camera"]["stream"]
    assert stream.startswith(f"{site.api.base}/v1/camera/whep/201?token=")
    page = browser.new_page()
    page.goto(f"{site.api.base}/health/live")
    seen = page.evaluate(WATCH, {"url": stream, "hold": 1500})
    print(seen)
    assert seen["status"] == 201
    assert 0 < seen["first"] < 5000
    assert seen["width"] > 0
    assert seen["decoded"] >= 10
    assert seen["ended"] == 200


def test_a_technician_watches_a_camera_on_the_page(browser, make_site, wait_until):
    site = make_site()
    for camera in (201, 202):  # before its first footage a camera has no picture to load
        picture = f"/v1/camera/thumbnail/{camera}"
        wait_until(lambda picture=picture: site.api.raw("GET", picture)[0] == 200, within=30, why="footage")
    page = browser.new_context(viewport={"width": 390, "height": 844}, is_mobile=True).new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.goto(f"{site.api.base}/", wait_until="domcontentloaded")
    page.fill("input[name=username]", "demo")
    page.fill("input[name=password]", "demo")
    page.click("button[type=submit]")
    page.locator("#cameras button.picture").first.click()
    expect(page.locator("#monitor-state")).to_have_text("Live", timeout=15_000)
    shown = "(({videoWidth, paused}) => [videoWidth, paused])(document.getElementById('monitor-video'))"
    size = page.evaluate(shown)
    assert size[0] > 0
    assert size[1] is False
    if folder := os.environ.get("PICTURES"):
        page.wait_for_timeout(1000)
        page.screenshot(path=f"{folder}/live-phone.png")
    page.click("#monitor-close")
    expect(page.locator("#monitor")).to_be_hidden()
    assert complaints == []
