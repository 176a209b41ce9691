"""Each viewer gets the group of pictures so far and each frame after it once, whatever the threads do."""

from __future__ import annotations

import asyncio
import threading

from drivers.rtsp.frames import EncodedFrame, Entry, VideoCodec
from gateway.camera_worker.live_feed import MOST_GROUP_BYTES, MOST_QUEUED, LiveFeed, why_not_live


def frame(number: int, *, keyframe: bool = False, size: int = 10, **more) -> EncodedFrame:
    return EncodedFrame(bytes(size), number * 3_600, number * 3_600, keyframe, number / 25, **more)


async def taken(view, number: int) -> list[int]:
    async with asyncio.timeout(30):
        return [(await view.next()).frame.pts // 3_600 for _ in range(number)]


async def test_a_viewer_begins_at_the_keyframe_of_the_running_group():
    feed = LiveFeed(loop=asyncio.get_running_loop())
    for number in range(7):
        feed.offer([frame(number, keyframe=number % 5 == 0)])
    with feed.watch() as view:
        feed.offer([frame(7)])
        assert await taken(view, 3) == [5, 6, 7]


async def test_no_frame_is_lost_or_doubled_while_another_thread_offers():
    feed = LiveFeed(loop=asyncio.get_running_loop())
    stopping = threading.Event()
    feed.offer([frame(0, keyframe=True)])

    def offers():
        number = 1
        while not stopping.is_set() and number < 200_000:
            feed.offer([frame(number, keyframe=number % 50 == 0)])
            number += 1
            stopping.wait(0.0002)

    thread = threading.Thread(target=offers)
    thread.start()
    try:
        for _ in range(30):
            with feed.watch() as view, feed.watch() as other:
                for one in (view, other):
                    seen = await taken(one, 80)
                    assert seen[0] % 50 == 0
                    assert seen == list(range(seen[0], seen[0] + 80))
    finally:
        stopping.set()
        thread.join()


async def test_one_who_is_too_slow_goes_on_at_a_keyframe():
    feed = LiveFeed(loop=asyncio.get_running_loop())
    feed.offer([frame(0, keyframe=True)])
    with feed.watch() as view:
        for number in range(1, MOST_QUEUED + 5):
            feed.offer([frame(number)])
        feed.offer([frame(1_000, keyframe=True)])
        feed.offer([frame(1_001)])
        await asyncio.sleep(0)
        assert await taken(view, 2) == [1_000, 1_001]
        assert view.dropped > MOST_QUEUED


async def test_a_restart_gives_the_newest_group_again():
    feed = LiveFeed(loop=asyncio.get_running_loop())
    feed.offer([frame(0, keyframe=True)])
    feed.offer([frame(1)])
    with feed.watch() as view:
        assert await taken(view, 2) == [0, 1]
        view.restart()
        feed.offer([frame(2)])
        assert await taken(view, 3) == [0, 1, 2]


async def test_memory_is_bounded_by_a_group_that_does_not_end():
    feed = LiveFeed(loop=asyncio.get_running_loop())
    feed.offer([frame(0, keyframe=True)])
    for number in range(1, 20):
        feed.offer([frame(number, size=MOST_GROUP_BYTES // 10)])
    assert feed.group() == ()
    with feed.watch() as view:
        feed.offer([frame(20)])
        feed.offer([frame(21, keyframe=True)])
        assert await taken(view, 1) == [21]


async def test_after_a_loss_nothing_is_live_until_the_next_keyframe():
    feed = LiveFeed(loop=asyncio.get_running_loop())
    feed.offer([frame(0, keyframe=True)])
    feed.lost()
    feed.offer([frame(1)])
    assert feed.group() == ()


async def test_the_end_of_the_camera_ends_its_viewers():
    feed = LiveFeed(loop=asyncio.get_running_loop())
    with feed.watch() as view:
        feed.end()
        assert await view.next() is None
    assert feed.viewers == 0
    with feed.watch() as late:
        assert await late.next() is None


async def test_b_frames_are_remembered_when_the_group_that_runs_does_not_show_them_yet():
    feed = LiveFeed(loop=asyncio.get_running_loop())
    feed.offer([frame(0, keyframe=True)])
    assert not feed.reorders
    for number in (3, 1, 2):
        feed.offer([frame(number)])
    feed.lost()
    feed.offer([frame(6, keyframe=True)])
    assert feed.reorders
    assert "B-frames" in why_not_live(feed.group(), reorders=feed.reorders)
    for number in range(7, 40):
        feed.offer([frame(number, keyframe=True)])
    assert not feed.reorders, "they were turned off in the camera"


def test_what_webrtc_cannot_carry_is_said():
    plain = [(number, frame(number, keyframe=number == 0)) for number in range(3)]
    assert why_not_live(tuple(plain)) == ""
    assert "B-frames" in why_not_live((plain[0], plain[2], plain[1]))
    assert "H.265" in why_not_live(((0, frame(0, keyframe=True, codec=VideoCodec.H265)),))


def test_browsers_begin_at_an_idr_alone():
    feed = LiveFeed(loop=None)
    feed.offer([frame(0, keyframe=True)])
    feed.offer([frame(1, keyframe=True, entry=Entry.RECOVERY)])
    assert [number for number, _ in feed.group()] == [1, 2], "a recovery point ends no group that began with an IDR"
    assert why_not_live(feed.group()) == ""
    feed.lost()
    feed.offer([frame(2, keyframe=True, entry=Entry.RECOVERY)])
    feed.offer([frame(3, keyframe=True, entry=Entry.RECOVERY)])
    assert len(feed.group()) == 1
    assert "no IDR pictures" in why_not_live(feed.group())
