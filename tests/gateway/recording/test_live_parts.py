"""Low-latency HLS: parts of a growing segment, reloads that wait for them, and what happens when none come."""

from __future__ import annotations

import asyncio
import os

import pytest
from hls_linter import lint_media, lint_update, parse_media
from set_machine import SetClock

from gateway.domain.errors import CameraUnavailable, GatewayError, NotFoundError
from gateway.domain.footage import PartWritten, SegmentFinished, WantParts, segment_path
from gateway.recording import live_hls
from gateway.recording.live_hls import LiveHls, TooFarAhead
from gateway.recording.playlists import PlaylistReload

PART = 400_000


class Camera:
    """A camera of 25 pictures a second whose worker writes parts of 0.4 s, five to a segment."""

    def __init__(self, store, media) -> None:
        self.clock = SetClock()
        self.asked: list[WantParts] = []
        self._store = store
        self._media = media
        self._before = ""
        self._file = ""
        self._begun = 0
        self._lengths: list[int] = []
        self.hls = LiveHls(
            segments=store.segments,
            links=store.chain_links,
            media=media,
            clock=self.clock,
            cameras=lambda: frozenset({7}),
            ask_for_parts=self._ask,
        )

    async def _ask(self, wanted: WantParts) -> None:
        self.asked.append(wanted)

    def begin(self) -> None:
        self._begun, self._lengths = self.clock.wall().micros, []
        self._file = f"7/2027011508/{self._begun}.part"
        (self._media / self._file).parent.mkdir(parents=True, exist_ok=True)

    def write(self, *, duration: int = PART, index: int | None = None, told: bool = True) -> bytes:
        """Write a part; return its bytes."""
        number = len(self._lengths)
        data = bytes([self._begun // 2_000_000 % 200, number]) * 188
        with (self._media / self._file).open("ab") as file:
            file.write(data)
        self.clock.seconds += duration / 1_000_000
        if told:
            self.hls.parts.hear(
                PartWritten(
                    camera_id=7, file=self._file, follows=self._before, index=number if index is None else index,
                    offset=sum(self._lengths), length=len(data), duration=duration, independent=not number,
                )
            )  # fmt: skip
        self._lengths.append(len(data))
        return data

    def end(self) -> SegmentFinished:
        """Finish the segment's file; its row comes later."""
        duration = self.clock.wall().micros - self._begun
        path = segment_path(7, self._begun, duration, "2027011508")
        (self._media / self._file).rename(self._media / path)
        finished = SegmentFinished(
            camera_id=7, path=path, grew_as=self._file, started_at=self._begun, clock_trusted=True, duration=duration,
            size=sum(self._lengths), codec="avc1.64001f", width=320, height=180, frames=duration // 40_000,
            sha256="0" * 64,
        )  # fmt: skip
        self.hls.parts.hear(finished)
        self._before = self._file
        return finished

    async def row(self, finished: SegmentFinished) -> None:
        await self._store.segments.add([finished])
        self.hls.rows_changed(frozenset({7}))

    async def finish(self) -> None:
        await self.row(self.end())

    async def segment(self, *, told: bool = True) -> None:
        self.begin()
        for _ in range(5):
            self.write(told=told)
        await self.finish()

    async def playlist(self, number: int | None = None, part: int | None = None) -> str:
        return await self.hls.playlist(7, None if number is None else PlaylistReload(number, part))


@pytest.fixture
async def camera(store, tmp_path):
    """A camera that has recorded seven segments before somebody watches, and then begins an eighth with two parts."""
    made = Camera(store, tmp_path)
    for _ in range(7):
        await made.segment(told=False)
    made.begin()
    made.write()
    made.write()
    yield made
    made.hls.parts.close()


@pytest.fixture
async def beside():
    """Run something beside the test; its outcome may be an error of the gateway."""
    async with asyncio.TaskGroup() as group:
        yield lambda awaited: group.create_task(outcome(awaited))


async def outcome(awaited):
    try:
        return await awaited
    except GatewayError as error:
        return error


async def test_playlists_keep_the_rules_as_parts_and_segments_come(camera):
    before = await camera.playlist()
    assert lint_media(before) == []
    assert [part.uri for part in parse_media(before).growing] == ["8.0.ts", "8.1.ts"]
    assert parse_media(before).hints == [{"TYPE": "PART", "URI": "8.2.ts"}]
    assert parse_media(before).part_target == pytest.approx(0.432)
    for step in range(3, 30):
        camera.write()
        if step % 5 == 0:
            await camera.finish()
            camera.begin()
        now = await camera.playlist()
        assert lint_media(now) == []
        assert lint_update(before, now) == []
        before = now
    assert [len(entry.parts) for entry in parse_media(before).entries][-4:] == [0, 5, 5, 5], (
        "no older than three targets"
    )


async def test_a_reload_waits_for_its_part_and_no_longer(camera, beside):
    text = await camera.playlist(8, 1)
    assert "8.1.ts" in text, "it is there already"
    waiting = beside(camera.playlist(8, 2))
    await camera.hls.master(7)
    assert not waiting.done()
    camera.write()
    assert "8.2.ts" in await waiting
    past_the_end = beside(camera.playlist(8, 5))
    whole = beside(camera.playlist(8))
    camera.write()
    camera.write()
    await camera.finish()
    assert "\n8.ts\n" in await whole
    assert not past_the_end.done(), "there is no sixth part, so it means the first of the next segment"
    camera.begin()
    camera.write()
    assert 'URI="9.0.ts"' in await past_the_end
    assert 'URI="9.0.ts"' in await camera.playlist(3, 0), "one that is long over is answered at once"


async def test_a_part_can_be_fetched_while_its_file_grows_and_under_its_final_name(camera, beside):
    await camera.playlist()

    async def fetched(number: int, index: int) -> bytes:
        part = await camera.hls.part(7, number, index)
        return os.pread(part.file.fileno(), part.length, part.offset)

    hinted = beside(fetched(8, 2))
    await camera.hls.master(7)
    third = camera.write()
    assert await hinted == third
    not_to_be = beside(fetched(8, 3))
    await camera.hls.master(7)
    await camera.finish()
    assert isinstance(await not_to_be, NotFoundError)
    assert await fetched(8, 2) == third
    for number, index in ((8, 9), (9, 7), (3, 0)):
        with pytest.raises(NotFoundError):
            await fetched(number, index)


async def test_what_cannot_come_soon_is_refused_at_once(camera):
    for number, part in ((10, None), (2**40, 0), (8, 10_000)):
        with pytest.raises(TooFarAhead):
            await camera.playlist(number, part)


async def test_fifty_who_wait_are_answered_when_the_camera_dies_or_the_gateway_stops(camera, beside, monkeypatch):
    assert live_hls.BLOCKED_TARGETS == 3
    monkeypatch.setattr(live_hls, "BLOCKED_TARGETS", 0.2)
    await camera.playlist()
    waiting = [beside(camera.playlist(8, 2)) for _ in range(50)]
    assert {type(await answer) for answer in waiting} == {CameraUnavailable}, "after some target durations"
    monkeypatch.setattr(live_hls, "BLOCKED_TARGETS", 600)
    waiting = [beside(camera.playlist(9)) for _ in range(50)]
    await asyncio.sleep(0.1)  # until each of them waits, which nothing tells
    camera.hls.release()
    assert {type(await answer) for answer in waiting} == {CameraUnavailable}


async def test_a_segment_of_which_a_part_is_unknown_gets_no_more(camera):
    await camera.playlist()
    camera.write(told=False)
    camera.write()
    text = await camera.playlist()
    assert [part.uri for part in parse_media(text).growing] == ["8.0.ts", "8.1.ts"]
    await camera.finish()
    assert "\n8.ts\n" in await camera.playlist()


async def test_parts_wait_for_the_row_of_the_segment_before(camera):
    before = await camera.playlist()
    finished = camera.end()
    camera.begin()
    camera.write()
    now = await camera.playlist()
    assert [part.uri for part in parse_media(now).growing] == ["8.0.ts", "8.1.ts"]
    assert not parse_media(now).hints
    await camera.row(finished)
    after = await camera.playlist()
    assert [part.uri for part in parse_media(after).growing] == ["9.0.ts"]
    assert lint_update(before, now) + lint_update(now, after) == []


async def test_parts_are_asked_for_while_somebody_watches(camera):
    await camera.playlist()
    await camera.playlist()
    assert [(wanted.camera_id, wanted.part_seconds) for wanted in camera.asked] == [(7, 0.4)]
    camera.clock.seconds += 4
    await camera.playlist()
    assert len(camera.asked) == 2
    with pytest.raises(NotFoundError):
        await camera.hls.playlist(8)
    assert await camera.hls.classic(7)
    await camera.hls.master(7)
    assert len(camera.asked) == 2


async def test_a_part_that_lasts_longer_than_promised_passes_its_excess_on(camera):
    before = await camera.playlist()
    camera.write(duration=500_000)
    camera.write(duration=380_000)
    now = await camera.playlist()
    assert lint_update(before, now) == []
    seconds = [part.seconds for part in parse_media(now).growing]
    assert max(seconds) <= parse_media(now).part_target
    assert sum(seconds) == pytest.approx(1.664, abs=0.001)


async def test_a_segment_that_outgrows_the_target_duration_lists_no_more_parts(camera):
    await camera.playlist()
    for _ in range(8):
        camera.write()
    text = await camera.playlist()
    assert lint_media(text) == []
    assert not parse_media(text).hints
    await camera.finish()
    assert (await camera.playlist()).endswith("#EXT-X-ENDLIST\n")
    assert (await camera.playlist(99, 3)).endswith("#EXT-X-ENDLIST\n"), "nobody waits for more of what has ended"


async def test_a_playlist_of_whole_segments_has_no_parts_and_a_place_to_begin(camera):
    text = await camera.hls.classic(7)
    assert lint_media(text) == []
    assert "EXT-X-PART" not in text
    assert "#EXT-X-START:TIME-OFFSET=-3.500" in text
    assert "EXT-X-START" not in await camera.playlist()


async def test_files_are_closed_when_nobody_watches_any_more(camera):
    await camera.playlist()
    part = await camera.hls.part(7, 8, 0)
    assert not part.file.closed
    camera.clock.seconds += 21
    await camera.finish()
    assert part.file.closed
