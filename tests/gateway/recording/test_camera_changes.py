"""A change of one camera touches that camera alone, with real workers and a real RTSP camera."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import threading
from itertools import chain, pairwise

import pytest
from free_ports import free_port
from waiting import until

from drivers.rtsp.client.source import RtspSource
from drivers.rtsp.server import testcard
from drivers.rtsp.server.fanout import Fanout
from drivers.rtsp.server.server import RtspServer, ServedStream
from gateway.domain.errors import NotFoundError
from gateway.domain.events import EventKind
from gateway.domain.footage import CameraCondition, GapReason
from gateway.recording.camera_workers import regrouped
from gateway.site.models import RtspSection


def test_no_camera_changes_its_group():
    assert regrouped([frozenset({1, 2}), frozenset({3})], [3, 2, 5, 6, 4], most=2) == ({2, 5}, {3, 6}, {4})
    assert regrouped([frozenset({1})], [], most=2) == (set(),)
    assert regrouped([frozenset()], [1], most=2) == ({1},)
    assert regrouped([], [1, 2, 3], most=2) == ({1, 2}, {3})


@pytest.fixture
async def other():
    """Another camera, at `/yard` of its own server."""
    feed = Fanout()
    stream = ServedStream(feed=feed)
    card = testcard.TestCard(name="Yard", time_code=lambda: "test", width=320, height=192, keyframe_seconds=0.55)
    async with RtspServer(streams={"/yard": stream}) as server, asyncio.TaskGroup() as group:
        running = group.create_task(card.run(feed))
        yield server.url("/yard"), stream
        running.cancel()


def states(recording):
    return {camera.camera_id: camera for camera in recording.cameras()}


class RtspViewer:
    """Another equipment of the site that watches a camera, by one connection for as long as the context lasts."""

    def __init__(self, url):
        self.times = []
        self._url = url
        self._enough = threading.Event()
        self._watching = threading.Thread(target=self._watch)

    async def __aenter__(self):
        self._watching.start()
        return self

    async def __aexit__(self, *_):
        self._enough.set()
        await asyncio.to_thread(self._watching.join, 5)

    def _watch(self):
        with contextlib.closing(RtspSource(url=self._url)) as source:
            source.open()
            for frame in chain.from_iterable(source.batches()):
                self.times.append(frame.dts)
                if self._enough.is_set():
                    return


@pytest.fixture
def served_on(site, tmp_path):
    """The site with its cameras served on by RTSP."""
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "rtsp").write_text("word")
    (tmp_path / "secrets" / "rtsp").chmod(0o600)
    section = RtspSection(host="127.0.0.1", port=free_port(), username="recorder", password="rtsp")
    return site.model_copy(update={"rtsp": section})


@pytest.mark.long("segments at the camera's pace after each of six changes")
async def test_cameras_come_change_and_go_and_another_records_on_without_a_gap(
    record, served_on, store, field, other, events_of, disk_and_rows_agree
):
    site = served_on
    address = f"rtsp://recorder:word@127.0.0.1:{site.rtsp.port}/camera/7"
    (first,) = site.cameras
    url, yard = other
    second = first.model_copy(update={"id": 8, "name": "Yard"})
    changed = second.model_copy(update={"url": url, "name": "Back yard"})

    async def rows(camera_id):
        return await store.segments.between(camera_id, 0, 2**60)

    async with record(site) as recording, contextlib.AsyncExitStack() as holding:
        await until(lambda: rows(7))
        (pid,) = recording.worker_pids()
        viewer = await holding.enter_async_context(RtspViewer(address))
        await until(lambda: viewer.times)
        os.kill(pid, signal.SIGHUP)  # as when a hangup is sent to all of the gateway's processes

        recording.change_cameras((first, second))
        await until(lambda: rows(8))
        await until(lambda: states(recording)[8].condition is CameraCondition.RECORDING)
        assert field.stream.viewers == 2

        recording.change_cameras((first, changed))
        assert states(recording)[8].name == "Back yard"
        await until(lambda: yard.viewers == 1)
        await until(lambda: field.stream.viewers == 1)
        (gap,) = await until(lambda: events_of(EventKind.FOOTAGE_GAP))
        assert gap.device_id == 8
        assert json.loads(gap.data)["reason"] == "changed"
        assert "settings were changed" in gap.description

        before = len(await rows(7))
        recording.change_cameras((first, changed))  # nothing is different
        recording.change_cameras((first.model_copy(update={"name": "Main gate"}), changed))  # nothing for its worker
        await until(lambda: has_more(rows, 7, than=before + 1))
        assert [state.name for state in states(recording).values()] == ["Main gate", "Back yard"]

        kept = len(await rows(8))
        recording.change_cameras((first,))
        assert set(states(recording)) == {7}
        await until(lambda: yard.viewers == 0)
        with pytest.raises(NotFoundError):
            await recording.live.playlist(8)
        before = len(await rows(7))
        await until(lambda: has_more(rows, 7, than=before + 1))
        assert len(await rows(8)) >= kept

        assert recording.worker_pids() == (pid,)
        assert field.stream.viewers == 1
        seen = states(recording)[7]
        assert (seen.condition, seen.reconnects) == (CameraCondition.RECORDING, 0)
        watched = len(viewer.times)
        await until(lambda: len(viewer.times) > watched)
        steps = [after - before for before, after in pairwise(viewer.times)]
        assert min(steps) > 0
        assert max(steps) < 3 * min(steps), "no frame of it was missed"
    footage = await rows(7)
    assert all(abs(after.started_at - before.ended_at) < 1000 for before, after in pairwise(footage))
    assert [row.gap for row in footage[1:]] == [GapReason.NONE] * (len(footage) - 1)
    assert GapReason.CHANGED in [row.gap for row in await rows(8)]
    assert len(await events_of(EventKind.FOOTAGE_GAP)) == 1
    assert not await events_of(EventKind.CAMERA_LOST)
    await disk_and_rows_agree()


async def test_a_camera_comes_before_the_disk_is_there_and_a_password_is_read_again(record, site, tmp_path, events_of):
    (first,) = site.cameras
    locked = first.model_copy(update={"id": 8, "name": "Yard", "username": "viewer", "password": "yard"})
    fault = "the media disk is not mounted"
    async with record(
        site.model_copy(update={"cameras": ()}), media_fault=lambda: fault, look_seconds=0.1
    ) as recording:
        await asyncio.sleep(0)
        recording.change_cameras((locked, first))
        assert [camera.camera_id for camera in recording.cameras()] == [8, 7]
    async with record(site.model_copy(update={"cameras": (locked, first)})) as recording:
        await until(lambda: states(recording)[8].condition is CameraCondition.REFUSED)
        await until(lambda: states(recording)[7].condition is CameraCondition.RECORDING)
        (tmp_path / "secrets").mkdir()
        (tmp_path / "secrets" / "yard").write_text("word")
        (tmp_path / "secrets" / "yard").chmod(0o600)
        recording.change_cameras((locked, first))
        await until(lambda: states(recording)[8].condition is CameraCondition.RECORDING)
        assert states(recording)[7].reconnects == 0


async def has_more(rows, camera_id, *, than):
    return len(await rows(camera_id)) > than
