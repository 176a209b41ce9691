"""`edge-gateway probe` and `drivers` as a technician calls them, against simulated devices."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from contextlib import asynccontextmanager

import pytest
from running_gateway import typed
from typer.testing import CliRunner

from drivers.link import LinkSpec, open_link
from drivers.modbus.profile import load_profile
from drivers.profile_file import SHIPPED_PROFILES
from gateway.cli.app import Invocation, app
from gateway.cli.line_alone import addresses
from gateway.domain.errors import ConfigError
from simulation.far_ends.barrier import Barrier, Wish
from simulation.far_ends.line_devices import Misbehaviour
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import ProfileWiring

SITE = """
[site]
name = "Probed"
[[links]]
id = "bus"
url = "{url}"
[[devices]]
id = 101
name = "North barrier"
driver = "modbus-gate"
link = "bus"
profile = "{profile}"
unit = 3
framing = "{framing}"
"""


@pytest.fixture
def impatient(monkeypatch):
    """A command waits a moment for a line that does not open."""
    monkeypatch.setattr("drivers.modbus.survey.OPEN_PATIENCE", 0.5)
    monkeypatch.setattr("drivers.bus.bus.OPEN_SECONDS", 0.2)


async def call(*words, cwd):
    return await asyncio.to_thread(typed, *map(str, words), cwd=cwd, COLUMNS="200")


@asynccontextmanager
async def device(profile="came-gard-ptx", *, framing="rtu"):
    loaded = load_profile(SHIPPED_PROFILES / f"{profile}.toml")
    wiring = ProfileWiring(profile=loaded, barrier=Barrier())
    yield wiring, ModbusFarEnd(units={3: wiring}, framing=framing)


async def test_a_bus_is_searched_for_units(tmp_path):
    async with device() as (_, far_end), far_end.serial(path=tmp_path / "port") as terminal:
        words = ("--units", "1-5", "--baud", "38400", "--frames", "--timeout", "0.1")
        result = await call("probe", "bus", f"serial:{terminal.path}", *words, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "→ 03 03 00 00 00 01" in result.stdout
    (row,) = [line for line in result.stdout.splitlines() if "38400" in line]
    assert "3" in row
    assert "illegal data address" in row
    assert {item.unit for item in far_end.received} == {1, 2, 3, 4, 5}
    assert not far_end.commands


async def test_a_bus_without_anybody(tmp_path):
    async with device() as (_, far_end), far_end.tcp() as port:
        result = await call(
            "probe", "bus", f"tcp://127.0.0.1:{port}", "--units", "9-10", "--timeout", "0.05", cwd=tmp_path
        )
    assert result.returncode == 1
    assert "nobody answered" in result.stdout


@pytest.mark.parametrize("framing", ["rtu", "tcp"])
async def test_who_answers_late_is_found_and_how_late(tmp_path, framing):
    async with device(framing=framing) as (_, far_end), far_end.tcp() as port:
        far_end.misbehave(3, Misbehaviour(late=0.25))
        words = ("--units", "2-3", "--timeout", "0.1", "--framing", framing)
        result = await call("probe", "bus", f"tcp://127.0.0.1:{port}", *words, cwd=tmp_path)
    assert result.returncode == 0, result.stdout
    (row,) = table_of_two(result.stdout)
    assert row[0] == "3"
    assert row[1].startswith("answers late, after 0."), row
    assert ": more than --timeout 0.1; try --timeout 0." in row[1]


@pytest.mark.parametrize("framing", ["rtu", "tcp"])
async def test_an_answer_from_another_address_is_told(tmp_path, framing):
    async with device(framing=framing) as (_, far_end), far_end.tcp() as port:
        far_end.misbehave(3, Misbehaviour(wrong_unit=True))
        site = tmp_path / "site.toml"
        site.write_text(SITE.format(url=f"tcp://127.0.0.1:{port}", profile="came-gard-ptx", framing=framing))
        result = await call("probe", "unit", site, "101", cwd=tmp_path)
        assert result.returncode == 1
        heard = {"rtu": "but unit 4 was heard: is 3 the right address of device 101?", "tcp": "unit 4 answered"}
        assert heard[framing] in result.stderr
        far_end.misbehave(3, Misbehaviour(late=0.5))
        result = await call("probe", "unit", site, "101", cwd=tmp_path)
    assert "its answer came after 0." in result.stderr
    assert "s, and profile 'came-gard-ptx' waits 300 ms" in result.stderr


def test_what_speaks_no_modbus_is_looked_at_otherwise(tmp_path):
    site = tmp_path / "site.toml"
    url = "serial:/dev/serial/by-id/usb-reader"
    site.write_text(
        SITE.format(url="tcp://127.0.0.1:1", profile="relay-barrier", framing="tcp")
        + f'[[links]]\nid = "desk"\nurl = "{url}"\n'
        + '[[devices]]\nid = 102\nname = "Reader"\ndriver = "serial-reader"\nlink = "desk"\n'
        + f'[[links]]\nid = "usb"\nurl = "{url}-2"\n'
        + '[[devices]]\nid = 103\nname = "Gate"\ndriver = "serial-gate"\nlink = "usb"\nprofile = "lcus-1"\n'
    )
    line = "--baud 9600 --parity none --stop-bits 1"
    assert str(within("probe", "unit", site, "102").exception) == (
        "device 102 (Reader) is a serial-reader and speaks no Modbus; see what it sends with: "
        f"edge-gateway probe port {url} {line}"
    )
    assert str(within("probe", "unit", site, "103").exception) == (
        "device 103 (Gate) is a serial-gate and speaks no Modbus; the status page and the log tell whether it answers,"
        f" and what it sends unasked is seen with: edge-gateway probe port {url}-2 {line}"
    )
    assert str(within("probe", "unit", site, "999").exception) == f"{site} has no device 999"


def table_of_two(text):
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines()]
    return [row for row in rows if len(row) == 2]


async def test_one_unit_of_a_site_file_in_words(tmp_path):
    async with device() as (wiring, far_end), far_end.tcp() as port:
        wiring.measure("opening", 255)
        wiring.measure("cycles", 0x0001_0002)
        site = tmp_path / "site.toml"
        site.write_text(SITE.format(url=f"tcp://127.0.0.1:{port}", profile="came-gard-ptx", framing="rtu"))
        result = await call("probe", "unit", site, "101", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert "North barrier (CAME GARD PTX)" in result.stdout
        told = {cells[1].strip(): cells[2].strip() for cells in table(result.stdout)}
        assert told["position"] == "closed (17)"
        assert told["opening"] == "unknown"
        assert told["cycles"] == "65538"
        assert not far_end.commands


def table(text):
    return [line.split("│") for line in text.splitlines() if line.count("│") == 3]


async def test_a_gate_is_commanded_only_when_asked_to(tmp_path):
    async with device("relay-and-inputs", framing="tcp") as (_, far_end), far_end.tcp() as port:
        site = tmp_path / "site.toml"
        site.write_text(SITE.format(url=f"tcp://127.0.0.1:{port}", profile="relay-and-inputs", framing="tcp"))
        result = await call("probe", "unit", site, "101", "--send", "open", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert [command.wish for command in far_end.commands] == [Wish.OPEN]
        assert [item.request.value for item in far_end.received if hasattr(item.request, "value")] == [0xFF00, 0]
        assert "between the limits" in result.stdout
        result = await call("probe", "unit", site, "101", "--send", "close", cwd=tmp_path)
        assert result.returncode == 2


async def test_a_line_that_somebody_has_is_left_alone(tmp_path):
    async with device() as (_, far_end), far_end.tcp() as port:
        url = f"tcp://127.0.0.1:{port}"
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            result = await call("probe", "bus", url, "--units", "3", cwd=tmp_path)
            assert (result.returncode, result.stdout) == (1, "")
            assert "is open already on this machine" in result.stderr
            assert not far_end.received
            result = await call("probe", "bus", url, "--units", "3", "--force", cwd=tmp_path)
            assert result.returncode == 0, result.stderr
        finally:
            writer.transport.abort()


@pytest.mark.usefixtures("impatient")
async def test_a_serial_port_that_somebody_has_is_left_alone(tmp_path):
    async with device() as (_, far_end), far_end.serial(path=tmp_path / "port") as terminal:
        url = f"serial:{terminal.path}"
        holder = await open_link(LinkSpec(url))
        try:
            result = await call("probe", "bus", url, "--units", "3", cwd=tmp_path)
            assert result.returncode == 1
            assert "another program has it" in result.stderr
            assert not far_end.received
        finally:
            await holder.close()


async def test_a_port_is_listened_to(tmp_path):
    async with device() as (_, far_end), far_end.serial(path=tmp_path / "port") as terminal:

        async def speak():
            while True:
                terminal.write(b"\x02card\x03")
                await asyncio.sleep(0.1)  # the pace of the device

        async with asyncio.TaskGroup() as group:
            speaking = group.create_task(speak())
            result = await call("probe", "port", f"serial:{terminal.path}", "--seconds", "0.5", cwd=tmp_path)
            speaking.cancel()
    assert result.returncode == 0, result.stderr
    assert "← " in result.stdout
    assert "02 63 61 72 64 03  ·card·" in result.stdout


@pytest.mark.usefixtures("impatient")
async def test_what_is_wrong_is_said(tmp_path):
    result = await call("probe", "bus", "ftp://nowhere", cwd=tmp_path)
    assert result.returncode == 2
    assert "must be serial:/dev/" in result.stderr
    result = await call("probe", "bus", "serial:/dev/none-such", cwd=tmp_path)
    assert result.returncode == 1
    assert "does not open" in result.stderr
    assert "Traceback" not in result.stderr


@asynccontextmanager
async def silent_address():
    """A port of this machine where nobody answers an attempt to connect: its queue is full."""
    with socket.socket() as listening, contextlib.ExitStack() as waiting:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(4):
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(listening.getsockname())
        yield f"tcp://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.usefixtures("impatient")
async def test_an_address_that_nobody_answers_at_is_named(tmp_path):
    async with silent_address() as url:
        result = await call("probe", "bus", url, "--framing", "tcp", "--units", "1", "--force", cwd=tmp_path)
    assert result.returncode == 1
    assert f"{url} did not open within" in result.stderr


def within(*words):
    """In this process, where no line is opened."""
    return CliRunner().invoke(app, list(map(str, words)), obj=Invocation(), env={"COLUMNS": "200"})


def test_drivers_and_profiles_are_listed(tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "mine.toml").write_text('name = "Mine"\n')
    result = within("drivers", "--profiles", own)
    assert result.exit_code == 0, result.stderr
    for word in ("modbus-gate", "modbus-io", "serial-reader", "wago-750", "Modbus RTU 115200 8N1, unit 10", "faulty"):
        assert word in result.stdout
    assert within("drivers", "roger-b70").stdout == (SHIPPED_PROFILES / "roger-b70.toml").read_text() + "\n"
    told = json.loads(within("drivers", "--profiles", own, "--json").stdout)
    assert "modbus-gate" in [one["driver"] for one in told["drivers"]]
    assert {one["profile"]: one["device"] for one in told["profiles"]}["mine"] == "faulty"
    assert json.loads(within("drivers", "roger-b70", "--json").stdout)["name"]
    assert "no profile 'none-such'" in str(within("drivers", "none-such").exception)


def test_ranges_ofaddresses():
    assert addresses("1-3,2,10", lowest=1, highest=247, option="--units") == [1, 2, 3, 10]
    for wrong in ("0", "248", "a", "", "3-", "1-99999999999", "5-4"):
        with pytest.raises(ConfigError):
            addresses(wrong, lowest=1, highest=247, option="--units")
