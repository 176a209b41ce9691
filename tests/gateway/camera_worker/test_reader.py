"""Pauses of a reader before it asks a camera again."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from hostile_camera import film

from drivers.rtsp.client.connection import ReadBuffers
from drivers.rtsp.errors import AccountRefused, CameraEnded, CameraRefused
from gateway.camera_worker import reader
from gateway.camera_worker.reader import CameraReader, ReaderContext, account_wait, reconnect_wait
from gateway.domain.footage import WorkerCamera
from gateway.runtime.clock import SystemClock


class Scripted:
    """A camera that sends pictures for some seconds and then fails."""

    sound = None
    why_silent = ""

    def __init__(self, seconds, error):
        self._seconds, self._error = seconds, error

    def open(self):
        if self._seconds is None:
            raise self._error

    def batches(self):
        (first, second) = film(frames=2)
        yield [first]
        yield [replace(second, arrived=self._seconds)]
        raise self._error

    def gather(self, size):
        pass

    def interrupt(self):
        pass

    def close(self):
        pass


class Always:
    def wait_for_turn(self, stopping):
        return not stopping.is_set()


class Sink:
    def put(self, item):
        pass

    put_frames = put_sound = put_loss = put


def waits(monkeypatch, script):
    """`(which, failures)` of each wait after what the camera does in turn."""
    told, done, scripts = [], threading.Event(), iter(script)
    camera = WorkerCamera(camera_id=1, url="rtsp://unused")
    made = CameraReader(
        ReaderContext(SystemClock(), Always(), ReadBuffers()),
        camera=camera,
        url=camera.url,
        sink=Sink(),
        live=None,
        audio=False,
    )

    def note(name):
        def wait(failures):
            told.append((name, failures))
            if len(told) == len(script):
                made.stop()
                done.set()
            return 0.0

        return wait

    monkeypatch.setattr(reader, "source_at", lambda *_args, **_more: Scripted(*next(scripts)))
    monkeypatch.setattr(reader, "reconnect_wait", note("reconnect"))
    monkeypatch.setattr(reader, "account_wait", note("account"))
    made.start()
    assert done.wait(10)
    return told


def test_a_run_of_good_pictures_makes_the_next_failure_the_first(monkeypatch):
    ended, none = CameraEnded("over"), CameraRefused("no stream")
    script = [(None, none), (None, none), (4.0, ended), (6.0, ended), (0.0, ended), (6.0, ended)]
    assert [failures for _, failures in waits(monkeypatch, script)] == [1, 2, 3, 1, 2, 1]


def test_a_camera_that_refuses_the_account_is_asked_seldom(monkeypatch):
    refused = (None, AccountRefused("the camera refused the account"))
    assert waits(monkeypatch, [refused, refused, (6.0, CameraEnded("over"))]) == [
        ("account", 1), ("account", 2), ("reconnect", 1),
    ]  # fmt: skip


@pytest.mark.parametrize(("failures", "least"), [(1, 30), (2, 60), (9, 300)])
def test_the_waits_grow_and_are_spread(failures, least):
    assert all(least <= account_wait(failures) <= 1.5 * least for _ in range(50))
    assert reconnect_wait(failures) <= 10
