"""Reasons for missing footage that the gateway gives, with real cameras."""

from __future__ import annotations

import json

import pytest
from waiting import until

from gateway.domain.errors import NotFoundError
from gateway.domain.events import Event, EventKind
from gateway.domain.footage import CameraCondition, GapReason, SegmentFinished, segment_path
from gateway.site import Site
from gateway.store import Entry
from tests.gateway.camera_worker.conftest import gst_camera, gst_rtsp_server  # noqa: F401 (fixtures)

SECOND = 1_000_000


def site_of(url: str) -> Site:
    return Site.model_validate(
        {
            "site": {"name": "Site"},
            "cameras": [{"id": 7, "name": "Gate camera", "url": url}],
            "storage": {"free_floor_gigabytes": 0},
        }
    )


async def told(recording, store, event):
    """Return what is missing of an event's footage, once it is known how much there will be."""

    async def ready():
        found = await store.camera_events.get(event.id)
        return found if found.ready else None

    known = await until(ready)
    return known, (await recording.missing((known,)))[known.id]


@pytest.mark.long("GStreamer's RTSP server")
async def test_a_codec_that_cannot_be_recorded_is_the_reason_and_an_event(
    record,
    store,
    pin,
    events_of,
    gst_camera,  # noqa: F811
):
    camera = gst_camera("--vp8")
    async with record(site_of(camera.url())) as recording:
        await until(lambda: recording.cameras()[0].condition is CameraCondition.UNSUPPORTED)
        (lost,) = await until(lambda: events_of(EventKind.CAMERA_LOST))
        assert "neither H.264 nor H.265" in lost.description
        assert json.loads(lost.data)["reason"] == "unsupported"
        event, missing = await told(recording, store, await pin(7, before=1, after=0))
        assert [gap.reason for gap in missing] == [GapReason.UNSUPPORTED]
        with pytest.raises(NotFoundError, match="a codec that cannot be recorded"):
            await recording.clip(event)


@pytest.mark.long("GStreamer's RTSP server")
async def test_a_camera_that_never_delivered_is_told_from_one_that_is_away_now(
    record,
    store,
    pin,
    gst_camera,  # noqa: F811
):
    camera = gst_camera()
    camera.off()
    async with record(site_of(camera.url())) as recording:
        await until(lambda: recording.cameras()[0].condition is CameraCondition.UNREACHABLE)
        never, missing = await told(recording, store, await pin(7, before=1, after=0))
        assert [str(gap.why) for gap in missing] == ["the camera has never delivered a picture"]

        camera.on()
        await until(lambda: store.segments.latest(7))
        missing = (await recording.missing((never,)))[never.id]
        assert [str(gap.why) for gap in missing] == ["the camera could not be reached"], (
            "not that the gateway did not run"
        )

        camera.off()
        await until(lambda: "nothing listens" in recording.cameras()[0].detail)
        away, missing = await told(recording, store, await pin(7, before=0, after=1))
        assert [str(gap.why) for gap in missing] == ["the camera cannot be reached now"]
        with pytest.raises(NotFoundError, match="cannot be reached now"):
            await recording.clip(away)

        newest = (await store.segments.latest(7)).id
        camera.on()

        async def back():
            return (await store.segments.latest(7)).id > newest

        await until(back)
        ((gap,),) = (await recording.missing((away,))).values()
        assert gap.reason in (GapReason.NETWORK, GapReason.CAMERA)
        assert "now" not in str(gap.why)

        recording.change_cameras(())
        gone = await pin(7, before=-1, after=2)
        _, missing = await told(recording, store, gone)
        assert str(missing[-1].why) == "the camera was taken out of the site file"


@pytest.fixture
def recorded(store, clock):
    """So many segments of a second each, linked, the last one ending a minute ago."""

    async def make(count: int):
        begin = clock.wall().micros - (60 + count) * SECOND
        await store.segments.add(
            SegmentFinished(
                camera_id=7, path=segment_path(7, at, SECOND, "2026010100"), started_at=at, clock_trusted=True,
                duration=SECOND, size=9, sha256="ab" * 32,
            )
            for at in range(begin, begin + count * SECOND, SECOND)
        )  # fmt: skip
        return await store.segments.between(7, 0, 2**60)

    return make


async def reasons(store, event):
    return [gap.reason for gap in (await store.segments.missing((event,)))[event.id]]


async def test_footage_that_was_deleted_is_told_so(store, pin, recorded):
    rows = await recorded(20)
    old = await pin(7, before=2, after=2, at=rows[5].started_at)
    assert await reasons(store, old) == []
    await store.segments.forget(rows[:10])
    assert await reasons(store, old) == [GapReason.DELETED], "the oldest are gone"
    middle = await pin(7, before=1, after=1, at=rows[14].started_at)
    await store.segments.forget(rows[12:16])
    assert await reasons(store, middle) == [GapReason.DELETED], "some in between are gone"
    await store.segments.forget(rows)
    assert await reasons(store, old) == [GapReason.DELETED], "all are gone"


async def test_footage_whose_files_are_gone_is_told_so(store, pin, recorded):
    rows = await recorded(20)
    event = await pin(7, before=1, after=1, at=rows[5].started_at)
    await store.segments.forget(rows[:10])
    data = {"reason": "lost", "from": rows[0].started_at, "until": rows[9].ended_at}
    lost = Event(kind=EventKind.FOOTAGE_GAP, date_at=event.date_at, clock_trusted=True, text="", device_id=7, data=data)
    await store.journal.record(Entry(events=(lost,)))
    assert await reasons(store, event) == [GapReason.LOST]


async def test_what_nobody_knows_is_told_so(store, pin, recorded, clock):
    rows = await recorded(2)
    at = rows[-1].ended_at + 30 * SECOND
    await store.segments.add(
        [
            SegmentFinished(
                camera_id=7, path=segment_path(7, at, SECOND, "2026010100"), started_at=at, clock_trusted=True,
                duration=SECOND, size=9, sha256="ab" * 32,
            )
        ]
    )  # fmt: skip
    event = await pin(7, before=2, after=2, at=at - 10 * SECOND)
    assert await reasons(store, event) == [GapReason.NONE]
