"""A view is known under its own camera's path alone."""

from dataclasses import dataclass, field

import pytest

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
