"""Clips, pictures and segments as files: whole, in part, and not again when unchanged."""

import shutil
import subprocess
from dataclasses import asdict

import pytest

from gateway.domain.errors import NotFoundError
from gateway.domain.events import Event, EventKind
from gateway.domain.footage import GapReason, SegmentFinished
from gateway.domain.passages import Moment, Passage, PassageOutcome
from gateway.proof_package import verify
from gateway.store import Entry
from gateway.web.status.snapshot import footage_state


@pytest.mark.long("ffmpeg")
async def test_a_clip_plays(gateway, tmp_path):
    probe = shutil.which("ffprobe")
    if probe is None:
        pytest.skip("needs Debian's ffmpeg")
    headers = await gateway.sign_in()
    async with gateway.client.get(
        f"{gateway.url}/v1/camera/event/clip/{gateway.camera_event_id}", headers=headers
    ) as answer:
        assert answer.content_type == "video/mp4"
        clip = tmp_path / "fetched.mp4"
        clip.write_bytes(await answer.read())
    seen = subprocess.run(
        [probe, "-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0", str(clip)],
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    )
    assert seen.stdout.strip() == "h264"


async def test_a_part_of_a_clip_and_an_unchanged_one(gateway, footage):
    headers = await gateway.sign_in()
    address = f"{gateway.url}/v1/camera/event/clip/{gateway.camera_event_id}"
    whole = footage.clip.read_bytes()
    async with gateway.client.get(address, headers=headers | {"Range": "bytes=100-199"}) as answer:
        assert answer.status == 206
        assert answer.headers["Content-Range"] == f"bytes 100-199/{len(whole)}"
        assert await answer.read() == whole[100:200]
        tag = answer.headers["ETag"]
    async with gateway.client.get(address, headers=headers | {"If-None-Match": tag}) as answer:
        assert answer.status == 304
    async with gateway.client.head(address, headers=headers) as answer:
        assert (answer.status, answer.headers["Content-Length"]) == (200, str(len(whole)))
        assert answer.headers["Accept-Ranges"] == "bytes"
    for wanted, status, span in (
        ("bytes=0-0", 206, (0, 1)),
        ("bytes=-1", 206, (len(whole) - 1, len(whole))),
        (f"bytes=0-{len(whole) * 2}", 206, (0, len(whole))),
        (f"bytes={len(whole)}-", 416, None),
        ("bytes=9-5", 416, None),
    ):
        async with gateway.client.get(address, headers=headers | {"Range": wanted}) as answer:
            assert answer.status == status, wanted
            if span is not None:
                assert await answer.read() == whole[slice(*span)], wanted
            else:
                assert answer.headers["Content-Range"] == f"bytes */{len(whole)}"
    for wanted in ("items=0-9", "seconds=1-", "bytes=0-9,20-29"):
        async with gateway.client.get(address, headers=headers | {"Range": wanted}) as answer:
            assert (answer.status, await answer.read()) == (200, whole), wanted
    async with gateway.client.get(address, headers=headers | {"Range": "bytes=0-9", "If-Range": tag}) as answer:
        assert (answer.status, await answer.read()) == (206, whole[:10])
    async with gateway.client.get(address, headers=headers | {"Range": "bytes=0-9", "If-Range": '"another"'}) as answer:
        assert (answer.status, await answer.read()) == (200, whole)


async def test_a_proof_package_proves_its_event(gateway, footage, tmp_path):
    known = await gateway.store.camera_events.get(gateway.camera_event_id)
    headers = await gateway.sign_in()
    async with gateway.client.get(f"{gateway.url}/status/proof/{known.event_id}", headers=headers) as answer:
        assert (answer.status, answer.content_type) == (200, "application/zip")
        assert answer.headers["Content-Disposition"] == f'attachment; filename="event-{known.event_id}.zip"'
        (tmp_path / "proof.zip").write_bytes(await answer.read())
    found = verify(tmp_path / "proof.zip")
    assert (found.manifest.event.id, found.manifest.made_by) == (known.event_id, "chief")
    assert found.manifest.clips[0].size == len(footage.clip.read_bytes())
    async with gateway.client.get(f"{gateway.url}/status/proof/999", headers=headers) as answer:
        assert answer.status == 404


async def test_evidence_of_a_visit_is_whole_though_a_camera_has_no_footage(gateway, tmp_path, monkeypatch):
    gateway.clock.pushed += 60
    now = gateway.clock.wall().micros
    trace = "known: passed (card 7); validity: passed"
    granted = await gateway.happened(
        "card 0007", kind=EventKind.ACCESS_GRANTED, date_at=now - 3_000_000,
        data={"credential": "0007", "trace": trace},
    )  # fmt: skip
    event = Event(EventKind.VEHICLE_PASSED, now, clock_trusted=True, text="passed", lane_id="entry")
    passage = Passage(
        "entry", "entry", PassageOutcome.PASSED, now - 9_000_000, now, clock_trusted=True, credential="0007"
    )
    moments = tuple(
        Moment(camera_id, "Vehicle passed", "passed", now - 5_000_000, now + 5_000_000, clock_trusted=True)
        for camera_id in (201, 202)
    )
    recorded = await gateway.store.journal.record(Entry(events=(event,), passage=passage, moments=moments))
    clip, away = gateway.recording.clip, NotFoundError("there is no footage of camera event 7")

    async def of_one(item):
        if item.camera_id == 202:
            raise away
        return await clip(item)

    monkeypatch.setattr(gateway.recording, "clip", of_one)
    for event_id in (granted, recorded.event_ids[0]):
        headers = await gateway.sign_in()
        async with gateway.client.get(f"{gateway.url}/status/proof/{event_id}", headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            (tmp_path / "proof.zip").write_bytes(await answer.read())
        found = verify(tmp_path / "proof.zip")
        assert found.manifest.event.id == event_id
        assert [item.trace for item in found.manifest.visit if item.id == granted] == [tuple(trace.split("; "))]
        assert [item.camera_id for item in found.manifest.clips] == [201]
        assert f"no clip of camera 202 for event {recorded.event_ids[0]}: {away}" in found.notes
    gateway.recording.show(condition="unreachable")
    async with gateway.client.get(f"{gateway.url}/status/proof/{granted}", headers=headers) as answer:
        assert answer.status == 503, "its footage may still come"
    for camera_event_id in recorded.camera_event_ids:
        await gateway.store.camera_events.mark_ready(camera_event_id)
    async with gateway.client.get(f"{gateway.url}/status/proof/{granted}", headers=headers) as answer:
        assert answer.status == 200


async def test_what_of_an_events_footage_is_missing_is_told(gateway):
    gateway.clock.pushed += 600
    now = gateway.clock.wall().micros
    begin, end = now - 5_000_000, now + 5_000_000

    def segment(start, duration, gap):
        return SegmentFinished(
            camera_id=201, path=f"201/2026010100/{start}_{duration}.ts", started_at=start, clock_trusted=True,
            duration=duration, size=9, gap=gap,
        )  # fmt: skip

    async def shown():
        _, answer = await gateway.call("/v1/camera/event", {"id": camera_event_id})
        _, listed = await gateway.call("/v1/camera/event/list", {"page_limit": 1})
        assert listed["events"] == [answer["event"]]
        known = await gateway.store.camera_events.get(camera_event_id)
        missing = await gateway.store.segments.missing((known,)) if known.ready else {}
        return answer["event"], asdict(footage_state(known, missing.get(camera_event_id)))

    event = Event(EventKind.VEHICLE_PASSED, now, clock_trusted=True, text="passed", lane_id="entry")
    moment = Moment(201, "Vehicle passed", "passed", begin, end, clock_trusted=True)
    (camera_event_id,) = (
        await gateway.store.journal.record(Entry(events=(event,), moments=(moment,)))
    ).camera_event_ids
    record, item = await shown()
    assert (record["footage"], record["gaps"], item["footage"], item["missing"]) == ("coming", [], "coming", "")
    assert record["clip"]
    await gateway.store.camera_events.mark_ready(camera_event_id)
    await gateway.store.segments.add([segment(end + 60_000_000, 2_000_000, GapReason.NETWORK)])
    record, item = await shown()
    assert (record["footage"], item["footage"]) == ("none", "none")
    assert (record["clip"], record["thumbnail"], record["vod"]) == ("", "", "")
    assert item["missing"] == "there is no footage: the camera could not be reached"
    await gateway.store.segments.add([segment(begin, 4_000_000, GapReason.NONE)])
    await gateway.store.segments.add([segment(begin + 6_500_000, 5_000_000, GapReason.DISK)])
    record, item = await shown()
    assert record["footage"] == "part"
    assert record["clip"]
    assert [(gap["seconds"], gap["reason"]) for gap in record["gaps"]] == [
        (2.5, "the media folder could not be written to")
    ]
    assert item["missing"] == "2.5 s are missing: the media folder could not be written to"


async def test_playlists_and_segments(gateway, footage):
    headers = await gateway.sign_in()
    base = f"{gateway.url}/v1/camera/event/vod/{gateway.camera_event_id}"
    for file, media_type in (
        ("master.m3u8", "application/vnd.apple.mpegurl"),
        ("index.m3u8", "application/vnd.apple.mpegurl"),
        ("7.ts", "video/MP2T"),
    ):
        async with gateway.client.get(f"{base}/{file}", headers=headers) as answer:
            assert (answer.status, answer.headers["Content-Type"]) == (200, media_type)
            body = await answer.read()
            assert body.startswith(b"#EXTM3U") or body == footage.segment.read_bytes()
    for file in ("8.ts", "7.mp4", "..%2f..%2fsite.db", "7.ts.ts"):
        async with gateway.client.get(f"{base}/{file}", headers=headers) as answer:
            assert answer.status == 404


async def test_playlists_and_segments_are_asked_for_in_part_by_head_and_again(gateway, footage):
    headers = await gateway.sign_in()
    base = f"{gateway.url}/v1/camera/event/vod/{gateway.camera_event_id}"
    whole = footage.segment.read_bytes()
    async with gateway.client.get(f"{base}/7.ts", headers=headers | {"Range": "bytes=188-375"}) as answer:
        assert (answer.status, await answer.read()) == (206, whole[188:376])
        tag = answer.headers["ETag"]
    async with gateway.client.get(f"{base}/7.ts", headers=headers | {"If-None-Match": tag}) as answer:
        assert answer.status == 304
    async with gateway.client.get(f"{base}/7.ts", headers=headers | {"Range": f"bytes={len(whole)}-"}) as answer:
        assert answer.status == 416
    headers |= {"Accept-Encoding": "identity"}
    for path in (f"{base}/7.ts", f"{base}/master.m3u8", f"{base}/index.m3u8"):
        async with gateway.client.get(path, headers=headers) as answer:
            length, tag = len(await answer.read()), answer.headers["ETag"]
        async with gateway.client.head(path, headers=headers) as answer:
            assert (answer.status, answer.headers["Content-Length"], answer.headers["ETag"]) == (200, str(length), tag)
        async with gateway.client.get(path, headers=headers | {"If-None-Match": tag}) as answer:
            assert (answer.status, await answer.read()) == (304, b"")
    async with gateway.client.head(
        f"{gateway.url}/v1/camera/event/thumbnail/{gateway.camera_event_id}", headers=headers
    ) as got:
        assert (got.status, got.headers["Content-Length"]) == (200, str(footage.picture.stat().st_size))
    for method in ("GET", "HEAD"):
        async with gateway.client.request(method, f"{base}/7.ts") as answer:
            assert answer.status == 500, "no session, no footage"


async def test_pictures(gateway, footage):
    headers = await gateway.sign_in()
    for path in ("/v1/camera/thumbnail/201", f"/v1/camera/event/thumbnail/{gateway.camera_event_id}"):
        async with gateway.client.get(gateway.url + path, headers=headers) as answer:
            assert answer.content_type == "image/jpeg"
            assert await answer.read() == footage.picture.read_bytes()


async def test_a_camera_that_is_off_is_told(gateway):
    gateway.recording.show(condition="unreachable", detail="no route to host")
    for path in ("/v1/camera/thumbnail/201", f"/v1/camera/event/clip/{gateway.camera_event_id}"):
        status, answer = await gateway.call(path, method="GET")
        assert status == 503
        assert "no route to host" in answer["error"]


async def test_what_links_two_segments_is_told(gateway):
    async def told(query, camera=201):
        return await gateway.call(f"/status/chain/{camera}?{query}", method="GET")

    assert await told("after=3&before=6") == (200, {"success": True, "leaves": [f"{4:064x}", f"{5:064x}"]})
    assert (await told("after=3&before=4"))[1]["leaves"] == []
    for query, status in (
        ("after=3&before=3", 400), ("after=0&before=9000", 400), ("after=3", 400), ("after=-1&before=2", 400),
        ("after=x&before=4", 400), ("after=3&before=101", 404),
    ):  # fmt: skip
        assert (await told(query))[0] == status, query
    assert (await told("after=3&before=6", camera=999))[0] == 404
