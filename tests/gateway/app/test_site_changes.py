"""Changes of the site file while the house works, with real drivers at barriers behind TCP ports."""

from __future__ import annotations

import asyncio
import errno
import socket
from datetime import datetime, timedelta

import pytest
from aiohttp import ClientSession
from changing_site import LANE, a_house
from far_end_site import a_barrier
from running_gateway import PASSWORD

from drivers.contract import GatePosition
from gateway.domain.commands import GateAction
from gateway.domain.errors import CommandRefused, NotFoundError
from gateway.domain.events import EventKind
from gateway.lanes.snapshots import Phase
from gateway.site import running_site
from gateway.site.trial_files import TrialFiles
from simulation.far_ends.barrier import Wish
from simulation.far_ends.line_devices import Misbehaviour

pytestmark = pytest.mark.usefixtures("frequent_reports")


@pytest.fixture
async def house(tmp_path):
    async with a_house(tmp_path) as opened:
        yield opened


@pytest.fixture
def soon_good(monkeypatch):
    """A change that did no harm is confirmed after a moment."""
    monkeypatch.setattr(running_site, "GOOD_SECONDS", 0.1)


async def kinds(house) -> list[EventKind]:
    assert await house.gateway.lanes.recorder.drained(within=10)
    return [EventKind(event.type) for event in reversed(await house.gateway.store.events.latest(limit=500))]


@pytest.mark.usefixtures("soon_good")
async def test_a_changed_lane_starts_afresh_while_traffic_passes_in_the_other(house):
    field, other = house.gateway.field, house.runner("exit")
    before = field.field
    polled = len(house.exit.far_end.received)
    passages = 0
    stop = asyncio.Event()

    async def traffic() -> None:
        nonlocal passages
        while not stop.is_set():
            await house.let_in(house.exit)
            passages += 1

    async with asyncio.TaskGroup() as group:
        group.create_task(traffic())
        await house.sees(lambda: house.lane("exit").phase is Phase.PASSING)
        earlier = await kinds(house)
        house.edit("held_open_seconds = 60", "held_open_seconds = 90")
        done = await house.site_file.reload(by="user:chief")
        assert (done.faults, done.refused) == ((), ())
        assert tuple(map(str, done.words())) == (
            "lane entry (entry lane): changed held_open_seconds (lane entry started afresh)",
        )
        stop.set()

    assert house.runner("exit") is other
    assert field.field.buses == before.buses
    assert field.field.drivers == before.drivers
    assert len(house.exit.far_end.connections) == 1
    assert len(house.exit.far_end.received) > polled
    assert house.runner("entry").rules.lane.held_open_seconds == 90
    assert passages
    assert house.exit.wishes() == [Wish.OPEN, Wish.CLOSE] * passages
    told = await kinds(house)
    assert told.count(EventKind.VEHICLE_PASSED) == passages
    assert EventKind.SITE_CHANGED in told
    for bad in (EventKind.DEVICE_LOST, EventKind.COMMAND_UNKNOWN, EventKind.COMMAND_REFUSED):
        assert told.count(bad) == earlier.count(bad)
    outcome = await house.site_file.outcome()
    assert outcome.confirmed, outcome.why
    await house.let_in(house.entry)


@pytest.mark.usefixtures("soon_lost")
async def test_a_changed_lane_closes_nothing_before_its_points_were_read(house):
    await house.gateway.lanes.command(device_id=101, action=GateAction.OPEN, source="user:chief")
    await house.sees(lambda: house.lane("entry").position is GatePosition.OPEN)
    house.edit("held_open_seconds = 60", "held_open_seconds = 90")
    house.entry.far_end.misbehave(1, Misbehaviour(silent=True))
    await house.sees(lambda: house.device(101).online is False)
    done = await house.site_file.reload()
    assert done.is_taken
    assert "offline" in str(house.runner("entry").why_not_close())
    with pytest.raises(CommandRefused):
        await house.gateway.lanes.command(device_id=101, action=GateAction.CLOSE, source="user:chief")
    assert Wish.CLOSE not in house.entry.wishes()
    house.entry.far_end.misbehave(1)
    await house.sees(lambda: house.lane("entry").position is GatePosition.CLOSED)


async def test_a_lane_with_a_vehicle_waits_and_says_so(house):
    before = house.runner("entry")
    house.entry.arming(occupied=True)
    await house.sees(lambda: house.lane("entry").phase.value == "armed")
    house.edit("held_open_seconds = 60", "held_open_seconds = 90")
    done = await house.site_file.reload(wait=0.2)
    (why,) = done.refused
    assert why.startswith("lane entry (entry lane) waits: a vehicle is in it; nothing was changed within 0.2 s")
    assert house.runner("entry") is before
    assert done.refused[0] in house.site_file.notices()[0]

    async with asyncio.TaskGroup() as group:
        asked = group.create_task(house.site_file.reload())
        await asyncio.sleep(0.2)  # a change that did not wait would be made
        assert not asked.done()
        house.entry.arming(occupied=False)
    assert asked.result().is_taken
    assert house.runner("entry") is not before
    assert house.site_file.notices() == ()


async def test_a_person_may_say_that_a_lane_is_free_whose_inputs_are_wrong(house, monkeypatch):
    house.entry.arming(occupied=True)
    await house.sees(lambda: house.lane("entry").phase.value == "armed")
    house.edit("held_open_seconds = 60", "held_open_seconds = 90")
    assert "edge-gateway reload --now" in (await house.site_file.reload(wait=0)).refused[0]
    assert (await house.site_file.reload(wait=0, lanes_are_free=True)).is_taken
    assert house.runner("entry").rules.lane.held_open_seconds == 90

    await house.sees(lambda: house.lane("entry").phase.value == "armed")
    monkeypatch.setattr(running_site, "TRIAL_SECONDS", 0.0)
    house.edit("held_open_seconds = 90", "held_open_seconds = 120")
    async with asyncio.timeout(20):  # a change on trial that cannot be taken back ends by the same word
        again = await house.site_file.reload(wait=0, lanes_are_free=True)
    assert again.is_taken
    assert house.runner("entry").rules.lane.held_open_seconds == 120


@pytest.mark.usefixtures("soon_good")
async def test_a_new_address_of_a_link_connects_its_lane_anew(house):
    async with a_barrier() as (_barrier, far_end, port):
        house.edit(f"tcp://127.0.0.1:{house.entry.port}", f"tcp://127.0.0.1:{port}")
        done = await house.site_file.reload()
        assert tuple(map(str, done.words())) == (
            "link entry: changed url (device 101 connected anew; lane entry started afresh)",
        )
        await house.sees(lambda: house.entry.far_end.connections == set())
        await house.sees(lambda: house.device(101).online)
        await house.sees(lambda: house.lane("entry").position is GatePosition.CLOSED)
        assert len(house.exit.far_end.connections) == 1
        polls = len(house.entry.far_end.received)
        await house.gateway.lanes.command(device_id=101, action=GateAction.OPEN, source="user:chief")
        await house.sees(lambda: [one.wish for one in far_end.commands] == [Wish.OPEN])
        assert house.entry.wishes() == []
        assert len(house.entry.far_end.received) == polls
        assert (await house.site_file.outcome()).confirmed


@pytest.mark.usefixtures("soon_good")
async def test_devices_and_lanes_come_and_go(house):
    lane = LANE.format(name="gate", gate=301, reader=302, port="{port}").replace("readers = [302]", "")
    without = house.path.read_bytes()
    async with a_barrier() as (_barrier, far_end, port):
        house.path.write_text(house.path.read_text() + lane.replace("{port}", str(port)))
        done = await house.site_file.reload()
        assert "lane gate (gate lane) was added" in tuple(map(str, done.words()))
        await house.sees(lambda: house.lane("gate").position is GatePosition.CLOSED)
        await house.gateway.lanes.command(device_id=301, action=GateAction.OPEN, source="user:chief")
        await house.sees(lambda: [one.wish for one in far_end.commands] == [Wish.OPEN])
        assert (await house.site_file.outcome()).confirmed
        await house.sees(lambda: house.lane("gate").position is GatePosition.OPEN)  # not closed as it was before
        await house.sees(lambda: not house.runner("gate").why_not_close())  # its loop was free for long enough
        await house.gateway.lanes.command(device_id=301, action=GateAction.CLOSE, source="user:chief")
        await house.sees(lambda: house.lane("gate").position is GatePosition.CLOSED)

        house.path.write_bytes(without)
        done = await house.site_file.reload()
        assert "lane gate (gate lane) was removed" in tuple(map(str, done.words()))
        assert [one.lane_id for one in house.gateway.lanes.lanes()] == ["entry", "exit"]
        await house.sees(lambda: far_end.connections == set())
        with pytest.raises(NotFoundError):
            await house.gateway.lanes.command(device_id=301, action=GateAction.OPEN, source="user:chief")
        await house.sees(lambda: house.gateway.progress.stuck() == ())
    assert set(house.gateway.progress.parts) == {
        "loop", "store", "bus entry", "bus exit", "lane entry", "lane exit",
    }  # fmt: skip


async def test_faults_and_what_needs_a_restart_change_nothing(house):
    runners = [house.runner("entry"), house.runner("exit")]
    sound = house.edit("held_open_seconds = 60", "held_open_seconds = 90").decode()
    house.path.write_text(sound + "[rtsp]\nusername = 'a'\npassword = 'screen'\n")
    done = await house.site_file.reload()
    assert done.refused == ("[rtsp] changes only with a restart",)
    house.path.write_text(sound.replace("held_open_seconds = 90", "held_open_seconds = -1"))
    assert "held_open_seconds" in (await house.site_file.reload()).faults[0]
    house.path.write_text("[site")
    assert "is not TOML" in (await house.site_file.reload()).faults[0]
    house.path.write_text(sound[: sound.index("[[")])
    assert "cut short" in (await house.site_file.reload()).refused[0]
    assert [house.runner("entry"), house.runner("exit")] == runners
    assert house.services.site.lanes[0].held_open_seconds == 60


async def test_a_full_disk_changes_nothing_and_is_told_in_words(house, monkeypatch):
    def full(*_args, **_words):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(TrialFiles, "begin", full)
    house.edit("held_open_seconds = 60", "held_open_seconds = 90")
    done = await house.site_file.reload()
    assert done.refused == ("the change cannot be kept on disk: No space left on device",)
    assert house.services.site.lanes[0].held_open_seconds == 60


async def test_a_change_that_stops_a_lane_is_taken_back(house, monkeypatch):
    monkeypatch.setattr(running_site, "TRIAL_SECONDS", 0.5)
    before = house.path.read_bytes()
    wrong = house.edit(f"tcp://127.0.0.1:{house.entry.port}", "tcp://127.0.0.1:1")
    done = await house.site_file.reload()
    assert done.on_trial
    assert await house.site_file.compare() == running_site.Reloaded()
    outcome = await house.site_file.outcome()
    assert not outcome.confirmed
    assert "entry lane cannot work" in str(outcome.why)
    assert house.path.read_bytes() == before
    assert house.path.with_name("site.toml.unconfirmed").read_bytes() == wrong
    await house.sees(lambda: house.device(101).online)
    await house.let_in(house.entry)
    assert EventKind.SITE_CHANGE_RETURNED in await kinds(house)


async def test_a_change_after_which_the_interface_is_not_served_is_taken_back(house, monkeypatch):
    """A person who changed the port from afar could not change it back."""
    monkeypatch.setattr(running_site, "TRIAL_SECONDS", 0.5)
    before, interface = house.path.read_bytes(), house.services.interface
    await house.sees(lambda: interface.port and not interface.fault)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        house.edit("port = 0", f"port = {port}")
        assert (await house.site_file.reload()).on_trial
        outcome = await house.site_file.outcome()
    assert not outcome.confirmed
    assert str(outcome.why) == f"cannot serve on 127.0.0.1 port {port}: Address already in use"
    assert house.path.read_bytes() == before
    await house.sees(lambda: not interface.fault and not interface.is_changing)


async def test_the_gateway_runs_since_its_own_start_after_the_interface_is_served_anew(house):
    interface = house.services.interface

    async def running_since() -> datetime:
        await house.sees(lambda: interface.port and not interface.fault and not interface.is_changing)
        account = {"username": "chief", "password": PASSWORD}
        async with ClientSession(f"http://127.0.0.1:{interface.port}") as client:
            async with client.post("/v1/auth/login", json=account) as answer:
                session = (await answer.json())["session"]
            async with client.get("/status/now", headers={"SessionID": session}) as answer:
                snapshot = (await answer.json())["snapshot"]
        assert snapshot["gateway"]["site"] == house.services.site.site.name
        return datetime.fromisoformat(snapshot["gateway"]["started_at"])

    before = await running_since()
    house.edit('name = "Small"', 'name = "Large"')
    assert (await house.site_file.reload()).is_taken
    assert abs(await running_since() - before) < timedelta(seconds=0.1)


async def test_a_person_confirms_or_the_change_returns(house, monkeypatch):
    text = house.path.read_bytes()
    changed = text.replace(b"held_open_seconds = 60", b"held_open_seconds = 90", 1)
    done = await house.site_file.reload(by="user:chief", text=changed, asks_person=True)
    assert done.on_trial
    assert 50 < house.site_file.seconds_left() <= 60
    assert house.path.read_bytes() == changed
    assert "under way" in (await house.site_file.reload()).refused[0]
    assert house.site_file.confirm(by="user:chief")
    assert str((await house.site_file.outcome()).why) == "confirmed by chief"
    assert not house.site_file.confirm(by="user:chief")
    assert not (house.path.parent / "data/site-file/trial").exists()

    monkeypatch.setattr(running_site, "TRIAL_SECONDS", 0.5)
    done = await house.site_file.reload(by="user:chief", text=text, asks_person=True)
    assert house.runner("entry").rules.lane.held_open_seconds == 60
    assert str((await house.site_file.outcome()).why) == "within 0.5 s nobody confirmed it"
    assert house.path.read_bytes() == changed
    assert house.runner("entry").rules.lane.held_open_seconds == 90


async def test_a_change_that_breaks_off_half_way_stops_the_gateway(house, monkeypatch):
    def fails(*_, **__):
        raise RuntimeError("a fault of the program")

    monkeypatch.setattr(house.gateway.lanes, "change", fails)
    house.edit("held_open_seconds = 60", "held_open_seconds = 90")
    with pytest.raises(RuntimeError, match="a fault of the program"):
        await house.site_file.reload(by="user:chief")
    assert house.gateway.stopping.is_set(), "its next start takes the change back"
