"""Low-latency HLS of a real camera by a real worker, and the worker killed in the middle of a part."""

from __future__ import annotations

import os
import signal

import pytest
from hls_linter import lint_all, lint_media, lint_update, parse_media
from waiting import until

from gateway.domain.errors import CameraUnavailable
from gateway.recording.playlists import PlaylistReload


async def reloaded(recording, text: str) -> str:
    """As a player that asks for the next part, or the next segment where it knows of no parts."""
    read = parse_media(text)
    last = read.entries[-1].number
    if read.growing:
        return await recording.live.playlist(7, PlaylistReload(last + 1, len(read.growing)))
    return await recording.live.playlist(7, PlaylistReload(last + 1, 0 if read.entries[-1].parts else None))


async def fetched(recording) -> dict[str, bytes]:
    """All that the present playlist names, by its address."""
    found = {}
    read = parse_media(await recording.live.playlist(7))
    for entry in read.entries:
        if not entry.gap:
            found[entry.uri] = (await recording.live.segment(7, entry.number)).read_bytes()
        for part in entry.parts:
            number, index, _ = part.uri.split(".")
            opened = await recording.live.part(7, int(number), int(index))
            found[part.uri] = os.pread(opened.file.fileno(), opened.length, opened.offset)
    return found


async def test_parts_come_one_by_one(record, site, store):
    async with record(site) as recording:
        await until(lambda: rows(store, 1))
        before = await recording.live.playlist(7)
        assert parse_media(before).growing, "the first player gets parts at once"
        for _ in range(3):
            before = await followed(recording, before)
        text = await recording.live.playlist(7)
        files = await fetched(recording)
        assert lint_all(await recording.live.master(7), text, files.__getitem__, steady=False) == []


async def followed(recording, before: str) -> str:
    """Return the next playlist, which keeps all rules and goes on from the one before."""
    now = await reloaded(recording, before)
    assert lint_media(now, steady=False) == []
    assert lint_update(before, now) == []
    assert now != before
    return now


@pytest.mark.long("some segments at the camera's pace")
async def test_a_killed_worker_takes_no_part_back(record, site, store):
    async with record(site) as recording:
        await until(lambda: rows(store, 2))
        before = await recording.live.playlist(7)
        for _ in range(12):
            before = await followed(recording, before)
        assert sum(bool(entry.parts) for entry in parse_media(before).entries) >= 2
        (pid,) = recording.worker_pids()
        os.kill(pid, signal.SIGKILL)
        resumed = len(parse_media(before).entries)

        async def goes_on() -> bool:
            nonlocal before
            now = await recording.live.playlist(7)
            assert lint_update(before, now) == []
            before = now
            entries = parse_media(now).entries
            return len(entries) > resumed and any(entry.breaks for entry in entries) and bool(parse_media(now).growing)

        await until(goes_on)


async def test_a_camera_for_events_only_is_watched_in_whole_segments(record, site, store, pin):
    camera = site.cameras[0].model_copy(update={"record": "events", "pre_roll_seconds": 5.0})
    async with record(site.model_copy(update={"cameras": (camera,)})) as recording:
        await pin(7, before=1, after=8)
        await until(lambda: rows(store, 2))
        text = await recording.live.playlist(7)
        assert lint_media(text, steady=False) == []
        assert "EXT-X-PART" not in text
        last = parse_media(text).entries[-1].number
        assert f"\n{last + 1}.ts\n" in await recording.live.playlist(7, PlaylistReload(last + 1))


async def test_a_camera_without_footage_is_told(record, site, field):
    field.stream.refuse_with = 404
    async with record(site) as recording:
        with pytest.raises(CameraUnavailable, match="no footage"):
            await recording.live.playlist(7, PlaylistReload(1, 0))


async def rows(store, count: int) -> bool:
    return len(await store.segments.between(7, 0, 2**60)) >= count
