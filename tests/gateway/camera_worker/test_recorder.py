"""The writing thread of one camera, and a disk that hangs without an error."""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import replace

import pytest
from set_machine import SetClock

from gateway.camera_worker.frame_queue import CameraConnected
from gateway.camera_worker.recorder import CameraRecorder, RecorderStart
from gateway.domain.footage import CameraCondition, GapReason, PartWritten, SegmentFinished, StreamFault, WorkerCamera

DEADLINE_SECONDS = 20.0


class NoReader:
    """A reader of no camera: the test gives the frames."""

    def start(self):
        pass

    def stop(self):
        pass


class Written:
    """A recorder that is given frames by hand, and hangs where it would on a disk whenever `moves` is cleared."""

    def __init__(self, tmp_path, frames):
        self.clock = SetClock()
        self.told = []
        self.hangs = threading.Event()
        self.moves = threading.Event()
        self.moves.set()
        self._frames = itertools.cycle(frames)
        self._pushed = 0
        self.recorder = CameraRecorder(
            camera=WorkerCamera(camera_id=3, url="rtsp://127.0.0.1:1/none", segment_seconds=1.0),
            media=tmp_path,
            clock=self.clock,
            live=None,
            report=self._report,
            start=RecorderStart(salvage_first=False),
            reader=self._reader,
        )
        self.queue.put(CameraConnected(None))
        self.recorder.start()

    def _reader(self, *, sink, **_):
        self.queue = sink
        return NoReader()

    def _report(self, item):
        if isinstance(item, SegmentFinished) and not self.moves.is_set():
            self.hangs.set()
            assert self.moves.wait(DEADLINE_SECONDS)
        self.told.append(item)

    def push(self, seconds, **more):
        for _ in range(seconds * 10):
            frame = next(self._frames)
            ticks = self._pushed * 9_000
            self.queue.put_frames([replace(frame, pts=ticks, dts=ticks, arrived=100 + self._pushed / 10, **more)])
            self._pushed += 1

    def segments(self):
        return [item for item in self.told if isinstance(item, SegmentFinished)]

    def drain(self):
        until = time.monotonic() + DEADLINE_SECONDS
        while not self.queue.is_done:
            assert time.monotonic() < until
            threading.Event().wait(0.01)


@pytest.fixture
def written(tmp_path, encoded):
    made = Written(tmp_path, encoded(1))
    yield made
    made.moves.set()
    made.recorder.stop()
    assert made.recorder.join(DEADLINE_SECONDS)


@pytest.mark.parametrize(("hung", "reason"), [(30.0, GapReason.DISK), (1.0, GapReason.BACK_PRESSURE)])
def test_what_is_dropped_while_the_disk_hangs_is_missing_for_the_disk(written, hung, reason):
    written.push(2)
    written.drain()
    written.moves.clear()
    written.push(2)
    assert written.hangs.wait(DEADLINE_SECONDS)
    written.push(60)
    assert written.recorder.state().dropped > 0
    written.clock.seconds += hung
    written.moves.set()
    written.drain()
    written.push(4)
    written.recorder.stop()
    assert written.recorder.join(DEADLINE_SECONDS)
    reasons = [segment.gap for segment in written.segments()]
    assert [gap for gap in reasons[1:] if gap is not GapReason.NONE] == [reason]


def test_the_pace_of_a_cameras_timestamps_is_reported(written):
    written.push(1)
    written.drain()
    assert (written.recorder.state().faults, written.recorder.state().pace) == ((), 1.0)
    written.push(2, pace=0.84)
    until = time.monotonic() + DEADLINE_SECONDS
    while not written.recorder.state().faults:
        assert time.monotonic() < until
        threading.Event().wait(0.01)
    assert (written.recorder.state().faults, written.recorder.state().pace) == ((StreamFault.OFF_PACE,), 0.84)


def test_a_disk_that_moves_again_is_no_camera_that_stalled(written):
    written.push(2)
    written.drain()
    written.moves.clear()
    written.push(2)
    assert written.hangs.wait(DEADLINE_SECONDS)
    written.clock.seconds += 120
    written.moves.set()
    written.drain()
    written.recorder.stop()
    assert written.recorder.join(DEADLINE_SECONDS)
    conditions = {item.condition for item in written.told if not isinstance(item, SegmentFinished)}
    assert CameraCondition.STALLED not in conditions


def parts(written):
    return [item for item in written.told if isinstance(item, PartWritten)]


def test_parts_are_reported_as_long_as_somebody_wants_them(written):
    written.push(3)
    written.drain()
    assert not parts(written)
    assert not written.queue.hurried
    written.recorder.want_parts(part_seconds=0.4, longest_seconds=2.5, seconds=10.0)
    written.push(2)
    written.drain()
    told = len(parts(written))
    assert told >= 4
    assert written.queue.hurried
    written.clock.seconds += 11.0
    written.push(1)
    written.drain()
    until = time.monotonic() + DEADLINE_SECONDS
    while written.queue.hurried:
        assert time.monotonic() < until
        threading.Event().wait(0.01)
    told = len(parts(written))
    written.push(3)
    written.drain()
    assert len(parts(written)) == told
