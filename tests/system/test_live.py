"""Cameras watched live in a real browser: WebRTC by WHEP, from a running site."""

from __future__ import annotations

import pytest

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
    assert seen["decoded"] > 20
    assert seen["ended"] == 200
