"""Incidents: a lane's tape as a file, run through the machine again."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
from dataclasses import replace

import pytest
from lane_rules import changed
from waiting import until

from drivers.contract import GatePosition, PointState
from gateway.domain.commands import GateAction
from gateway.domain.errors import ConfigError, NotFoundError, StoreError
from gateway.domain.events import EventKind
from gateway.lanes import incidents as saving
from gateway.lanes.incidents import Incidents, incident_file, read_incident
from gateway.lanes.machine import messages as m
from gateway.lanes.tape import TAPE_SECONDS, LaneTape, replayed
from gateway.runtime.clock import Stamp, SystemClock

ON, OFF = PointState.ON, PointState.OFF


WALL = 1_700_000_000_000_000


@pytest.fixture
def taping(make_script):
    """Scripts of lanes that are taped."""

    class Taped(make_script):
        def __init__(self, rules):
            super().__init__(rules)
            self.tape = LaneTape(rules)

        def do(self, event):
            before, now = self.state, m.Now(self.at, Stamp(WALL + int(self.at * 1e6), trusted=True))
            commands = super().do(event)
            self.tape.add(before, now, event, tuple(commands))
            return commands

    return Taped


@pytest.fixture
def lane(taping, rules):
    lane = taping(rules)
    lane.ready()
    return lane


def drive(lane, seed):
    """Two minutes of whatever may happen at a lane."""
    chance = random.Random(seed)
    things = (
        lambda: lane.arming(chance.choice((ON, OFF, PointState.UNKNOWN))),
        lambda: lane.safety(chance.choice((ON, OFF, PointState.UNKNOWN))),
        lambda: lane.gate(chance.choice(list(GatePosition))),
        lane.card,
        lambda: lane.wish(chance.choice(list(GateAction))),
        lambda: lane.do(m.GateLost("no power")),
        lambda: lane.do(m.GateRegained()),
        lambda: lane.sent and lane.acknowledge(),
    )
    for _ in range(60):
        chance.choice(things)()
        lane.wait(chance.uniform(0, 4))


def test_an_incident_is_read_back_from_its_file_and_replays_to_the_same_answers(lane):
    seed = random.SystemRandom().randrange(10**9)
    print("seed", seed)
    drive(lane, seed)
    incident = lane.tape.incident()
    assert len(incident.steps) > 60
    read = read_incident(incident_file(incident))
    assert read == incident
    assert replayed(read) is None


def test_a_machine_that_answers_differently_is_found_at_the_first_difference(lane):
    lane.arming(ON)
    lane.card()
    lane.wait(7.5)
    incident = lane.tape.incident()
    slower = replace(incident, rules=changed(incident.rules, opening_seconds=7))
    difference = replayed(slower)
    assert difference is not None
    given_up = [command for command in difference.now if isinstance(command, m.Record) and command.entry.events]
    assert next(event.kind for command in given_up for event in command.entry.events) is EventKind.OPENING_TIMED_OUT
    assert difference.taped == incident.steps[difference.place].commands == ()


def test_the_tape_forgets_what_is_older_than_two_minutes(lane):
    lane.wait(3 * TAPE_SECONDS)
    incident = lane.tape.incident()
    length = incident.steps[-1].now.at - incident.steps[0].now.at
    assert TAPE_SECONDS - 10 <= length <= TAPE_SECONDS + 10
    assert replayed(incident) is None


def test_what_was_typed_is_in_no_file(taping, rules):
    lane = taping(changed(rules, pin=True))
    lane.ready()
    lane.arming(ON)
    lane.card()
    lane.keys("9753")
    incident = lane.tape.incident()
    answers = [command for step in incident.steps for command in step.commands]
    assert any(isinstance(answer, m.Decide) and answer.pin == "9753" for answer in answers)
    content = incident_file(incident)
    assert b"9753" not in gzip.decompress(content)
    assert replayed(read_incident(content)) is None


@pytest.mark.parametrize("content", [b"", b"no file of ours"])
def test_what_is_no_compressed_file_is_refused_in_a_sentence(content):
    with pytest.raises(ConfigError, match="no incident of a lane"):
        read_incident(content)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1]",
        json.dumps({"class": "subprocess:Popen", "args": ["true"]}),
        json.dumps({"class": "gateway.cli.app:main"}),
        json.dumps({"class": "gateway.lanes.tape:Incident", "rules": 1}),
        json.dumps({"class": "gateway.lanes.tape:Incident", "rules": 1, "state": 2, "steps": []}),
        "[" * 100_000,
    ],
)
def test_what_is_no_incident_is_refused_in_a_sentence(text):
    with pytest.raises(ConfigError, match="no incident of a lane"):
        read_incident(gzip.compress(text.encode()))


@pytest.fixture
def incidents(lane, tmp_path):
    lane.arming(ON)

    def read(lane_id):
        if lane_id != "in":
            raise NotFoundError(f"no lane '{lane_id}' at this site")
        return lane.tape.incident()

    return Incidents(folder=tmp_path / "incidents", clock=SystemClock(), incident=read)


async def test_an_alarm_is_saved_once_with_what_follows(incidents, monkeypatch):
    monkeypatch.setattr(saving, "AFTER_SECONDS", 0.05)
    running = asyncio.get_running_loop().create_task(incidents.run())
    incidents.alarm("in")
    incidents.alarm("in")
    found = await until(incidents.saved)
    incidents.alarm("in")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    (one,) = found
    assert one.name.endswith("_in.incident")
    assert replayed(read_incident(incidents.path_of(one.name).read_bytes())) is None


async def test_an_alarm_of_a_lane_that_is_gone_by_then_ends_nothing(incidents, monkeypatch):
    monkeypatch.setattr(saving, "AFTER_SECONDS", 0.05)
    running = asyncio.get_running_loop().create_task(incidents.run())
    incidents.alarm("gone")
    incidents.alarm("in")
    assert await until(incidents.saved)
    assert not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_the_newest_files_are_kept(incidents, monkeypatch):
    monkeypatch.setattr(saving, "MOST_FILES", 2)
    names = []
    for _ in range(3):
        names.append((await incidents.save("in")).name)
        await asyncio.sleep(0.002)  # names tell milliseconds
    assert [one.name for one in await incidents.saved()] == names[:0:-1]


async def test_no_other_file_is_given_away(incidents, tmp_path):
    (tmp_path / "secret.incident").write_text("x")
    for name in ("../secret.incident", "nothing.incident", "x"):
        with pytest.raises(NotFoundError):
            incidents.path_of(name)
    with pytest.raises(NotFoundError):
        await incidents.save("out")


async def test_a_disk_that_refuses_is_told(incidents, tmp_path):
    (tmp_path / "incidents").write_text("a file in the folder's place")
    with pytest.raises(StoreError, match="the incident cannot be written"):
        await incidents.save("in")
