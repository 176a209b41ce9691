"""The media folder's disk full, read-only or gone: events go on, video says why it stopped and resumes by itself."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest
from lacks import lacks
from waiting import until

from gateway.domain.errors import CameraUnavailable
from gateway.domain.events import EventKind
from gateway.domain.footage import CameraCondition, SegmentFinished, segment_path
from gateway.recording.forecast import StorageLimits
from gateway.recording.index import FootageIndex, utc_hour
from gateway.recording.retention import Retention
from gateway.runtime.data_folder import MEDIA_MARKER, MediaCondition, media_condition
from gateway.store import Store


def mount(*words: str | Path) -> bool:
    return subprocess.run(["mount", *map(str, words)], capture_output=True, check=False).returncode == 0


@pytest.fixture
def disk(tmp_path):
    """A disk of 16 MB, seen at `media` too."""
    place, media = tmp_path / "disk", tmp_path / "media"
    place.mkdir()
    media.mkdir()
    if os.geteuid() != 0 or not mount("-t", "tmpfs", "-o", "size=16m", "tmpfs", place):
        lacks("a small disk cannot be mounted here")
    assert mount("--bind", place, media)
    yield place
    subprocess.run(["umount", "-l", str(media)], check=False, capture_output=True)
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path) -> Path:
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"\0" * 4096)
    return filler


@pytest.mark.long("a disk's faults one after the other, at the camera's pace")
async def test_each_fault_is_told_and_recording_resumes_when_it_is_over(
    record, site, field, store, disk, tmp_path, events_of, disk_and_rows_agree
):
    media = tmp_path / "media"
    sentences = {MediaCondition.READY: ""}

    def fault() -> str:
        condition = media_condition(tmp_path)
        return sentences.get(condition, condition.value)

    async with record(site, media_fault=fault, marker=MEDIA_MARKER, look_seconds=0.2) as recording:
        camera = lambda: recording.cameras()[0]  # noqa: E731

        async def has_resumed(after: int):
            return camera().condition is CameraCondition.RECORDING and (camera().last_segment_at or 0) > after

        await until(lambda: has_resumed(0))

        filler = fill(disk)
        await until(lambda: camera().condition is CameraCondition.DISK_FAILED)
        assert camera().detail == "the media folder takes no data: No space left on device"
        filler.unlink()
        await until(lambda: has_resumed(camera().since))

        field.stream.refuse_with = 404  # a disk is only made read-only while nothing is open on it
        field.stream.drop_viewers()
        await until(lambda: camera().condition is CameraCondition.REFUSED)
        assert mount("-o", "remount,bind,ro", media)
        await until(lambda: camera().detail == "read_only")
        field.stream.refuse_with = None
        await asyncio.sleep(0.3)  # the camera comes back meanwhile, and the disk is looked at again
        assert camera().condition is CameraCondition.DISK_FAILED
        assert mount("-o", "remount,bind,rw", media)
        await until(lambda: has_resumed(camera().since))

        subprocess.run(["umount", "-l", str(media)], check=True)
        await until(lambda: camera().detail == "marker_missing")
        await asyncio.sleep(0.5)  # pictures keep coming
        assert list(media.rglob("*")) == [], "nothing is written where the disk is not"
        assert mount("--bind", disk, media)
        await until(lambda: has_resumed(camera().since))

        gaps = [gap.data for gap in await until(lambda: three(events_of))]
        assert ['"disk"' in gap for gap in gaps] == [True] * 3, gaps
        assert len(await events_of(EventKind.CAMERA_LOST)) == 3
    await disk_and_rows_agree()


@pytest.mark.long("ffmpeg")
async def test_an_event_during_a_fault_of_the_disk_keeps_all_its_footage_where_only_events_are_recorded(
    record, site, store, pin, tmp_path, clock, decode
):
    camera = site.cameras[0].model_copy(update={"record": "events", "pre_roll_seconds": 10})
    events_only = site.model_copy(update={"cameras": (camera,)})
    told = [""]
    async with record(events_only, media_fault=lambda: told[0], look_seconds=0.1) as recording:
        condition = lambda: recording.cameras()[0].condition  # noqa: E731
        await until(lambda: condition() is CameraCondition.RECORDING)
        await asyncio.sleep(2.2)  # two seconds before the event are wanted
        told[0] = "its disk is not mounted"
        await until(lambda: condition() is CameraCondition.DISK_FAILED)
        event = await pin(7, before=2, after=1)
        await until(lambda: clock.wall().micros > event.pinned_until + 6_000_000)
        assert not (await store.camera_events.get(event.id)).ready
        assert not list((tmp_path / "media").rglob("7/*/*")), "nothing is written while it must not be used"
        told[0] = ""

        playing = await until(lambda: _ready(store, event.id))
        found = await store.segments.between(7, event.pinned_from, event.pinned_until)
        assert found[0].started_at <= event.pinned_from
        assert found[-1].ended_at >= event.pinned_until
        assert [segment.gap.value for segment in found[1:]] == ["none"] * (len(found) - 1)
        assert await decode(await recording.clip(playing)) >= 3 * 12


@pytest.mark.long("ffmpeg")
async def test_an_event_before_the_disk_is_there_for_the_first_time_keeps_its_footage_where_only_events_are_recorded(
    record, site, field, store, pin, tmp_path, decode, clock
):
    """And on the disk that is there instead, another gateway's, nothing is touched: not even what a worker left."""
    camera = site.cameras[0].model_copy(update={"record": "events", "pre_roll_seconds": 60})
    events_only = site.model_copy(update={"cameras": (camera,)})
    left = tmp_path / "media/7/2026010112/1767268800000000.part"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"G" * 376)
    told = ["its disk is not mounted"]
    async with record(events_only, media_fault=lambda: told[0], look_seconds=0.1) as recording:
        (pid,) = await until(recording.worker_pids)
        os.kill(pid, signal.SIGKILL)
        (pid,) = await until(lambda: tuple(other for other in recording.worker_pids() if other != pid))
        await until(lambda: field.stream.viewers == 1)
        served = clock.wall().micros
        await until(lambda: clock.wall().micros > served + 4_000_000)
        event = await pin(7, before=1.5, after=1)
        await until(lambda: clock.wall().micros > event.pinned_until + 1_000_000)
        (snapshot,) = recording.cameras()
        assert (snapshot.condition, snapshot.detail) == (CameraCondition.DISK_FAILED, told[0])
        assert [file for file in (tmp_path / "media").rglob("*") if file.is_file()] == [left]
        told[0] = ""

        playing = await until(lambda: _ready(store, event.id))
        found = await store.segments.between(7, event.pinned_from, event.pinned_until)
        assert found[0].started_at <= event.pinned_from
        assert found[-1].ended_at >= event.pinned_until
        assert await decode(await recording.clip(playing)) >= 2 * 12
        assert not left.exists(), "what a worker left is put right as soon as it may be"


async def test_a_clip_of_a_disk_that_is_away_says_so(record, site, store, pin, tmp_path):
    told = [""]
    async with record(site, media_fault=lambda: told[0], look_seconds=60) as recording:
        last = await until(lambda: recording.cameras()[0].last_segment_at)
        event = await pin(7, before=0.2, after=0, at=last)
        await until(lambda: _ready(store, event.id))
        told[0] = "the disk of the media folder is not mounted"
        (tmp_path / "media" / "7").rename(tmp_path / "away")
        with pytest.raises(CameraUnavailable, match="is not mounted"):
            await recording.clip(event)
        with pytest.raises(CameraUnavailable, match="is not mounted"):
            await recording.event_thumbnail(event)


async def test_nobody_touches_a_file_of_a_disk_that_does_not_answer(record, site, store, pin):
    """Each would take one of the threads that all share with it."""
    answers = threading.Event()
    answers.set()

    def fault() -> str:
        answers.wait(60)
        return ""

    async with record(site, media_fault=fault, look_seconds=0.1, answer_seconds=0.3) as recording:
        last = await until(lambda: recording.cameras()[0].last_segment_at)
        event = await pin(7, before=0.2, after=0, at=last)
        await until(lambda: _ready(store, event.id))
        (part, *_) = await store.segments.of_event(event)
        playlist = await recording.live.playlist(7)
        number = int([line for line in playlist.split() if line.endswith(".ts")][-1].removesuffix(".ts"))
        assert (await recording.live.segment(7, number)).exists()
        assert (await recording.vod_segment(event, part.id)).exists()
        answers.clear()
        try:
            await until(lambda: recording.cameras()[0].condition is CameraCondition.DISK_FAILED)
            for asked in (
                lambda: recording.live.segment(7, number),
                lambda: recording.vod_segment(event, part.id),
                lambda: recording.parts(event),
                lambda: recording.clip(event),
                lambda: recording.event_thumbnail(event),
                lambda: recording.camera_thumbnail(7),
            ):
                with pytest.raises(CameraUnavailable, match="does not answer"):
                    await asked()
        finally:
            answers.set()


async def _ready(store, camera_event_id):
    found = await store.camera_events.get(camera_event_id)
    return found if found.ready else None


async def three(events_of):
    found = await events_of(EventKind.FOOTAGE_GAP)
    return found if len(found) >= 3 else None


async def test_a_disk_that_is_full_to_the_last_under_the_store_too_is_thinned(disk, clock):
    store = Store(folder=disk, site_name="Site", sends=True)
    await store.open()
    media = disk / "footage"
    begin = clock.wall().micros - 100_000_000
    reports = []
    for n in range(20):
        path = segment_path(7, begin + n * 2_000_000, 2_000_000, utc_hour(begin))
        (media / path).parent.mkdir(parents=True, exist_ok=True)
        (media / path).write_bytes(b"x" * 500_000)
        reports.append(
            SegmentFinished(
                camera_id=7, path=path, started_at=begin + n * 2_000_000, clock_trusted=True, duration=2_000_000,
                size=500_000, sha256="ab" * 32,
            )
        )  # fmt: skip
    await store.segments.add(reports)
    index = FootageIndex(segments=store.segments, journal=store.journal, media=media, clock=clock)
    retention = Retention(
        index=index, limits=StorageLimits(cap=5_000_000, floor=0),
        starved=lambda _: None, media_fault=lambda: "",
    )  # fmt: skip
    fill(disk)
    with contextlib.suppress(Exception):
        for n in range(200):  # until the log of the store has no room any more
            await store.chain_links.link([(n, reports[n % 20].path, "cd" * 32)] * 50)
            await store.segments.add(
                [report.model_copy(update={"path": f"{n}-{i}"}) for i, report in enumerate(reports)]
            )
    try:
        await retention.look()
        kept = {str(path.relative_to(media)) for path in media.glob("*/*/*.ts")}
        assert 0 < len(kept) <= 10
        paths = await store.segments.paths()
        assert {path for path in paths if path.endswith(".ts")} == kept
        assert await store.segments.garbage() == ()
    finally:
        await store.close()
