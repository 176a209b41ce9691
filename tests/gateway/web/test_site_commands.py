"""`edge-gateway status`, `lanes`, `devices`, `cameras`, `events` and `cards` against the running interface."""

from __future__ import annotations

import asyncio
import csv
import json

import pytest
from typer.testing import CliRunner

from drivers.contract import GatePosition
from gateway.cli import lanes
from gateway.cli.app import Invocation, app
from gateway.domain.commands import CommandState, GateAction
from gateway.domain.errors import ConfigError, GatewayError
from gateway.domain.events import EventKind
from gateway.domain.problems import ProblemKind
from gateway.domain.server_lines import CentralNotice
from gateway.lanes.snapshots import CommandSnapshot, LaneTrouble
from gateway.problems.problem import Problem, SitePart


@pytest.fixture
def call(gateway, tmp_path):
    """Exit status and output of a command that asks this gateway; it raises what the program would explain."""

    async def call(*words: object) -> tuple[int, str]:
        asked = [*map(str, words), "--data", str(tmp_path)]
        done = await asyncio.to_thread(CliRunner().invoke, app, asked, obj=Invocation())
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.stdout

    return call


async def test_status_shows_the_site_in_a_few_lines(gateway, call):
    status, out = await call("status")
    lines = out.splitlines()
    assert (status, lines[0].startswith("North Yard: The lane works (edge-gateway ")) == (0, True)
    assert "lane     Main entry: gate closed, idle" in lines
    assert "devices  1 of 2 answer, not: Entry reader" in lines
    assert any(line.startswith("central  answers; ") for line in lines)


async def test_status_says_that_central_refuses_the_sign_in(gateway, call):
    kind = ProblemKind.CENTRAL_SIGN_IN_REFUSED
    gateway.central.show(notices=(CentralNotice(kind, "central refuses the user name or the password"),))
    _, out = await call("status")
    assert "central  answers, but refuses the sign-in; " in out


async def test_status_ends_with_1_while_a_lane_cannot_work(gateway, call):
    trouble = LaneTrouble(ProblemKind.ARMING_LOOP_UNKNOWN, "the arming loop is unknown")
    gateway.board.show(unable=(trouble,), troubles=(trouble,))
    gateway.problems.append(
        Problem(
            kind=trouble.kind,
            part=SitePart.LANE,
            id="entry",
            name="Main entry",
            text=trouble.text,
            lanes=("Main entry",),
        )
    )
    status, out = await call("status")
    assert (status, "lane     Main entry: gate closed, CANNOT WORK: the arming loop is unknown" in out) == (
        1,
        True,
    )
    status, out = await call("lanes", "list", "--json")
    assert (status, json.loads(out)[0]["unable"][0]["text"]) == (1, trouble.text)


async def test_a_gate_is_opened_closed_and_stopped_by_the_name_of_its_lane(gateway, call):
    assert await call("lanes", "open", "main ENTRY") == (0, "Main entry is open\n")
    assert await call("lanes", "close", "entry") == (0, "Main entry is closed\n")
    assert await call("lanes", "stop", "entry") == (0, "Main entry: stop is given\n")
    assert [command.action for command in gateway.board.commands] == [
        GateAction.OPEN,
        GateAction.CLOSE,
        GateAction.STOP,
    ]
    with pytest.raises(ConfigError, match=r"there is no lane 'exit'; the lanes of this site: entry \(Main entry\)"):
        await call("lanes", "open", "exit")


async def test_a_gate_that_does_not_get_there_is_told(gateway, call, monkeypatch):
    monkeypatch.setattr(lanes, "MOVE_SECONDS", 0.1)

    monkeypatch.setattr(gateway.board, "show", lambda **_: None)
    with pytest.raises(GatewayError, match="Main entry is closed after 0 s: gate closed, idle"):
        await call("lanes", "open", "entry")


async def test_a_command_to_a_gate_without_a_position_ends_once_it_is_done(gateway, call, monkeypatch):
    show = gateway.board.show
    done = CommandSnapshot("7", GateAction.OPEN, CommandState.DONE, "root", 1, "")
    show(position=GatePosition.UNKNOWN)
    monkeypatch.setattr(gateway.board, "show", lambda **_: show(command=done))
    said = "Main entry: the gate's controller has the command; nothing reports where the gate is\n"
    assert await call("lanes", "open", "entry") == (0, said)


async def test_a_command_that_is_refused_ends_the_wait_with_the_reason(gateway, call, monkeypatch):
    show = gateway.board.show
    refused = CommandSnapshot("7", GateAction.OPEN, CommandState.REFUSED, "root", 1, "unit 1 is busy")
    monkeypatch.setattr(gateway.board, "show", lambda **_: show(command=refused))
    with pytest.raises(GatewayError, match="Main entry: the command is refused: unit 1 is busy"):
        await call("lanes", "open", "entry")


async def test_a_gate_that_is_away_refuses_in_the_gateways_words(gateway, call):
    gateway.board.lose("no route")
    with pytest.raises(GatewayError, match="the gateway refused: the gate is offline: no route"):
        await call("lanes", "open", "entry")


async def test_a_lane_is_held_locked_and_released(gateway, call):
    assert await call("lanes", "hold", "entry", "--reason", "market day") == (0, "Main entry is held open\n")
    assert gateway.board.lane.order == "hold_open"
    assert "market day" in (await call("status"))[1]
    await call("lanes", "lock", "entry")
    assert gateway.board.lane.order == "lock_down"
    assert await call("lanes", "release", "entry") == (0, "Main entry works as its schedule says\n")
    assert gateway.board.lane.order == ""


async def test_devices_are_listed_with_their_inputs(gateway, call):
    status, out = await call("devices", "list")
    assert (status, out.splitlines()[1].startswith("102  Entry reader (serial-reader): not seen yet, since ")) == (
        0,
        True,
    )
    _, out = await call("devices", "show", 101)
    assert out.splitlines()[1:] == ["    arming: off", "    closing: off"]
    gateway.board.lose("no answer within 300 ms")
    status, out = await call("devices", "list")
    assert (status, "Entry barrier (modbus-gate): does not answer: no answer within 300 ms" in out) == (1, True)


async def test_a_cameras_newest_picture_is_fetched(gateway, call, tmp_path):
    _, out = await call("cameras", "list", "--json")
    camera = json.loads(out)[0]
    file = tmp_path / "picture.jpg"
    status, out = await call("cameras", "snapshot", camera["name"], "--output", file)
    assert (status, file.read_bytes()[:2]) == (0, b"\xff\xd8")
    with pytest.raises(ConfigError, match="cannot be written: No such file or directory"):
        await call("cameras", "snapshot", camera["camera_id"], "-o", tmp_path / "no" / "picture.jpg")


async def test_events_are_listed_filtered_and_exported(gateway, call, tmp_path):
    await gateway.happened("=HYPERLINK(1)", kind=EventKind.ACCESS_DENIED)
    first = await gateway.happened("Plate AB-123 was let in.", kind=EventKind.ACCESS_GRANTED)
    _, out = await call("events", "list", "--type", "access_granted", "--search", "AB-123")
    assert out.split()[0] == str(first)
    _, out = await call("events", "list", "--lane", "entry", "--limit", 2, "--json")
    assert [json.loads(line)["id"] for line in out.splitlines()] == [first, first - 1]
    _, out = await call("events", "list", "--lane", "Main entry", "--limit", 1, "--json")
    assert json.loads(out)["id"] == first
    with pytest.raises(ConfigError, match="there is no lane 'nowhere'; the lanes of this site: entry"):
        await call("events", "list", "--lane", "nowhere")
    assert (await call("events", "list", "--limit", 10**20))[0] == 2
    _, out = await call("events", "list", "--severity", "alarm")
    assert all(" ALARM " in line for line in out.splitlines())
    with pytest.raises(ConfigError, match="--type nonsense: there is no such type"):
        await call("events", "list", "--type", "nonsense")
    file = tmp_path / "events.csv"
    assert (await call("events", "export", file))[1].startswith(f"{file}: ")
    rows = list(csv.DictReader(file.read_text(encoding="utf-8-sig").splitlines()))
    assert [row["description"] for row in rows][:2] == ["Plate AB-123 was let in.", "'=HYPERLINK(1)"]


async def test_an_export_that_fails_leaves_the_file_of_before_and_says_why(call, tmp_path):
    folder = tmp_path / "exports"
    folder.mkdir()
    file = folder / "january.csv"
    file.write_text("of yesterday")
    with pytest.raises(ConfigError, match="--since: must be a date like 2026-01-31"):
        await call("events", "export", file, "--since", "yesterday")
    with pytest.raises(ConfigError, match="there is no lane 'nowhere'"):
        await call("events", "export", file, "--lane", "nowhere")
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [("january.csv", "of yesterday")]
    with pytest.raises(ConfigError, match="/dev/full cannot be written: No space left on device"):
        await call("events", "export", "/dev/full")


async def test_a_long_list_of_events_is_read_to_its_end_once_each(gateway, call, monkeypatch):
    monkeypatch.setattr("gateway.cli.events.PAGE", 3)
    ids = [await gateway.happened(f"Passage {number}.") for number in range(10)]
    _, out = await call("events", "list", "--search", "Passage", "--json")
    assert [json.loads(line)["id"] for line in out.splitlines()] == ids[::-1]


async def test_a_card_is_found_shown_suspended_resumed_and_added(gateway, call):
    status, out = await call("cards", "find", "1")
    card = json.loads((await call("cards", "find", "1", "--json"))[1])[0]
    assert (status, out.split()[0]) == (0, str(card["id"]))
    assert "suspended" in (await call("cards", "suspend", card["id"], "--reason", "lost"))[1]
    assert "suspended" in (await call("cards", "show", card["id"]))[1]
    assert "active" in (await call("cards", "resume", card["id"]))[1]
    status, out = await call("cards", "add", "--number", "00199573", "--holder", "A. Dupont")
    assert (status, "A. Dupont: number 00199573" in out) == (0, True)
    added = out.split()[0]
    assert "number 003,02965" in (await call("cards", "edit", added, "--number", "003,02965"))[1]
    assert added in (await call("cards", "find", "3:2965"))[1]
    assert (await call("cards", "find", "nobody has this"))[0] == 1
    with pytest.raises(ConfigError, match="a card needs --number, --uid or --plate"):
        await call("cards", "add", "--holder", "A. Dupont")


async def test_what_a_lane_did_is_saved_fetched_and_replayed(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert await call("incidents", "list") == (0, "no lane has recorded an alarm\n")
    _, out = await call("incidents", "save", "Main entry")
    name = out.partition(":")[0]
    status, out = await call("incidents", "list")
    assert (status, out.split()[0]) == (0, name)
    (tmp_path / name).unlink()
    await call("incidents", "fetch", name)
    done = await asyncio.to_thread(CliRunner().invoke, app, ["replay", name, "--verbose"], obj=Invocation())
    assert done.exit_code == 0
    assert "all 1 events are answered as they were" in done.stdout
    saved = json.loads((await call("incidents", "save", "entry", "--json"))[1])
    assert (tmp_path / saved["name"]).stat().st_size == saved["size"]
    with pytest.raises(GatewayError, match="there is no incident"):
        await call("incidents", "fetch", "nothing.incident")
    for name in ("a b", "é.incident", "../../etc/passwd", "?x#y"):
        with pytest.raises(GatewayError, match="the gateway refused: there is no"):
            await call("incidents", "fetch", name)
