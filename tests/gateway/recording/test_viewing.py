"""A view is known under its own camera's path alone."""

from dataclasses import dataclass, field

import pytest

from gateway.domain.errors import CameraUnavailable
from gateway.domain.viewing import NotShown
from gateway.recording.viewing import Viewing


@dataclass
class Worker:
    cameras: frozenset[int] = frozenset({20, 201})
    ended: list[str] = field(default_factory=list)

    @property
    def client(self):
        return self

    async def end_view(self, view):
        self.ended.append(view)


async def test_a_view_is_not_ended_under_another_cameras_path():
    worker = Worker()
    viewing = Viewing(cameras=lambda: worker.cameras, workers=lambda: (worker,), most=1)
    with pytest.raises(NotShown, match="no such session of this camera"):
        await viewing.end(20, "201-name")
    await viewing.end(201, "201-name")
    assert worker.ended == ["201-name"]


async def test_a_worker_is_told_once_in_its_life_that_a_viewer_may_come():
    worker = Expecting()
    other = Expecting(name="other", cameras=frozenset({7}))
    viewing = Viewing(cameras=lambda: worker.cameras, workers=lambda: (other, worker), most=1)
    await viewing.expect(20)
    await viewing.expect(201)
    await viewing.expect(999)
    assert (worker.told, other.told) == (1, 0)
    worker.pid = 2
    await viewing.expect(20)
    assert worker.told == 2


async def test_a_worker_that_is_away_keeps_nobody_from_asking_where_to_watch():
    worker = Expecting(gone=True)
    await Viewing(cameras=lambda: worker.cameras, workers=lambda: (worker,), most=1).expect(20)
    assert worker.told == 1


@dataclass
class Expecting(Worker):
    name: str = "worker"
    pid: int = 1
    told: int = 0
    gone: bool = False

    async def expect_view(self):
        self.told += 1
        if self.gone:
            raise CameraUnavailable("it is being restarted")
