"""A view is known under its own camera's path alone."""

from dataclasses import dataclass, field

import pytest
from aiortc import RTCConfiguration, RTCPeerConnection

from gateway.domain.errors import CameraUnavailable
from gateway.domain.footage import WorkerCamera
from gateway.domain.viewing import LONGEST_FRAGMENT, LONGEST_OFFER, NotShown, ViewOpened, ViewRefusal
from gateway.recording.viewing import Viewing
from gateway.recording.worker_client import WorkerClient
from tests.gateway.camera_worker.conftest import own_camera, start_worker  # noqa: F401 (fixtures)


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


async def test_an_sdp_that_is_too_long_is_refused_in_words():
    worker = Living(client=Worker())
    viewing = Viewing(cameras=lambda: worker.cameras, workers=lambda: (worker,), most=1)
    for asked in (
        viewing.open(201, "v" * (LONGEST_OFFER + 1), address=""),
        viewing.trickle(201, "201-name", tags=("*",), fragment="a" * (LONGEST_FRAGMENT + 1)),
    ):
        with pytest.raises(NotShown, match="characters, and may have") as refused:
            await asked
        assert refused.value.refusal is ViewRefusal.BAD_OFFER
    assert worker.viewers == 0


async def test_an_open_view_is_found_until_it_has_ended(start_worker, own_camera):  # noqa: F811
    camera = await own_camera()
    process = await start_worker()
    await process.assign(WorkerCamera(camera_id=201, url=camera.url, segment_seconds=0.5))
    await process.until(lambda: process.segments(201))
    player = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    player.addTransceiver("video", "recvonly")
    await player.setLocalDescription(await player.createOffer())
    async with WorkerClient(socket=process.socket) as client:
        worker = Living(client=client)
        viewing = Viewing(cameras=lambda: worker.cameras, workers=lambda: (worker,), most=1)
        view = (await viewing.open(201, player.localDescription.sdp, address="127.0.0.1")).view
        await viewing.look(201, view)
        with pytest.raises(NotShown):
            await viewing.look(20, view)
        await viewing.end(201, view)
        with pytest.raises(NotShown) as refused:
            await viewing.look(201, view)
        assert refused.value.refusal is ViewRefusal.UNKNOWN
    await player.close()


async def test_refused_and_replaced_offers_take_no_place_of_others():
    """Before the worker's next report: somebody may send twenty in a second."""
    worker = Choosy()
    viewing = Viewing(cameras=lambda: worker.cameras, workers=lambda: (worker,), most=2)
    for _ in range(10):
        with pytest.raises(NotShown) as refused:
            await viewing.open(201, "bad", address="192.0.2.1")
        assert refused.value.refusal is ViewRefusal.BAD_OFFER
        assert (await viewing.open(201, "good", address="192.0.2.1")).viewers == 1


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
class Choosy(Worker):
    """A worker that refuses some offers, and ends an earlier view for each other."""

    viewers: int = 0

    async def open_view(self, asked):
        if asked.offer == "bad":
            raise NotShown(ViewRefusal.BAD_OFFER, "the offer makes no sense")
        return ViewOpened(view="201-name", tag="tag", answer="answer", viewers=1)


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


@dataclass
class Living:
    client: WorkerClient
    cameras: frozenset[int] = frozenset({20, 201})
    viewers: int = 0
