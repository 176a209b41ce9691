from drivers.rtsp.frames import EncodedFrame
from drivers.rtsp.server.fanout import Fanout


def frame(n, *, keyframe=False):
    return EncodedFrame(b"", n, n, keyframe, 0.0)


async def taken(subscription):
    subscription.end()
    return [frame.pts async for frame in subscription.frames()]


async def test_begins_at_a_keyframe():
    feed = Fanout()
    with feed.subscribe() as viewer:
        for n in range(5):
            feed.publish(frame(n, keyframe=n == 2))
        assert await taken(viewer) == [2, 3, 4]
        assert viewer.dropped == 0
    assert feed.viewers == 0


async def test_a_slow_viewer_loses_counted_frames_and_no_other_does():
    feed = Fanout(most_queued=3)
    with feed.subscribe() as slow, feed.subscribe() as quick:
        seen = quick.frames()
        got = []
        for n in range(8):
            feed.publish(frame(n, keyframe=n % 5 == 0))
            got.append((await anext(seen)).pts)
        assert got == list(range(8))
        assert quick.dropped == 0
        assert slow.dropped == 4
        assert await taken(slow) == [5, 6, 7]


async def test_tells_the_format_of_the_latest_keyframe(encoded):
    feed = Fanout()
    feed.publish(encoded(0.1)[0])
    assert (await feed.format()).width == 320
    feed.publish(encoded(0.1, width=640, height=360)[0])
    assert (await feed.format()).width == 640
