"""A change of site files in steps, over running gateways: taken everywhere, or taken back everywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from fleet_desk import ANNA
from nats_server import NatsServer
from running_gateway import SITE, RunningGateway, give_account, typed
from waiting import until

from gateway.domain.errors import ConfigError
from gateway.fleet.line import FleetLine
from gateway.fleet.operator import gateways, prepare, read_edits

pytestmark = pytest.mark.long("several running gateways and a real NATS server")

FLEET = """
[fleet]
urls = ["{url}"]
site = "north"
gateway = "{name}"
[[fleet.senders]]
key = "{key}"
account = "chief"
"""
AREA = """
[[areas]]
id = "yard"
name = "Yard"
"""
HOLIDAY = """
[[edits]]
section = "holidays"
id = "2026-12-26"
values = { name = "Boxing Day" }
"""
NAMES = ("north.gate-1", "north.gate-2")


class Yard:
    """Two gateways of a fleet, of which only the first has an area."""

    def __init__(self, folder: Path, server: NatsServer, stack: ExitStack) -> None:
        self.folder, self.server = folder, server
        (folder / "operator.nk").write_text(ANNA[0])
        self.running = {}
        for name in ("gate-1", "gate-2"):
            (folder / name).mkdir()
            text = SITE + FLEET.format(url=server.url, name=name, key=ANNA[1]) + AREA * (name == "gate-1")
            (folder / name / "site.toml").write_text(text)
            give_account(folder / name / "data")
            one = RunningGateway(folder / name, "--data", folder / name / "data")
            self.running[name] = stack.enter_context(one)
        self.before = self.files()

    def files(self) -> list[str]:
        return [(self.folder / name / "site.toml").read_text() for name in self.running]

    async def rollout(self, change: str, *options: str):
        (self.folder / "change.toml").write_text(change)
        words = ("fleet", "rollout", self.folder / "change.toml", *NAMES, "--server", self.server.url)
        key = ("--key", self.folder / "operator.nk")
        return await asyncio.to_thread(typed, *words, *key, "--healthy", "1", *options)


@pytest.fixture
def server(real_server) -> NatsServer:
    return real_server


@pytest.fixture
async def yard(server, broker, tmp_path) -> Iterator[Yard]:
    await prepare(FleetLine(broker), days=1, replicas=1)
    with ExitStack() as stack:
        yard = Yard(tmp_path, server, stack)
        await until(lambda: heard(broker))
        yield yard


async def heard(broker) -> bool:
    """Return whether both gateways have said that they are ready."""
    return {seen.name async for seen in gateways(FleetLine(broker)) if seen.beat.ready} == set(NAMES)


async def test_a_change_goes_to_the_first_gateway_and_then_to_the_rest(yard):
    done = await yard.rollout(HOLIDAY)
    assert done.returncode == 0, done.stdout + done.stderr
    told = done.stdout.splitlines()
    assert [line.partition(":")[0] for line in told] == [*NAMES, "rolled out to 2 gateways"]
    assert all("Boxing Day" in text for text in yard.files())


def test_accounts_are_not_rolled_out():
    change = '[[edits]]\nsection = "api.accounts"\nid = "ada"\nvalues = { password = "x" }\n'
    with pytest.raises(ConfigError, match=r"^accounts are not in the site file: make them at each site with"):
        read_edits(change)


async def test_what_one_gateway_refuses_is_taken_back_at_all(yard):
    change = HOLIDAY + '[[edits]]\nsection = "areas"\nid = "yard"\nvalues = { limit = 3 }\n'
    done = await yard.rollout(change)
    assert done.returncode == 1
    assert "north.gate-2: [[areas]]: there is no yard" in done.stdout
    assert "north.gate-1: taken back" in done.stdout
    assert [text.strip() for text in yard.files()] == [text.strip() for text in yard.before]
