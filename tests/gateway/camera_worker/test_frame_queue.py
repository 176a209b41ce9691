import threading

from drivers.rtsp.frames import AudioCodec, AudioFormat, EncodedAudio, EncodedFrame
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


def test_sound_takes_no_frames_room_and_is_dropped_with_the_frames_it_belongs_to():
    queue = FrameQueue(most_frames=2)
    sounds = [EncodedAudio(b"x", n, 0.0, AudioFormat(AudioCodec.AAC, 8_000, 1)) for n in range(20)]
    for sound in sounds[:3]:
        queue.put_sound(sound)
    queue.put_frame(frame(1, keyframe=True))
    queue.put_frame(frame(2))
    for sound in sounds[3:]:
        queue.put_sound(sound)
    queue.put_frame(frame(3))
    queue.put_sound(sounds[0])
    assert queue.dropped == 1
    taken = list(iter(lambda: queue.get(0), None))
    assert taken == [*sounds[:3], frame(1, keyframe=True), frame(2), *sounds[3:6]]


def test_a_keyframe_wakes_whoever_waits():
    queue = FrameQueue()
    taken = []
    waiting = threading.Thread(target=lambda: taken.append(queue.get(60)))
    waiting.start()
    queue.put_frame(frame(1, keyframe=True))
    waiting.join(30)
    assert taken == [frame(1, keyframe=True)]
