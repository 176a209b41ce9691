"""Video beside its peers, on the same streams in the same run: recording, clips, live viewers, segments served.

Needs ffmpeg, Chromium, nginx and wrk (Debian's packages of these names); what is missing is said.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from figures import show
from free_ports import free_port
from processes import cpu_seconds, megabytes, tree
from running_gateway import give_account
from waiting import until

from drivers.rtsp.packetizer import LARGEST_PACKET

SIMULATORS = Path(__file__).parents[1] / "simulators"
CAMERAS = 8
WARM_SECONDS = 12.0
MEASURE_SECONDS = float(os.environ.get("BENCH_SECONDS", "60"))
SITE = """
[site]
name = "Bench"
[api]
port = {port}
[storage]
media_gigabytes = 5
free_floor_gigabytes = 0.1
"""
CAMERA = """
[[cameras]]
id = {id}
name = "Camera {id}"
url = "rtsp://127.0.0.1:{port}/{number}"
"""


def need(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is missing")
    return found


@contextmanager
def cameras(count: int, *, packet_bytes: int = LARGEST_PACKET) -> Iterator[int]:
    """The steady cameras in a process of their own; gives their port."""
    words = [sys.executable, str(SIMULATORS / "steady_cameras.py"), str(count), str(packet_bytes)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE)
    try:
        port, rate = (int(word) for word in process.stdout.readline().split())
        print(f"cameras: {count} x 1920x1080, {rate / 1e6:.2f} Mbit/s each")
        yield port
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


class Gateway:
    """A gateway that records the steady cameras."""

    def __init__(self, folder: Path, *, cameras_port: int, count: int, more: str = "") -> None:
        self.port = free_port()
        folder.mkdir(parents=True)
        text = SITE.format(port=self.port) + more
        text += "".join(CAMERA.format(id=200 + n, port=cameras_port, number=n) for n in range(1, count + 1))
        (folder / "site.toml").write_text(text)
        self.data = folder / "data"
        give_account(self.data, "demo", "demo")
        self.log = (folder / "log").open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gateway", "run", str(folder / "site.toml"), "--data", str(self.data)],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
        )  # fmt: skip
        self.session = ""

    def close(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=20)
        self.log.close()

    def call(self, path: str, body: object = None, method: str = "POST") -> bytes:
        data = None if method == "GET" else json.dumps(body or {}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=data, method=method)
        request.add_header("Content-Type", "application/json")
        request.add_header("SessionID", self.session)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()

    def sign_in(self) -> None:
        end = time.monotonic() + 30
        while True:
            try:
                told = json.loads(self.call("/v1/auth/login", {"username": "demo", "password": "demo"}))
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
            else:
                self.session = told["session"]
                return

    def until_recorded(self, segments: int) -> None:
        end = time.monotonic() + 60
        while len(list(self.data.rglob("*.ts"))) < segments:
            assert time.monotonic() < end, "nothing is recorded"
            time.sleep(0.1)


@pytest.fixture
def gateway(tmp_path):
    """Starts gateways, and ends them."""
    started: list[Gateway] = []

    def start(**more) -> Gateway:
        started.append(Gateway(tmp_path / f"gateway-{len(started)}", **more))
        started[-1].sign_in()
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.mark.benchmark
@pytest.mark.timeout(600)
@pytest.mark.parametrize("packet_bytes", [LARGEST_PACKET, 8_000])
def test_recording_beside_ffmpeg(gateway, tmp_path, packet_bytes):
    ffmpeg = need("ffmpeg")
    with cameras(CAMERAS, packet_bytes=packet_bytes) as port:
        ours = gateway(cameras_port=port, count=CAMERAS)
        ours.until_recorded(CAMERAS)
        our_cpu, our_rss, our_pss = measured(lambda: tree(ours.process.pid))
        base_rss, base_pss = megabytes([ours.process.pid])
        footage = sum(file.stat().st_size for file in ours.data.rglob("*.ts"))
        ours.process.send_signal(signal.SIGTERM)
        ours.process.wait(timeout=20)
        peers = [
            subprocess.Popen(
                [ffmpeg, "-v", "error", "-rtsp_transport", "tcp", "-i", f"rtsp://127.0.0.1:{port}/{number}",
                 "-c", "copy",
                 "-f", "hls", "-hls_time", "2", "-hls_list_size", "0", str(folder / "live.m3u8")],
                stdin=subprocess.DEVNULL,
            )
            for number in range(1, CAMERAS + 1)
            if (folder := tmp_path / f"peer-{number}").mkdir() is None
        ]  # fmt: skip
        try:
            their_cpu, their_rss, their_pss = measured(lambda: [peer.pid for peer in peers])
        finally:
            for peer in peers:
                peer.terminate()
            for peer in peers:
                peer.wait(timeout=20)
    hour = 3600 / MEASURE_SECONDS / CAMERAS
    print(f"footage written: {footage / 1e6:.0f} MB")
    what = f"recording a camera for an hour, packets of {packet_bytes:,} bytes"
    show(what, our_cpu * hour, "CPU s", peer=their_cpu * hour, beside="ffmpeg", aim=0.6)
    if packet_bytes == LARGEST_PACKET:
        show("memory with 8 cameras, shared pages counted once", our_pss, "MB", aim=90)
    print(f"  ffmpeg's {their_pss:.0f} MB")
    print(f"  resident: {our_rss:.0f} MB beside {their_rss:.0f} MB, ratio {our_rss / their_rss:.2f}")
    print(
        f"  of that the gateway itself, which runs without cameras too: {base_pss:.0f} MB, resident {base_rss:.0f} MB;"
        f" what records: {our_pss - base_pss:.0f} MB, ratio {(our_pss - base_pss) / their_pss:.2f}, resident"
        f" {our_rss - base_rss:.0f} MB, ratio {(our_rss - base_rss) / their_rss:.2f}"
    )
    assert footage > 0


@pytest.mark.benchmark
@pytest.mark.timeout(300)
def test_memory_with_24_cameras(gateway):
    with cameras(24) as port:
        ours = gateway(cameras_port=port, count=24)
        ours.until_recorded(24)
        time.sleep(WARM_SECONDS)
        _, pss = megabytes(tree(ours.process.pid))
    show("memory with 24 cameras, shared pages counted once", pss, "MB", aim=130)


def measured(pids) -> tuple[float, float, float]:
    """CPU seconds over the measuring time, and the memory at its end."""
    time.sleep(WARM_SECONDS)
    before = {pid: cpu_seconds([pid]) for pid in pids()}
    time.sleep(MEASURE_SECONDS)
    used = sum(cpu_seconds([pid]) - before.get(pid, 0.0) for pid in pids())
    return used, *megabytes(pids())


@pytest.mark.benchmark
@pytest.mark.timeout(300)
def test_segments_served_beside_nginx(gateway, tmp_path):
    """Measure the usual request of a player: a live segment of two seconds, by sendfile, with a session."""
    nginx, wrk = need("nginx"), need("wrk")
    with cameras(1) as port:
        ours = gateway(cameras_port=port, count=1)
        ours.until_recorded(4)
        playlist = ours.call("/v1/camera/live/201/index.m3u8", method="GET").decode()
        name = next(line for line in playlist.splitlines() if line.endswith(".ts"))
        data = ours.call(f"/v1/camera/live/201/{name}", method="GET")
        (tmp_path / "www").mkdir()
        (tmp_path / "www" / "segment.ts").write_bytes(data)
        (tmp_path / "www").chmod(0o755)
        peer_port = free_port()
        conf = tmp_path / "nginx.conf"
        conf.write_text(
            f"daemon off; user root; worker_processes 1; pid {tmp_path}/pid; error_log {tmp_path}/error;\n"
            "events { worker_connections 512; }\n"
            f"http {{ access_log off; sendfile on; tcp_nopush on; server {{ listen 127.0.0.1:{peer_port};"
            f" root {tmp_path}/www; }} }}\n"
        )
        peer = subprocess.Popen([nginx, "-c", str(conf), "-p", str(tmp_path)], stderr=subprocess.DEVNULL)
        try:
            time.sleep(1)
            figures: dict[str, list[float]] = {"ours": [], "nginx": []}
            for _ in range(3):
                figures["ours"].append(
                    served(wrk, f"http://127.0.0.1:{ours.port}/v1/camera/live/201/{name}", session=ours.session)
                )
                figures["nginx"].append(served(wrk, f"http://127.0.0.1:{peer_port}/segment.ts", session=""))
        finally:
            peer.terminate()
            peer.wait(timeout=20)
    mine, theirs = (statistics.median(figures[name]) for name in ("ours", "nginx"))
    print(f"segments of {len(data) / 1e6:.2f} MB, one process each")
    show("segments over HTTP", mine, "requests/s", peer=theirs, beside="nginx", aim=0.75, more=True)


def served(wrk: str, url: str, *, session: str) -> float:
    words = [wrk, "-t1", "-c8", "-d5s", "-H", f"SessionID: {session}", url]
    told = subprocess.run(words, capture_output=True, text=True, timeout=30, check=True).stdout
    assert "Non-2xx" not in told, told
    return float(next(line for line in told.splitlines() if line.startswith("Requests/sec")).split()[1])


@pytest.mark.benchmark
@pytest.mark.timeout(300)
def test_a_clip_of_30_seconds_beside_ffmpeg(tmp_path):
    """From request to last byte, the first time anybody asks: fifteen segments into one MP4 that plays at once."""
    asyncio.run(_clips(tmp_path))


async def _clips(tmp_path: Path) -> None:
    import aiohttp

    ffmpeg = need("ffmpeg")
    media = tmp_path / "media"
    with cameras(1) as port:
        socket_path = tmp_path / "worker.sock"
        process = subprocess.Popen(
            [sys.executable, "-m", "gateway.camera_worker", "--socket", str(socket_path), "--media", str(media)],
            stderr=subprocess.DEVNULL,
        )
        try:
            await until(socket_path.exists)
            async with aiohttp.ClientSession(
                base_url="http://worker", connector=aiohttp.UnixConnector(path=str(socket_path))
            ) as client:
                camera = {"camera_id": 1, "url": f"rtsp://127.0.0.1:{port}/1"}
                media.mkdir()
                async with client.put("/cameras", json={"media": str(media), "cameras": [camera]}) as answer:
                    assert answer.status == 204, await answer.text()
                await until(lambda: len(list(media.glob("1/*/*.ts"))) >= 17, within=300)
                files = sorted(media.glob("1/*/*.ts"))[1:16]
                listing = tmp_path / "list"
                listing.write_text("".join(f"file {file}\n" for file in files))
                ours, theirs = [], []
                for number in range(7):
                    began = time.perf_counter()
                    asked = {
                        "segments": [str(file.relative_to(media)) for file in files],
                        "output": f"clips/{number}.mp4",
                    }
                    async with client.post("/clips", json=asked) as answer:
                        assert answer.status == 200, await answer.text()
                    size = len((media / "clips" / f"{number}.mp4").read_bytes())
                    ours.append(time.perf_counter() - began)
                    began = time.perf_counter()
                    words = [ffmpeg, "-v", "error", "-f", "concat", "-safe", "0", "-i", str(listing), "-c", "copy",
                             "-movflags", "+faststart", "-y", str(tmp_path / f"{number}.mp4")]  # fmt: skip
                    await asyncio.to_thread(subprocess.run, words, check=True)
                    (tmp_path / f"{number}.mp4").read_bytes()
                    theirs.append(time.perf_counter() - began)

                async def clip(number: int) -> None:
                    asked = {
                        "segments": [str(file.relative_to(media)) for file in files],
                        "output": f"clips/{number}.mp4",
                    }
                    async with client.post("/clips", json=asked) as answer:
                        assert answer.status == 200, await answer.text()

                began = time.perf_counter()
                await asyncio.gather(*(clip(number) for number in range(100, 110)))
                ten = time.perf_counter() - began
        finally:
            process.kill()
            process.wait()
    mine, peer = statistics.median(ours), statistics.median(theirs)
    print(f"clip of 30 s, {size / 1e6:.1f} MB: {mine * 1000:.0f} ms beside ffmpeg -c copy's {peer * 1000:.0f} ms")
    print("ours is made durable (fsync), and ffmpeg's is not")
    show("a clip of 30 s", mine * 1000, "ms", peer=peer * 1000, beside="ffmpeg -c copy", aim=0.2)
    show("ten clips at once", ten * 1000, "ms", peer=mine * 1000, beside="one", aim=3)


WATCH = """
async (url) => {
  const pc = new RTCPeerConnection();
  const video = document.createElement('video');
  video.muted = video.autoplay = true;
  document.body.append(video);
  const began = performance.now();
  const first = new Promise((resolve) => video.requestVideoFrameCallback(() => resolve(performance.now() - began)));
  pc.addTransceiver('video', {direction: 'recvonly'});
  pc.ontrack = (event) => { video.srcObject = new MediaStream([event.track]); };
  await pc.setLocalDescription(await pc.createOffer());
  const answer = await fetch(url, {method: 'POST', body: pc.localDescription.sdp,
    headers: {'Content-Type': 'application/sdp'}});
  await pc.setRemoteDescription({type: 'answer', sdp: await answer.text()});
  const waited = await Promise.race([first, new Promise((resolve) => setTimeout(() => resolve(-1), 10000))]);
  await fetch(new URL(answer.headers.get('Location'), url), {method: 'DELETE'});
  pc.close();
  return waited;
}
"""


@pytest.mark.benchmark
@pytest.mark.timeout(300)
def test_the_first_picture_of_a_viewer_and_what_viewers_cost(gateway):
    from playwright.sync_api import sync_playwright

    with cameras(1) as port, sync_playwright() as playwright:
        ours = gateway(cameras_port=port, count=1)
        ours.until_recorded(2)
        stream = json.loads(ours.call("/v1/camera", {"id": 201}))["camera"]["stream"]
        browser = playwright.chromium.launch(executable_path=need("chromium"), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{ours.port}/health/live")
        first = page.evaluate(WATCH, stream)
        waits = []
        for _ in range(15):
            waits.append(page.evaluate(WATCH, stream))
            time.sleep(0.37)  # so that viewers come at different moments of a group of pictures
        browser.close()
        worker = [pid for pid in tree(ours.process.pid) if pid != ours.process.pid]
        idle = rate_of(worker)
        viewers = [subprocess.Popen([sys.executable, "-c", VIEWER, stream], stdout=subprocess.PIPE) for _ in range(4)]
        try:
            for viewer in viewers:
                assert viewer.stdout.readline() == b"playing\n"
            watched = rate_of(worker)
        finally:
            for viewer in viewers:
                viewer.kill()
                viewer.wait()
                viewer.stdout.close()
    print(f"first picture of a WHEP viewer in Chromium: the first viewer of all {first:.0f} ms;")
    print(
        f"  then median {statistics.median(waits):.0f} ms, longest {max(waits):.0f} ms of {len(waits)} (aim <= 500 ms)"
    )
    print(f"a viewer of 4 Mbit/s costs {(watched - idle) / 4 * 100:.2f} % of a core (facts: about 1.1 %)")
    assert min(waits) > 0


def rate_of(pids: list[int], seconds: float = 15.0) -> float:
    before = cpu_seconds(pids)
    time.sleep(seconds)
    return (cpu_seconds(pids) - before) / seconds


VIEWER = """
import sys, time
from itertools import chain
from contextlib import closing
from drivers.webrtc.whep_source import WhepSource
address, _, token = sys.argv[1].removeprefix("http://").partition("?token=")
source = WhepSource(url=f"whep://:{token}@{address}")
with closing(source):
    source.open()
    for number, frame in enumerate(chain.from_iterable(source.batches())):
        if number == 10:
            print("playing", flush=True)
"""
