"""A camera that is recorded for events only, with a real worker and a real RTSP camera."""

from __future__ import annotations

import asyncio
import json
import os
import signal

import pytest
from waiting import until

from gateway.domain.events import EventKind
from gateway.domain.footage import CameraCondition

pytestmark = pytest.mark.long("a real worker and camera, at the camera's pace")


@pytest.fixture
def events_only(site):
    camera = site.cameras[0].model_copy(update={"record": "events", "pre_roll_seconds": 10})
    return site.model_copy(update={"cameras": (camera,)})


async def test_only_what_events_pin_is_kept_through_the_death_of_a_worker_too(
    record, events_only, store, pin, decode, tmp_path, clock, events_of, disk_and_rows_agree
):
    media = tmp_path / "media"
    files = lambda: list(media.glob("7/*/*"))  # noqa: E731
    rows = lambda: store.segments.between(7, 0, 2**60)  # noqa: E731
    async with record(events_only) as recording:
        recording_now = lambda: recording.cameras()[0].condition is CameraCondition.RECORDING  # noqa: E731
        await until(recording_now)
        await asyncio.sleep(1.3)  # so much is in memory, and segments of one second would be on disk
        assert files() == []

        event = await pin(7, before=1.2, after=1)
        playing = await until(lambda: ready(store, event.id))
        found = await rows()
        assert found[0].started_at <= event.pinned_from
        assert found[-1].ended_at >= event.pinned_until
        assert await decode(await recording.clip(playing)) >= 2 * 12
        await asyncio.sleep(1.1)  # one more segment would be on disk
        assert len(await rows()) == len(found), "nothing more than that"

        later = await pin(7, before=1, after=60)
        await until(lambda: any(file.suffix == ".part" and file.stat().st_size for file in files()))
        (pid,) = recording.worker_pids()
        os.kill(pid, signal.SIGKILL)
        killed_at = clock.wall().micros

        async def goes_on():
            return [row for row in await rows() if row.started_at > killed_at]

        await until(goes_on)  # the worker that came after it knows what is wanted
        after = [row for row in await rows() if row.ended_at > later.pinned_from]
        assert after[0].started_at <= later.pinned_from, "what was pinned before the kill is there"
        assert "#EXTINF" in await recording.vod_media(later)
    await disk_and_rows_agree()
    (gap,) = await events_of(EventKind.FOOTAGE_GAP)
    told = json.loads(gap.data)
    assert told["reason"] == "worker"
    assert told["until"] in [row.started_at for row in after]
    assert 0 < told["seconds"] < 30


async def ready(store, camera_event_id):
    event = await store.camera_events.get(camera_event_id)
    return event if event.ready else None
