from drivers.camera.frames import EncodedFrame
from gateway.camera_worker.frame_queue import CameraConnected, FrameQueue, FramesDropped


def frame(n, *, keyframe=False):
    return EncodedFrame(b"x" * 10, n, n, keyframe, 0.0)


def test_drops_are_counted_and_end_at_a_keyframe():
    queue = FrameQueue(most_frames=2)
    for n in range(4):
        queue.put_frame(frame(n))
    queue.put(CameraConnected(None))
    assert queue.dropped == 2
    assert [queue.get(0).pts for _ in range(2)] == [0, 1]
    queue.put_frame(frame(4))
    queue.put_frame(frame(5, keyframe=True))
    assert queue.dropped == 3
    assert [queue.get(0) for _ in range(4)] == [CameraConnected(None), FramesDropped(), frame(5, keyframe=True), None]


def test_is_bounded_in_bytes_too():
    queue = FrameQueue(most_bytes=25)
    for n in range(5):
        queue.put_frame(frame(n, keyframe=True))
    assert queue.dropped == 3
