"""WebRTC cameras in a real worker: recorded as they were encoded, and back after whatever ended them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from itertools import pairwise

import aioice.ice
import pytest
from hostile_camera import HostileCamera, Script, film, joined
from whep_camera import WhepCamera, WhepScript

from gateway.camera_worker import viewer
from gateway.domain.footage import GapReason, WorkerCamera

FILM = joined(film(frames=20), film(frames=20, width=320, height=192))
PLAIN, LATE, ENDING, VANISHING, LOSING, RTSP = range(1, 7)
CAMERAS = {
    PLAIN: WhepScript(film=FILM),
    LATE: WhepScript(film=film(), statuses=[409, 503]),
    ENDING: WhepScript(film=film(), ends_after=30, ends_by="session"),
    VANISHING: WhepScript(film=film(), ends_after=30, ends_by="network"),
    LOSING: WhepScript(
        film=film(), loses=lambda picture, _times, last: picture in (31, 61, 91) and last, heeds_pli=False
    ),
}


@pytest.mark.long("ffmpeg")
async def test_recorded_and_each_gap_has_its_reason(start_worker, judge):
    async with AsyncExitStack() as stack:
        served = {number: await stack.enter_async_context(WhepCamera(told)) for number, told in CAMERAS.items()}
        other = await stack.enter_async_context(HostileCamera(Script(film=film())))
        worker = await start_worker()
        urls = {**{number: camera.url() for number, camera in served.items()}, RTSP: other.url()}
        await worker.assign(
            *(
                WorkerCamera(camera_id=number, url=url, segment_seconds=0.5, stall_seconds=1.0)
                for number, url in urls.items()
            )
        )

        def gaps(number):
            return {segment.gap for segment in worker.segments(number)[1:]} - {GapReason.NONE}

        await worker.until(
            lambda: (
                all(gaps(number) for number in (ENDING, VANISHING, LOSING))
                and all(len(worker.segments(number)) >= 4 for number in urls)
            ),
            25.0,
        )
        assert gaps(PLAIN) == gaps(LATE) == gaps(RTSP) == set()
        assert gaps(ENDING) == gaps(VANISHING) == {GapReason.CAMERA}
        assert gaps(LOSING) == {GapReason.PACKETS}
        assert {"refused", "recording"} <= set(worker.conditions(LATE))
        assert "stalled" in worker.conditions(VANISHING)
        assert served[LATE].offers == 1
        assert {segment.width for segment in worker.segments(PLAIN)} == {160, 320}
        plain = worker.segments(PLAIN)
        assert all(after.started_at == before.started_at + before.duration for before, after in pairwise(plain))
        for number in urls:
            files = [worker.media / segment.path for segment in worker.segments(number)]
            assert [judge.decode(file) for file in (files[0], files[-1])] == ["", ""], number
        worker.terminate()


async def test_addresses_for_viewers_are_not_those_for_cameras(monkeypatch):
    real = await asyncio.to_thread(aioice.ice.get_host_addresses, True, False)
    monkeypatch.setattr(aioice.ice, "get_host_addresses", aioice.ice.get_host_addresses)
    viewer.offer_addresses(("203.0.113.7",))
    assert aioice.ice.get_host_addresses(True, True) == ["203.0.113.7"]
    assert await asyncio.to_thread(aioice.ice.get_host_addresses, True, False) == real
