import threading

from drivers.rtsp.frames import AudioCodec, AudioFormat, EncodedAudio, EncodedFrame
from gateway.camera_worker.frame_queue import CameraConnected, FrameQueue, FramesDropped


def frame(n, *, keyframe=False):
    return EncodedFrame(b"x" * 10, n, n, keyframe, 0.0)


def test_drops_are_counted_and_end_at_a_keyframe():
    queue = FrameQueue(most_frames=2)
    queue.put_frames([frame(n) for n in range(4)])
    queue.put(CameraConnected(None))
    assert queue.dropped == 2
    assert queue.take(0) == [frame(0), frame(1), CameraConnected(None)]
    assert queue.take(0) == []
    queue.put_frames([frame(4), frame(5, keyframe=True)])
    assert queue.dropped == 3
    assert queue.take(0) == [FramesDropped(), frame(5, keyframe=True)]


def test_what_is_being_written_takes_room_until_it_is_written():
    queue = FrameQueue(most_frames=2)
    queue.put_frames([frame(0, keyframe=True), frame(1)])
    assert queue.take(0) == [frame(0, keyframe=True), frame(1)]
    assert not queue.is_done
    queue.put_frames([frame(2, keyframe=True)])
    assert queue.dropped == 1
    assert queue.take(0) == []
    assert queue.is_done
    queue.put_frames([frame(3, keyframe=True)])
    assert queue.take(0) == [FramesDropped(), frame(3, keyframe=True)]


def test_is_bounded_in_bytes_too():
    queue = FrameQueue(most_bytes=25)
    queue.put_frames([frame(n, keyframe=True) for n in range(5)])
    assert queue.dropped == 3


def test_sound_takes_no_frames_room_and_is_dropped_with_the_frames_it_belongs_to():
    queue = FrameQueue(most_frames=2)
    sounds = [EncodedAudio(b"x", n, 0.0, AudioFormat(AudioCodec.AAC, 8_000, 1)) for n in range(20)]
    for sound in sounds[:3]:
        queue.put_sound(sound)
    queue.put_frames([frame(1, keyframe=True), frame(2)])
    for sound in sounds[3:]:
        queue.put_sound(sound)
    queue.put_frames([frame(3)])
    queue.put_sound(sounds[0])
    assert queue.dropped == 1
    assert queue.take(0) == [*sounds[:3], frame(1, keyframe=True), frame(2), *sounds[3:6]]


def test_a_keyframe_wakes_whoever_waits():
    queue = FrameQueue()
    taken = []
    waiting = threading.Thread(target=lambda: taken.extend(queue.take(60)))
    waiting.start()
    queue.put_frames([frame(1, keyframe=True)])
    waiting.join(30)
    assert taken == [frame(1, keyframe=True)]
