"""From a card at an OSDP reader to its lamp and to the gate: the whole gateway between two real far ends."""

import asyncio
import os
import secrets
import time
from contextlib import asynccontextmanager

import pytest
from at_work import opened_store
from forked import Forked
from osdp import Command, CommandLEDColor
from waiting import until

from gateway.domain.credentials import Card, h10301_alias, h10301_bits
from gateway.store import StoredCard
from simulation.far_ends.barrier import Barrier, Wish
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import relay_module

KEY = secrets.token_bytes(16)
KNOWN, UNKNOWN = h10301_bits(12, 3456), h10301_bits(12, 3457)
SITE = """
[site]
name = "North"
[api]
port = 0
[[links]]
id = "osdp"
url = "serial:{line}"
[[links]]
id = "barrier"
url = "tcp://127.0.0.1:{modbus}"
[[devices]]
id = 101
name = "Barrier"
driver = "modbus-gate"
link = "barrier"
profile = "relay-barrier"
[[devices]]
id = 201
name = "Reader"
driver = "osdp-reader"
link = "osdp"
address = 7
key = "reader-key"
[[lanes]]
id = "entry"
name = "Entry"
gate = 101
readers = [201]
arming = {{ device = 101, point = "arming_loop" }}
closing = {{ device = 101, point = "closing_loop" }}
"""


async def know_card(folder):
    folder.mkdir()
    async with opened_store(folder) as store:
        await store.cards.apply(put=[StoredCard(Card(1, "3456", aliases=(h10301_alias(12, 3456),)), "{}")], now=0)


@asynccontextmanager
async def gateway(site, data):
    environ = {**os.environ, "EDGE_GATEWAY_SECRET_READER_KEY": KEY.hex()}
    with (data.parent / "gateway.log").open("ab") as log:
        words = ("gateway", "run", site, "--data", data)
        process = Forked(*words, output=log.fileno(), errors=log.fileno(), env=environ)
    try:
        yield
    finally:
        process.terminate()
        try:
            status = await asyncio.to_thread(process.wait, 10)
        finally:
            process.kill()
    assert status == 0


@pytest.mark.long("a whole gateway and libosdp, each a process")
async def test_a_denied_and_a_granted_card_light_the_reader(peripherals, tmp_path):
    barrier = Barrier(travel_seconds=0.1)
    far_end = ModbusFarEnd(units={1: relay_module(barrier)})
    await know_card(tmp_path / "data")
    await peripherals.plug_in({"address": 7, "key": KEY.hex()})
    async with far_end.tcp() as modbus:
        site = tmp_path / "site.toml"
        site.write_text(SITE.format(line=peripherals.path, modbus=modbus))
        async with gateway(site, tmp_path / "data"):
            barrier.set_arming_loop(occupied=True, now=time.monotonic())
            await present_until_shown(peripherals, UNKNOWN, CommandLEDColor.Red)
            await until(lambda: tones(peripherals) == {3})
            assert not far_end.commands

            await present_until_shown(peripherals, KNOWN, CommandLEDColor.Green)
            await until(lambda: tones(peripherals) == {3, 1})
            await until(lambda: [command.wish for command in far_end.commands] == [Wish.OPEN])


async def present_until_shown(peripherals, bits, colour):
    """Again once a second: what is presented before reader and loop are known to the gateway does not count."""
    again_at = time.monotonic()

    def shown():
        nonlocal again_at
        if time.monotonic() >= again_at:
            peripherals.present(7, bits, 26)
            again_at = time.monotonic() + 1
        return colour in (said["on_color"] for said in told(peripherals, Command.LED))

    await until(shown)


def told(peripherals, command):
    return [said for said in peripherals.shown if said["command"] == command]


def tones(peripherals):
    return {said["rep_count"] for said in told(peripherals, Command.Buzzer)}
