"""A real worker process, real cameras, and ffmpeg as the judge of what was written."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import sys
import time
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import aiohttp
import pytest
from lacks import lacks
from stopwatch import seconds_to_end
from waiting import until

from drivers.rtsp.server import testcard
from drivers.rtsp.server.fanout import Fanout
from drivers.rtsp.server.messages import Credentials
from drivers.rtsp.server.server import RtspServer, ServedStream
from gateway.domain.footage import RtspServing, SegmentFinished, WorkerBeat, WorkerCamera

SIMULATORS = Path(__file__).parents[2] / "simulators"
UNROUNDED = ("-fps_mode", "passthrough", "-enc_time_base", "1:90000")
"""Else two pictures closer than the frame rate would have it are a complaint, and ffmpeg guesses that rate."""


def _need(program: str, package: str) -> str:
    found = shutil.which(program)
    if found is None:
        lacks(f"{program} is missing (Debian package {package})")
    return found


@dataclass
class Judge:
    """ffmpeg and ffprobe, Debian's, which share no code with what wrote the files."""

    ffmpeg: str
    ffprobe: str

    def decode(self, *files: Path) -> str:
        """Return ffmpeg's complaints when it decodes these files as one stream; "" when it has none."""
        data = b"".join(file.read_bytes() for file in files)
        kind = "mov" if files[0].suffix == ".mp4" else "mpegts"
        run = subprocess.run(
            [self.ffmpeg, "-v", "error", "-f", kind, "-i", "-", *UNROUNDED, "-f", "null", "-"]
            if kind == "mpegts"
            else [self.ffmpeg, "-v", "error", "-i", str(files[0]), *UNROUNDED, "-f", "null", "-"],
            input=data,
            capture_output=True,
            timeout=20,
            check=False,
        )
        return run.stderr.decode() or ("" if run.returncode == 0 else f"status {run.returncode}")

    def frames(self, file: Path) -> list[str]:
        """The hash of each frame that is shown, in order."""
        run = subprocess.run(
            [self.ffmpeg, "-v", "error", "-i", str(file), "-an", "-fps_mode", "passthrough", "-f", "framemd5", "-"],
            capture_output=True,
            timeout=20,
            check=True,
        )
        lines = run.stdout.decode().splitlines()
        return [line.rsplit(",", 1)[1].strip() for line in lines if not line.startswith("#")]

    def probe(self, file: Path) -> dict:
        run = subprocess.run(
            [self.ffprobe, "-v", "error", "-of", "json", "-show_format", "-show_streams", "-show_packets", str(file)],
            capture_output=True,
            timeout=20,
            check=True,
        )
        assert not run.stderr, run.stderr
        return json.loads(run.stdout)


@pytest.fixture(scope="session")
def judge() -> Judge:
    return Judge(_need("ffmpeg", "ffmpeg"), _need("ffprobe", "ffmpeg"))


@pytest.fixture
def encoded():
    """Frames of a test picture, made as fast as they can be: `encoded(seconds, width=...)`."""

    def make(seconds: float, *, width: int = 320, height: int = 180, rate: int = 10) -> list:
        card = testcard.TestCard(
            name="T", time_code=lambda: "0", width=width, height=height, rate=Fraction(rate), monotonic=lambda: 0.0
        )
        return [frame for _ in range(int(seconds * rate)) for frame in card.encode()]

    return make


class GstCamera:
    """GStreamer's RTSP server as a camera that can be switched off and on."""

    def __init__(self, *arguments: str, program: str = "gst_rtsp_server.py") -> None:
        self._arguments = arguments
        self._program = program
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    def on(self) -> None:
        port = ("--port", str(self.port))
        self._process = subprocess.Popen(
            ["/usr/bin/python3", str(SIMULATORS / self._program), *port, *self._arguments], stdout=subprocess.PIPE
        )
        self.port = int(self._process.stdout.readline())

    def off(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()
            self._process = None

    async def answers(self) -> bool:
        """Return whether its server answers a new caller at all."""
        try:
            async with asyncio.timeout(10):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                try:
                    writer.write(f"OPTIONS {self.url()} RTSP/1.0\r\nCSeq: 1\r\n\r\n".encode())
                    line = await reader.readline()
                finally:
                    writer.close()
        except (TimeoutError, OSError):
            return False
        return line.startswith(b"RTSP/1.0 200")

    def url(self, account: str = "") -> str:
        return f"rtsp://{account}127.0.0.1:{self.port}/cam"


@pytest.fixture(scope="session")
def gst_rtsp_server() -> None:
    """GStreamer's RTSP server, as far as it is there at all."""
    check = subprocess.run(
        ["/usr/bin/python3", "-c", "import gi; gi.require_version('GstRtspServer', '1.0')"],
        capture_output=True,
        check=False,
    )
    if check.returncode != 0:
        text = "GStreamer's RTSP server is missing (Debian packages python3-gi gir1.2-gst-rtsp-server-1.0)"
        lacks(text)


@pytest.fixture
def gst_camera(gst_rtsp_server):
    """`gst_camera(*arguments)`: a camera that is on."""
    cameras: list[GstCamera] = []

    def start(*arguments: str, program: str = "gst_rtsp_server.py") -> GstCamera:
        camera = GstCamera(*arguments, program=program)
        cameras.append(camera)
        camera.on()
        return camera

    yield start
    for camera in cameras:
        camera.off()


@dataclass
class OwnCamera:
    """Our RTSP server with the test picture."""

    stream: ServedStream
    server: RtspServer
    url: str


@pytest.fixture
async def own_camera():
    """`await own_camera(credentials=None)`: a camera of ours that streams."""
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        running = []

        async def start(credentials: Credentials | None = None) -> OwnCamera:
            feed = Fanout()
            card = testcard.TestCard(name="own", time_code=lambda: "0", width=320, height=180, keyframe_seconds=0.25)
            running.append(group.create_task(card.run(feed)))
            stream = ServedStream(feed=feed, credentials=credentials)
            server = await stack.enter_async_context(RtspServer(streams={"/own": stream}))
            return OwnCamera(stream, server, server.url("/own"))

        yield start
        for task in running:
            task.cancel()


@dataclass
class Worker:
    """One worker process with a reader of its reports."""

    media: Path
    socket: Path
    process: subprocess.Popen[bytes]
    reports: list = field(default_factory=list)

    @asynccontextmanager
    async def session(self):
        async with aiohttp.ClientSession(
            base_url="http://worker", connector=aiohttp.UnixConnector(str(self.socket))
        ) as session:
            yield session

    async def ask(self, method: str, path: str, body: object = None) -> tuple[int, dict]:
        async with self.session() as session, session.request(method, path, json=body) as response:
            text = await response.text()
            return response.status, json.loads(text) if text else {}

    async def assign(self, *cameras: WorkerCamera, rtsp: RtspServing | None = None) -> None:
        body = {"media": str(self.media), "cameras": [camera.model_dump() for camera in cameras]}
        if rtsp is not None:
            body["rtsp"] = rtsp.model_dump()
        assert await self.ask("PUT", "/cameras", body) == (204, {})

    def segments(self, camera_id: int = 1) -> list[SegmentFinished]:
        return [r for r in self.reports if isinstance(r, SegmentFinished) and r.camera_id == camera_id]

    def conditions(self, camera_id: int = 1) -> list[str]:
        said = [r.condition for r in self.reports if r.kind == "camera" and r.camera_id == camera_id]
        return [now for before, now in zip([None, *said], said, strict=False) if now != before]

    async def until(self, condition, seconds: float = 30.0) -> float:
        """Wait until `condition()` holds; how long that took."""
        begun = time.monotonic()
        try:
            await until(condition, within=seconds)
        except AssertionError as error:
            error.add_note(str([r for r in self.reports if not isinstance(r, WorkerBeat)]))
            raise
        return time.monotonic() - begun

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def terminate(self) -> float:
        """Let it end in order; return the seconds that it took for that."""
        self.process.send_signal(signal.SIGTERM)
        took = seconds_to_end(self.process)
        assert self.process.returncode == 0
        return took


@pytest.fixture
async def start_worker(tmp_path):
    """`await start_worker()`: a new worker on the same media folder, its reports being read."""
    from pydantic import TypeAdapter

    from gateway.domain.footage import WorkerReport

    adapter = TypeAdapter(WorkerReport)
    workers: list[Worker] = []
    reading: list[asyncio.Task] = []
    media = tmp_path / "media"
    media.mkdir()

    async def read(worker: Worker) -> None:
        try:
            async with worker.session() as session, session.get("/reports") as response:
                async for line in response.content:
                    worker.reports.append(adapter.validate_json(line))
        except aiohttp.ClientError:
            return  # killed, as tests do

    async with asyncio.TaskGroup() as group:

        async def start(*, read_reports: bool = True) -> Worker:
            socket = tmp_path / f"worker-{len(workers)}.sock"
            words = [sys.executable, "-m", "gateway.camera_worker", "--socket", str(socket), "--media", str(media)]
            process = subprocess.Popen(words)
            worker = Worker(media, socket, process)
            workers.append(worker)
            await worker.until(socket.exists)
            if read_reports:
                reading.append(group.create_task(read(worker)))
            return worker

        yield start
        for worker in workers:
            if worker.process.poll() is None:
                worker.kill()
        for task in reading:
            task.cancel()
