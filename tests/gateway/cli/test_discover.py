"""`edge-gateway discover` against far ends of real sockets and ports; what it prints is accepted by `check`."""

from __future__ import annotations

import asyncio
import json
import tomllib

from hypothesis import given
from hypothesis import strategies as st
from running_gateway import SITE, typed
from running_house import at_work
from ws_responder import responder

from drivers.discovery import PORT
from gateway.cli.site_fragment import Findings, FoundCamera, FoundLine, FoundUnit, fragment
from gateway.site import Site
from simulation.far_ends.barrier import Barrier
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import relay_module

LOOPBACK = "127.0.0.1"


def two_units():
    units = {unit: relay_module(Barrier()) for unit in (3, 5)}
    return ModbusFarEnd(units=units, framing="rtu")


async def call(folder, *words):
    return await asyncio.to_thread(typed, "discover", *words, cwd=folder, EDGE_GATEWAY_DATA="data", COLUMNS="160")


async def checked(folder, printed):
    (folder / "found.toml").write_text(SITE + printed)
    return await asyncio.to_thread(typed, "check", "found.toml", cwd=folder)


async def test_what_is_found_goes_into_a_site_file(tmp_path):
    async with two_units().serial(path=tmp_path / "port") as terminal, responder(PORT):
        line = f"serial:{terminal.path}"
        words = ("modbus", "onvif", "--on", line, "--units", "3-5", "--interface", LOOPBACK, "--seconds", "0.5")
        found = await call(tmp_path, *words, "--json")
        assert found.returncode == 0, found.stderr
    told = json.loads(found.stdout)
    good = await checked(tmp_path, told["fragment"])
    assert good.returncode == 0, good.stderr
    assert "with 0 lanes, 0 gates, 0 readers, 2 input modules, 1 camera, 1 link" in good.stdout
    assert [unit["unit"] for unit in told["lines"][0]["units"]] == [3, 5]
    assert told["cameras"][0]["name"] == "Yard camera P3245"
    site = tomllib.loads(SITE + told["fragment"])
    assert [(device["unit"], device["framing"]) for device in site["devices"]] == [(3, "rtu"), (5, "rtu")]
    assert site["cameras"][0]["url"] == "rtsp://192.168.1.20/"


async def test_a_line_of_the_running_gateway_is_asked_there_and_its_own_devices_are_known(tmp_path):
    async with two_units().serial(path=tmp_path / "port") as terminal:
        line = f"serial:{terminal.path}"
        (tmp_path / "site.toml").write_text(
            SITE + f'[[links]]\nid = "gates"\nurl = "{line}"\nbaud = 19200\n[[devices]]\nid = 101\nname = "Barrier"\n'
            'driver = "modbus-gate"\nlink = "gates"\nprofile = "relay-barrier"\nunit = 3\nframing = "rtu"\n'
        )
        async with at_work(tmp_path, tmp_path / "data", {}) as gateway:
            await gateway.serves()
            found = await call(tmp_path, "modbus", "--on", line, "--units", "3-5")
    assert found.returncode == 0, found.stderr
    assert "#   unit 3: answers its polls after" in found.stdout
    assert "Barrier of the site" in found.stdout
    (device,) = tomllib.loads(found.stdout)["devices"]
    assert (device["unit"], device["link"]) == (5, "gates")
    assert "[[links]]" not in found.stdout


async def test_a_line_that_does_not_open_is_a_note(tmp_path, monkeypatch):
    monkeypatch.setattr("drivers.modbus.survey.OPEN_PATIENCE", 0.5)
    found = await call(tmp_path, "modbus", "--on", "serial:/dev/none-such", "--units", "1")
    assert found.returncode == 0
    assert "# serial:/dev/none-such: serial:/dev/none-such does not open: " in found.stdout
    assert (await call(tmp_path, "modbus", "--on", "ftp://x")).returncode == 2
    assert (await call(tmp_path, "wifi")).returncode == 2


names = st.text(max_size=40)


@given(
    st.lists(st.tuples(st.integers(1, 247), names, names), max_size=3),
    st.lists(st.tuples(st.ip_addresses(v=4).map(str), names), max_size=2, unique_by=lambda one: one[0]),
)
def test_any_names_make_a_sound_site_file(units, cameras):
    lines = tuple(
        FoundLine(f"serial:/dev/serial/by-id/usb-{number}", units=(FoundUnit(unit, answer, identity),))
        for number, (unit, answer, identity) in enumerate(units)
    )
    found = Findings(lines, tuple(FoundCamera(address, name, "ONVIF") for address, name in cameras))
    site = Site.model_validate(tomllib.loads(SITE + fragment(found)))
    assert (len(site.devices), len(site.links), len(site.cameras)) == (len(units), len(units), len(cameras))
