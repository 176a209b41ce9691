"""The target duration of a live playlist holds for as long as somebody plays it."""

from __future__ import annotations

import pytest
from hls_linter import lint_media, lint_update
from set_machine import SetClock

from gateway.domain.footage import SegmentFinished, segment_path
from gateway.recording.live_hls import LiveHls


async def nobody(_wanted) -> None:
    """Ask no worker."""


@pytest.fixture
def camera(store, tmp_path):
    """A camera whose segments are as long as the test wants: `await camera.sends(seconds, ...)`."""

    class Camera:
        clock = SetClock()
        hls = LiveHls(
            segments=store.segments,
            links=store.chain_links,
            media=tmp_path,
            clock=clock,
            cameras=lambda: frozenset({7}),
            events_only=lambda: frozenset({7}),
            ask_for_parts=nobody,
        )

        async def sends(self, *lengths: float) -> None:
            for seconds in lengths:
                at, duration = self.clock.wall().micros, int(seconds * 1_000_000)
                path = segment_path(7, at, duration, "2027011508")
                await store.segments.add(
                    [
                        SegmentFinished(
                            camera_id=7, path=path, started_at=at, clock_trusted=True, duration=duration, size=188,
                            codec="avc1.64001f", width=320, height=180, frames=int(seconds * 25), sha256="0" * 64,
                        )
                    ]
                )  # fmt: skip
                self.clock.seconds += seconds

        async def target(self) -> int:
            (line,) = [line for line in (await self.hls.playlist(7)).splitlines() if "TARGETDURATION" in line]
            return int(line.partition(":")[2])

    return Camera()


async def test_the_target_never_changes_while_somebody_plays(camera):
    await camera.sends(*[2] * 12)
    before, targets = await camera.hls.playlist(7), set()
    for length in (2, 2, 2.4, 2, 2):
        await camera.sends(length)
        text = await camera.hls.playlist(7)
        assert lint_media(text, steady=True) == []
        assert lint_update(before, text) == []
        assert "ENDLIST" not in text
        targets.add(await camera.target())
        before = text
    assert targets == {2}


async def test_a_playlist_ends_before_a_segment_that_is_longer_than_was_promised(camera):
    await camera.sends(*[2] * 12)
    assert await camera.target() == 2
    await camera.sends(10)
    ended = await camera.hls.playlist(7)
    assert ended.endswith("#EXT-X-ENDLIST\n")
    assert await camera.target() == 2
    assert "EXTINF:10" not in ended
    await camera.sends(10)
    assert await camera.target() == 10, "who plays it anew gets a playlist of its own"
    text = await camera.hls.playlist(7)
    assert "ENDLIST" not in text
    assert text.count("EXTINF:10") == 2


async def test_a_playlist_that_nobody_plays_promises_nothing(camera):
    await camera.sends(*[2] * 12)
    assert await camera.target() == 2
    await camera.sends(*[10] * 7)
    assert await camera.target() == 10
