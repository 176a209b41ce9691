"""`edge-gateway probe` beside a running gateway that has the line: it answers, and works on."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from running_gateway import SITE, typed
from running_house import at_work

from drivers.modbus.profile import load_profile
from drivers.profile_file import SHIPPED_PROFILES
from simulation.far_ends.barrier import Barrier
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import ProfileWiring

SITE = (
    SITE
    + """
[[links]]
id = "gates"
url = "serial:{path}"
baud = 38400
[[devices]]
id = 101
name = "North barrier"
driver = "modbus-gate"
link = "gates"
profile = "came-gard-ptx"
unit = 3
framing = "rtu"
"""
)
NEW = 5


@asynccontextmanager
async def yard(folder):
    """A gateway that polls a barrier at address 3, and a unit at address 5 that nobody has configured."""
    profile = load_profile(SHIPPED_PROFILES / "came-gard-ptx.toml")
    units = {unit: ProfileWiring(profile=profile, barrier=Barrier()) for unit in (3, NEW)}
    units[3].measure("cycles", 0x0001_0002)
    far_end = ModbusFarEnd(units=units, framing="rtu")
    async with far_end.serial(path=folder / "port") as terminal:
        (folder / "site.toml").write_text(SITE.format(path=terminal.path))
        async with at_work(folder, folder / "data", {}) as gateway:
            await gateway.serves()
            yield far_end, f"serial:{terminal.path}"


@pytest.fixture
def call(tmp_path):
    async def call(*words):
        return await asyncio.to_thread(typed, *map(str, words), cwd=tmp_path, EDGE_GATEWAY_DATA="data", COLUMNS="160")

    return call


async def test_the_running_gateway_is_asked_for_its_line(tmp_path, call):
    async with yard(tmp_path) as (far_end, url):
        found = await call("probe", "bus", url, "--units", "1-6")
        assert found.returncode == 0, found.stderr
        assert "6 of 6 addresses: every address was asked" in found.stdout
        rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in found.stdout.splitlines() if "│" in line]
        assert [(row[0], row[1]) for row in rows] == [("3", "North barrier"), (str(NEW), "new")]
        assert "it asks in its idle turns" in found.stderr

        told = json.loads((await call("probe", "bus", "gates", "--units", "5", "--json")).stdout)
        assert [unit["unit"] for unit in told["units"]] == [NEW]

        read = await call("probe", "unit", "site.toml", "101")
        assert read.returncode == 0, read.stderr
        assert "closed (17)" in read.stdout
        assert "65538" in read.stdout

        lines = await call("probe", "lines")
        assert (lines.returncode, lines.stdout.splitlines()[0]) == (0, f"gates ({url}): Every unit answers in time.")
        assert "unit 3 (North barrier): " in lines.stdout

        frames = await call("probe", "follow", "gates", "--seconds", "0.2")
        assert frames.returncode == 0, frames.stderr
        assert "unit 3 (North barrier): read register" in frames.stdout
        assert "unit 5 [scan]: read register 0: refused: illegal data address" in frames.stdout
        assert not far_end.commands


async def test_what_it_refuses_is_told(tmp_path, call):
    async with yard(tmp_path) as (far_end, url):
        refused = await call("probe", "unit", "site.toml", "101", "--send", "open")
        assert refused.returncode == 1
        assert "edge-gateway lanes open" in refused.stderr
        assert not far_end.commands
        unknown = await call("probe", "follow", "garage", "--seconds", "1")
        assert (unknown.returncode, unknown.stdout) == (2, "")
        assert f"its lines: gates ({url})" in unknown.stderr


async def test_without_a_gateway_only_its_own_questions_end_with_3(call):
    for words in (("lines",), ("follow", "gates")):
        alone = await call("probe", *words)
        assert (alone.returncode, "no gateway answers" in alone.stderr) == (3, True)
