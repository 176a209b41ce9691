"""A real store, a real camera (our RTSP server with a test card), and recording with its real worker processes."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from at_work import opened_store
from lacks import lacks

from drivers.rtsp.server.fanout import Fanout
from drivers.rtsp.server.server import RtspServer, ServedStream
from drivers.rtsp.server.testcard import TestCard
from gateway.domain.events import Event, EventKind
from gateway.domain.passages import CameraEvent, Moment
from gateway.recording import Recording
from gateway.recording.recording import RecordingPace, RecordingPlaces
from gateway.runtime.clock import SystemClock
from gateway.runtime.supervision import Progress
from gateway.site import Secrets, Site
from gateway.store import Entry, EventFilter


@pytest.fixture
async def store(tmp_path):
    (tmp_path / "store").mkdir()
    async with opened_store(tmp_path / "store", site_name="Site", sends=True) as store:
        yield store


@pytest.fixture
def clock():
    return SystemClock()


@pytest.fixture
def pin(store, clock):
    """Record an event with a camera event over `[now - before, now + after]` seconds; returns the camera event."""

    async def make(
        camera_id: int, *, before: float, after: float, at: int | None = None, kind=EventKind.VEHICLE_PASSED
    ) -> CameraEvent:
        at = clock.wall().micros if at is None else at
        recorded = await store.journal.record(
            Entry(
                events=(Event(kind=kind, date_at=at, clock_trusted=True, text="passed"),),
                moments=(
                    Moment(
                        camera_id=camera_id,
                        name="Vehicle passed",
                        description="",
                        pinned_from=at - int(before * 1_000_000),
                        pinned_until=at + int(after * 1_000_000),
                        clock_trusted=True,
                    ),
                ),
            )
        )
        found = await store.camera_events.get(recorded.camera_event_ids[0])
        assert found is not None
        return found

    return make


@pytest.fixture
def events_of(store):
    """All recorded events of a kind, oldest first."""

    async def find(kind: EventKind):
        page = await store.events.page(EventFilter(types=(kind.value,)), limit=500)
        return sorted(page.events, key=lambda event: event.id)

    return find


@dataclass
class Field:
    """The cameras of the tests: `/gate` at the server's port."""

    server: RtspServer
    stream: ServedStream


@pytest.fixture
async def field():
    feed = Fanout()
    stream = ServedStream(feed=feed)
    card = TestCard(name="Gate", time_code=lambda: "test", width=320, height=192, keyframe_seconds=0.55)
    async with RtspServer(streams={"/gate": stream}) as server, asyncio.TaskGroup() as group:
        running = group.create_task(card.run(feed))
        yield Field(server=server, stream=stream)
        running.cancel()


@pytest.fixture
def site(field):
    return Site.model_validate(
        {
            "site": {"name": "Site"},
            "cameras": [{"id": 7, "name": "Gate camera", "url": field.server.url("/gate")}],
            "storage": {"free_floor_gigabytes": 0},
        }
    )


@pytest.fixture
def record(tmp_path, store, clock):
    """Recording at work for as long as the context lasts."""

    @contextlib.asynccontextmanager
    async def run(site: Site, **others) -> AsyncIterator[Recording]:
        places = {"media": tmp_path / "media", "run_folder": tmp_path / "run"}
        places |= {name: others.pop(name) for name in ("run_folder", "media_fault", "marker") if name in others}
        recording = Recording(
            site=site,
            store=store,
            places=RecordingPlaces(**places),
            clock=clock,
            progress=Progress(clock=clock),
            secrets=Secrets(folder=tmp_path / "secrets"),
            pace=RecordingPace(segment_seconds=0.5, **others),
        )
        async with asyncio.TaskGroup() as group:
            running = group.create_task(recording.run())
            try:
                yield recording
            finally:
                running.cancel()

    return run


@pytest.fixture
def disk_and_rows_agree(tmp_path, store):
    """Assert that each row has its file and each file its row."""

    async def check() -> None:
        media = tmp_path / "media"
        files = {str(path.relative_to(media)) for path in media.glob("*/*/*.ts")}
        assert files == await store.segments.paths()
        assert files

    return check


@pytest.fixture(scope="session")
def ffprobe():
    """Facts of a media file by ffprobe: `ffprobe(path, "format=duration") -> list of lines`."""
    _needed("ffprobe")

    def probe(path: Path | str, entries: str) -> list[str]:
        done = subprocess.run(
            ["ffprobe", "-v", "error", "-show_entries", entries, "-of", "csv=p=0", str(path)],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
        assert done.stderr == ""
        return done.stdout.split()

    return probe


@pytest.fixture(scope="session")
def decode():
    """Decode all of a file or URL with ffmpeg; returns how many frames, and asserts that nothing was wrong."""
    _needed("ffmpeg")

    async def run(source: Path | str) -> int:
        process = await asyncio.create_subprocess_exec(
            "ffmpeg", "-v", "error", "-i", str(source), "-f", "framecrc", "-",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        out, err = await asyncio.wait_for(process.communicate(), 30)
        assert err == b""
        assert process.returncode == 0
        return sum(not line.startswith(b"#") for line in out.splitlines())

    return run


def _needed(program: str) -> None:
    if shutil.which(program) is None:
        lacks(f"{program} is missing (Debian package ffmpeg)")
