"""Recording with a real worker process and a real RTSP camera."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from itertools import pairwise
from pathlib import Path

import pytest
from aiohttp import web
from stopwatch import Stopwatch
from waiting import until

from gateway.domain.errors import CameraUnavailable, NotFoundError
from gateway.domain.events import EventKind
from gateway.domain.footage import CameraCondition
from gateway.proof_package import chain_ends, check_chain, verify
from gateway.proof_package.of_events import ProofPackages
from simulation.far_ends.http_device import on_loopback


@pytest.fixture
def footage(store):
    async def all_of(camera_id: int = 7):
        return await store.segments.between(camera_id, 0, 2**60)

    return all_of


def is_recording(recording):
    return recording.cameras()[0].condition is CameraCondition.RECORDING


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.mark.long("ffmpeg")
async def test_an_event_has_a_clip_a_playlist_and_pictures_and_a_restart_brings_rows_and_files_together(
    record, site, store, pin, footage, ffprobe, decode, events_of, tmp_path, clock, disk_and_rows_agree
):
    async with record(site) as recording:
        assert recording.cameras()[0].condition is CameraCondition.STARTING
        await until(footage)
        (pid,) = recording.worker_pids()
        event = await pin(7, before=1, after=1)
        with pytest.raises(CameraUnavailable, match=r"still recording, ready in \d+ s"):
            await recording.clip(event)
        assert "#EXT-X-PLAYLIST-TYPE:EVENT" in await recording.vod_media(event)
        playing = await until(lambda: ready(store, event.id))
        assert playing.ready

        clip, again, third = await asyncio.gather(*(recording.clip(playing) for _ in range(3)))
        assert clip == again == third
        (duration,) = ffprobe(clip, "format=duration")
        assert 2 <= float(duration) < 7
        assert await decode(clip) >= 2 * 12

        for picture in (await recording.event_thumbnail(playing), await recording.camera_thumbnail(7)):
            assert picture.read_bytes()[:2] == b"\xff\xd8"
        with pytest.raises(NotFoundError):
            await recording.camera_thumbnail(8)

        async with playlist_server(recording, playing) as url:
            assert await decode(url) >= 2 * 12

        later = await pin(7, before=1, after=0)
        later = await until(lambda: ready(store, later.id))
        proofs = [await proof(store, recording, tmp_path / str(item.id), item, clock) for item in (playing, later)]
        assert [item.notes for item in proofs] == [(), ()], "each clip is there and linked, and the links are proven"
        (old,), (new,) = (item.manifest.clips for item in proofs)
        first, last = chain_ends(old, new)
        check_chain(
            first, last, await recording.leaves(7, after=first.number, before=max(last.number, first.number + 1))
        )

        seen = recording.cameras()[0]
        assert seen.condition is CameraCondition.RECORDING
        assert seen.last_segment_at is not None
        assert seen.reconnects == 0
    assert [event.device_id for event in await events_of(EventKind.CAMERA_RECORDING)] == [7]
    assert not await events_of(EventKind.FOOTAGE_GAP)
    rows = await footage()
    assert all(abs(after.started_at - before.ended_at) < 1000 for before, after in pairwise(rows))
    assert {row.codec[:4] for row in rows} == {"avc1"}
    await disk_and_rows_agree()
    assert not is_alive(pid)

    await store.segments.forget(rows[:1])  # as if its report had been lost
    (tmp_path / "media" / rows[-1].path).unlink()  # and this file
    async with record(site):
        gaps = await until(lambda: two(events_of, EventKind.FOOTAGE_GAP))
    assert {json.loads(gap.data)["reason"] for gap in gaps} == {"lost", "started"}
    after = {row.path for row in await footage()}
    assert rows[0].path in after
    assert rows[-1].path not in after
    await disk_and_rows_agree()


@pytest.mark.long("ffmpeg")
async def test_killing_the_worker_costs_seconds_that_are_recorded_as_a_gap(
    record, site, store, pin, footage, decode, ffprobe, events_of, clock, tmp_path, disk_and_rows_agree
):
    async with record(site) as recording:
        await until(footage)
        before = len(await footage())
        await until(lambda: any(part.stat().st_size for part in (tmp_path / "media").glob("*/*/*.part")))
        (pid,) = recording.worker_pids()
        watch = Stopwatch(children=True)
        os.kill(pid, signal.SIGKILL)
        killed_at = clock.wall().micros
        await until(lambda: recording.worker_pids() not in ((), (pid,)))

        async def has_resumed():
            return [row for row in await footage() if row.started_at > killed_at]

        resumed = (await until(has_resumed))[0]
        most = 5 + watch.held_up()
        assert resumed.started_at - killed_at < most * 1_000_000
        assert len(await footage()) > before

        (gap,) = await until(lambda: events_of(EventKind.FOOTAGE_GAP))
        facts = json.loads(gap.data)
        rows = await footage()
        last = rows[rows.index(resumed) - 1]
        assert facts["reason"] == "worker"
        assert facts["seconds"] == pytest.approx((resumed.started_at - last.ended_at) / 1e6, abs=0.01)
        assert 0 < facts["seconds"] < most
        (lost,) = await events_of(EventKind.WORKER_LOST)
        assert "SIGKILL" in lost.description
        assert "Gate camera" in lost.description
        assert len(await until(lambda: two(events_of, EventKind.CAMERA_RECORDING))) == 2

        # A clip and a playlist over the gap play to their ends.
        event = await pin(7, before=facts["seconds"] + 1, after=1, at=resumed.started_at)
        playing = await until(lambda: ready(store, event.id))
        clip = await recording.clip(playing)
        assert await decode(clip) >= 2 * 11
        assert float(ffprobe(clip, "format=duration")[0]) > 1.8
        assert "#EXT-X-DISCONTINUITY\n#EXT-X-PROGRAM-DATE-TIME:" in await recording.vod_media(playing)
        async with playlist_server(recording, playing) as url:
            assert await decode(url) >= 2 * 11
    await disk_and_rows_agree()


@pytest.mark.parametrize(
    ("signalled", "why"),
    [
        (signal.SIGKILL, "killed by SIGKILL"),
        pytest.param(signal.SIGSTOP, "hung", marks=pytest.mark.long("a worker hangs once it is silent for 3 s")),
    ],
    ids=["killed", "hung"],
)
async def test_a_worker_that_dies_or_hangs_is_gone_and_started_again(
    record, site, events_of, tmp_path, monkeypatch, signalled, why
):
    monkeypatch.setenv("EDGE_GATEWAY_SECRET_CENTRAL", "hush-hush")
    deep = tmp_path / ("d" * 60) / ("e" * 60)  # too long for a socket's path, which must not matter
    async with record(site, run_folder=deep) as recording:
        await until(lambda: is_recording(recording))
        (pid,) = recording.worker_pids()
        assert b"hush-hush" not in Path(f"/proc/{pid}/environ").read_bytes()
        assert b"rtsp" not in Path(f"/proc/{pid}/cmdline").read_bytes()
        os.kill(pid, signalled)
        (lost,) = await until(lambda: events_of(EventKind.WORKER_LOST))
        assert why in lost.description
        assert not is_alive(pid)
        await until(lambda: is_recording(recording))
        assert recording.worker_pids() != (pid,)
    assert not list(deep.glob("*.sock*"))


@pytest.mark.long("a reader's pauses before it asks a camera again")
async def test_a_camera_that_goes_away_is_told_once_and_again_when_it_is_back(record, site, field, footage, events_of):
    async with record(site, look_seconds=0.1) as recording:
        await until(footage)
        field.stream.refuse_with = 404
        field.stream.drop_viewers()
        (lost,) = await until(lambda: events_of(EventKind.CAMERA_LOST))
        assert lost.device_id == 7
        assert "Gate camera is not recording" in lost.description
        await until(lambda: recording.cameras()[0].condition is CameraCondition.REFUSED)
        field.stream.refuse_with = None
        await until(lambda: two(events_of, EventKind.CAMERA_RECORDING))
        await until(lambda: events_of(EventKind.FOOTAGE_GAP))
        assert recording.cameras()[0].reconnects >= 1
    assert len(await events_of(EventKind.CAMERA_LOST)) == 1


async def test_nothing_is_read_from_a_camera_while_there_is_no_room_for_its_footage(record, site, field, events_of):
    async with record(site, look_seconds=0.1) as recording:
        await until(lambda: is_recording(recording))
        recording.change_limits(site.storage.model_copy(update={"free_floor_gigabytes": 10**6}))
        await until(lambda: recording.cameras()[0].condition is CameraCondition.DISK_FAILED)
        await until(lambda: field.stream.viewers == 0)
        assert "pauses" in recording.cameras()[0].detail
        recording.change_limits(site.storage)
        await until(lambda: is_recording(recording))
    assert len(await events_of(EventKind.CAMERA_LOST)) == 1


async def test_a_camera_without_its_password_is_told(record, site, events_of):
    camera = site.cameras[0].model_copy(update={"username": "viewer", "password": "gate-camera"})
    async with record(site.model_copy(update={"cameras": (camera,)})) as recording:
        (lost,) = await until(lambda: events_of(EventKind.CAMERA_LOST))
        assert "password" in lost.description
        assert recording.cameras()[0].condition is CameraCondition.REFUSED


async def test_nothing_is_touched_in_a_media_folder_that_is_not_ours(record, site, store, tmp_path):
    fault = "the media disk is not mounted"
    async with record(site, media_fault=lambda: fault) as recording:
        await until(lambda: recording.cameras()[0].condition is CameraCondition.DISK_FAILED)
        assert recording.cameras()[0].detail == fault
        await until(recording.worker_pids)  # it holds in memory what events may want, and writes nothing
    assert not (tmp_path / "media").exists()


async def test_a_media_folder_that_cannot_be_used_is_told(record, site, tmp_path, events_of):
    (tmp_path / "media").write_text("not a folder")
    async with record(site) as recording:
        await until(lambda: recording.cameras()[0].condition is CameraCondition.DISK_FAILED)
        (lost,) = await until(lambda: events_of(EventKind.CAMERA_LOST))
        assert "the media folder cannot be used" in lost.description


async def ready(store, camera_event_id):
    event = await store.camera_events.get(camera_event_id)
    return event if event.ready else None


async def two(events_of, kind):
    events = await events_of(kind)
    return events if len(events) >= 2 else None


@contextlib.asynccontextmanager
async def playlist_server(recording, event):
    """The event's playlists and segments over HTTP, as the interface gives them out."""

    async def serve(request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if name == "master.m3u8":
            return web.Response(text=await recording.vod_master(event), content_type="application/vnd.apple.mpegurl")
        if name == "index.m3u8":
            return web.Response(text=await recording.vod_media(event), content_type="application/vnd.apple.mpegurl")
        return web.FileResponse(await recording.vod_segment(event, int(name.removesuffix(".ts"))))

    app = web.Application()
    app.router.add_get("/{name}", serve)
    async with on_loopback(app) as port:
        yield f"http://127.0.0.1:{port}/master.m3u8"


async def proof(store, recording, folder, camera_event, clock):
    """The event's proof package, judged."""
    folder.mkdir()
    maker = ProofPackages.of(store, recording=recording, folder=folder, site_name=lambda: "Site", clock=clock)
    return verify(await maker.of_event(camera_event.event_id, by="chief"))
