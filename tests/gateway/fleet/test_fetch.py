"""Files over the fleet: a bundle, a clip and a proof package, made with rights, and fetched whole or not at all."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import groupby

import pytest
from at_work import running
from cut_footage import CAMERA, CutFootage, cut_footage
from far_end_site import a_barrier, alive
from fleet_desk import ANNA, BUNDLE, GUARD, RIGHTS, Desk, listens
from fleet_scene import NAME, SOON, connection
from typer.testing import CliRunner
from waiting import until

from gateway.cli.fleet import app
from gateway.domain.errors import GatewayError
from gateway.domain.events import Event, EventKind
from gateway.domain.passages import Moment
from gateway.fleet.connection import FleetServer, connected
from gateway.fleet.offered_files import PART_BYTES
from gateway.fleet.operator import FileFetch
from gateway.fleet.signed_commands import Action, AskPart, FileOffer, signed
from gateway.proof_package import verify
from gateway.runtime.clock import SystemClock
from gateway.runtime.supervision import Supervisor
from gateway.store import Entry


class Scene:
    """A desk with footage, and people who fetch from it over a line of their own."""

    def __init__(self, desk: Desk, footage: CutFootage, url: str, folder) -> None:
        self.desk, self.footage, self.url, self.folder = desk, footage, url, folder
        self.last: FileOffer | None = None

    async def fetched(self, action: Action, *, seed: str = ANNA[0], url: str = "", **wanted) -> bytes:
        """Fetch a file; its content."""
        said = []
        fetch = FileFetch(
            connect=partial(line_to, url or self.url),
            name=NAME,
            seed=seed,
            told=said.append,
            clock=SystemClock(),
            backoff=SOON,
        )
        path, self.last = await fetch.run(action, self.folder / "fetched", **wanted)
        return path.read_bytes()

    async def clip(self, begin: float, end: float, **more) -> bytes:
        """Fetch a clip between these seconds of the footage."""
        first, last = (moment(self.footage.begin + round(one * 1e6)) for one in (begin, end))
        return await self.fetched(Action.CLIP, camera=CAMERA, begin=first, end=last, **more)

    def left(self) -> list[str]:
        """The files that the one who fetches has."""
        return sorted(path.name for path in self.folder.iterdir())


def moment(micros: int) -> datetime:
    return datetime.fromtimestamp(micros / 1e6, UTC)


@asynccontextmanager
async def line_to(url: str):
    async with connected(FleetServer(url=url, credentials="", ca_file=None, name="anna")) as (line, _):
        yield line


@pytest.fixture
async def scene(server, broker, tmp_path):
    media, data, folder = (tmp_path / name for name in ("media", "data", "fetched"))
    for path in (media, data, folder):
        path.mkdir()
    async with (
        a_barrier() as (barrier, _, port),
        alive(tmp_path, barrier=barrier, port=port) as lane,
        Supervisor(clock=SystemClock()) as supervisor,
        cut_footage(lane.store, media) as footage,
    ):
        desk = Desk(lane, supervisor, recording=footage, folder=data)
        async with running(connection(server.url, desk.down).run()):
            await until(lambda: listens(broker))
            yield Scene(desk, footage, server.url, folder)


async def test_a_bundle_comes_in_parts_and_is_whole(scene):
    assert await scene.fetched(Action.BUNDLE) == BUNDLE
    assert (scene.last.name, scene.last.parts) == ("bundle.tar.gz", -(-len(BUNDLE) // PART_BYTES))
    assert scene.left() == ["fetched"]


async def test_a_clip_of_a_camera_shows_the_wanted_time_and_tells_what_it_lacks(scene):
    video = await scene.clip(1.0, 3.0)
    (made,) = scene.footage.made
    assert abs(made.duration - 2_000_000) < 100_000
    assert video[4:8] == b"ftyp"
    assert await scene.clip(1.0, 3.0) == video
    assert len(scene.footage.made) == 1
    assert scene.last.gaps == ()
    await scene.clip(-2.0, 1.0)
    (gap,) = scene.last.gaps
    assert gap.startswith(moment(scene.footage.begin - 2_000_000).isoformat()[:19])


async def test_the_command_writes_a_clip_and_says_what_it_lacks(scene):
    begin, end = (moment(scene.footage.begin + one).isoformat() for one in (-2_000_000, 1_000_000))
    seed, clip = scene.folder / "my.nk", scene.folder / "clip.mp4"
    seed.write_text(ANNA[0])
    options = ("--server", scene.url, "--credentials", seed, "--output", clip)
    words = ["clip", *str(NAME).split("."), *map(str, (CAMERA, begin, end, *options))]
    told = await asyncio.to_thread(CliRunner().invoke, app, words)
    assert told.exit_code == 0, told.output
    assert f"done\nwritten to {clip}: " in told.output
    assert f"missing from {begin[:19]}" in told.output
    assert clip.read_bytes()[4:8] == b"ftyp"
    words[4] = "yesterday"
    wrong = await asyncio.to_thread(CliRunner().invoke, app, words)
    assert str(wrong.exception) == "BEGIN must be a time such as 2026-11-26T09:30:00+01:00"


async def test_a_proof_package_over_the_fleet_proves_its_event(scene, tmp_path):
    footage = scene.footage
    at = footage.begin + 2_000_000
    event = Event(EventKind.VEHICLE_PASSED, at, clock_trusted=True, text="passed", lane_id="entry")
    seen = Moment(CAMERA, "Vehicle passed", "", at - 1_000_000, at + 1_000_000, clock_trusted=True)
    recorded = await scene.desk.lane.store.journal.record(Entry(events=(event,), moments=(seen,)))
    await scene.fetched(Action.PROOF, event=recorded.event_ids[0])
    found = verify(scene.folder / "fetched")
    assert (found.manifest.event.description, found.manifest.made_by) == ("passed", "anna")
    assert [clip.camera_id for clip in found.manifest.clips] == [CAMERA]


@pytest.mark.parametrize(
    ("begin", "end", "said"),
    [
        (2.0, 1.0, "a clip ends after it begins"),
        (0.0, 601.0, "lasts 600 seconds at most"),
        (-600.0, -590.0, "there is no footage of this time at camera 201"),
        (3000.0, 3001.0, "this time at camera 201 is still recording"),
    ],
)
async def test_a_clip_that_cannot_be_is_refused_with_the_reason(scene, begin, end, said):
    with pytest.raises(GatewayError, match=said):
        await scene.clip(begin, end)
    assert scene.left() == []


async def test_only_accounts_with_the_rights_get_files_and_only_those_that_they_asked_for(scene, broker):
    with pytest.raises(GatewayError, match="lacks can_view_camera_events, can_view_cameras"):
        await scene.clip(1.0, 2.0, seed=GUARD[0])
    with pytest.raises(GatewayError, match="lacks can_view_camera_events, can_view_events"):
        await scene.fetched(Action.PROOF, seed=GUARD[0], event=1)
    numbers = []

    async def heard(message) -> None:
        numbers.append(json.loads(message.data).get("id"))

    subscription = await broker.subscribe(NAME.commands, cb=heard)
    await scene.clip(1.0, 2.0)
    await until(lambda: len(numbers) >= 3)
    await subscription.unsubscribe()
    (number,) = {one for one in numbers if one}
    assert "not offered" in (await part(broker, number, seed=GUARD[0]))["detail"]
    assert "not signed" in (await part(broker, number, seed=""))["detail"]
    assert "has 1 parts" in (await part(broker, number, 7))["detail"]
    scene.desk.rights["anna"] = RIGHTS["guard"]
    assert "lacks can_view_camera_events" in (await part(broker, number))["detail"]


async def part(broker, number: str, place: int = 0, *, seed: str = ANNA[0]) -> dict:
    """The refusal of a part."""
    body = AskPart(action="part", id=number, part=place).model_dump_json().encode()
    headers = signed(seed, NAME.commands, body) if seed else None
    answer = await broker.request(NAME.commands, body, headers=headers, timeout=30)
    return json.loads(answer.data)


async def test_a_lost_line_is_taken_up_again_with_the_next_part(scene, broker, relay, monkeypatch):
    asked = []

    async def heard(message) -> None:
        body = json.loads(message.data)
        if body["action"] == "part":
            asked.append(body["part"])
            monkeypatch.setattr("gateway.fleet.line.ANSWER_SECONDS", 2.0)  # the lost answer is waited for
            if len(asked) == 3:
                await relay.cut()
                await relay.join()

    subscription = await broker.subscribe(NAME.commands, cb=heard)
    assert await scene.fetched(Action.BUNDLE, url=f"nats://127.0.0.1:{relay.port}") == BUNDLE
    await subscription.unsubscribe()
    assert [place for place, _ in groupby(asked)] == list(range(scene.last.parts))
    assert len(asked) < 2 * scene.last.parts, "a lost line costs the part that was on its way"


async def test_a_file_that_changes_meanwhile_is_not_kept(scene):
    await scene.clip(1.0, 3.0)
    (clip,) = scene.footage.media.glob("clips/*.mp4")
    whole, state = clip.read_bytes(), clip.stat()
    offered = asyncio.Event()
    fetch = FileFetch(
        connect=partial(line_to, scene.url),
        name=NAME,
        seed=ANNA[0],
        told=lambda _: spoil(clip, whole, state, offered),
        clock=SystemClock(),
    )
    first, last = (moment(scene.footage.begin + one) for one in (1_000_000, 3_000_000))
    with pytest.raises(GatewayError, match="checksum"):
        await fetch.run(Action.CLIP, scene.folder / "spoiled", camera=CAMERA, begin=first, end=last)
    clip.write_bytes(whole[:-1])
    with pytest.raises(GatewayError, match="not offered any more"):
        await fetch.run(Action.CLIP, scene.folder / "spoiled", camera=CAMERA, begin=first, end=last)
    assert scene.left() == ["fetched"]


def spoil(clip, whole, state, offered) -> None:
    """Change a byte as a bad disk does, which leaves size and times as they are; the second time replace the file."""
    if offered.is_set():
        clip.write_bytes(whole)
        return
    offered.set()
    clip.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    os.utime(clip, ns=(state.st_atime_ns, state.st_mtime_ns))
