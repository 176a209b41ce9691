"""Profile files: the shipped ones, what they can say, and how bad ones are told."""

from __future__ import annotations

import pytest

from drivers.contract import GatePosition
from drivers.modbus.frames import Read, Table, Write
from drivers.modbus.profile import Point, load_profile, load_unit_profile
from drivers.profile_file import ProfileError

WHOLE = """
name = "Test"
address_base = 1
[position]
table = "input_register"
address = 5
mask = 0x0F
[position.values]
0x01 = "open"
2 = "closed"
[points]
loop = { table = "input_register", address = 6, mask = 0x80, inverted = true }
beam = { table = "input_register", address = 6, mask = 1 }
tamper = { table = "coil", address = 40 }
[commands]
open = { write = "holding_register", address = 10, value = 0x6802 }
close = { write = "coil", address = 1, value = 7, pulse_by = "host", pulse_ms = 250 }
"""


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "gate.toml"
        path.write_text(text)
        return path

    return write


def test_the_relay_barrier_is_read_at_once(relay_profile):
    assert relay_profile.reads() == (Read(Table.DISCRETE_INPUT, 0, 6),)
    assert relay_profile.write_of(relay_profile.commands.open) == Write(Table.COIL, 0, 0xFF00)


def test_came_counts_from_one(came_profile):
    assert came_profile.reads() == (Read(Table.HOLDING_REGISTER, 100, 1),)
    assert came_profile.write_of(came_profile.commands.stop) == Write(Table.COIL, 0, 0xFF00)
    assert came_profile.write_of(came_profile.commands.close) == Write(Table.COIL, 3, 0xFF00)
    assert came_profile.position.values[33] is GatePosition.CLOSING


def test_every_shipped_profile_loads(profiles):
    modbus = [path for path in profiles.glob("*.toml") if "family =" not in path.read_text()]
    assert len([load_unit_profile(path) for path in modbus]) >= 10


def test_raw_values_masks_and_neighbours(written):
    profile = load_profile(written(WHOLE))
    assert profile.reads() == (Read(Table.COIL, 39, 1), Read(Table.INPUT_REGISTER, 4, 2))
    assert profile.write_of(profile.commands.open) == Write(Table.HOLDING_REGISTER, 9, 0x6802)
    assert profile.write_of(profile.commands.close) == Write(Table.COIL, 0, 7)
    assert profile.release_of(profile.commands.close) == Write(Table.COIL, 0, 0)
    assert profile.commands.close.pulse_seconds == 0.25
    assert profile.position.values == {1: GatePosition.OPEN, 2: GatePosition.CLOSED}


@pytest.mark.parametrize(("value", "inverted", "on"), [(0x80, False, True), (0x7F, False, False), (0x80, True, False)])
def test_a_point_in_a_register(value, inverted, on):
    point = Point(table=Table.HOLDING_REGISTER, address=1, mask=0x80, inverted=inverted)
    assert point.is_on(value) is on


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("[position]", "[position"), "is not TOML"),
        (('name = "Test"', ""), "name: Field required"),
        (("mask = 1 }", "mask = 1, colour = 2 }"), "points.beam.colour: Extra inputs"),
        (('"input_register", address = 6, mask = 1', '"input_register", address = 6'), "needs a mask"),
        (('"coil", address = 40', '"coil", address = 40, mask = 1'), "a mask is for registers"),
        (("address = 40", "address = 0"), "points.tamper: address 0 with address_base 1"),
        (('2 = "closed"', '2 = "ajar"'), "position"),
        (('2 = "closed"', 'two = "closed"'), "position"),
        (("open = {", "opens = {"), "commands.open: Field required"),
        (("pulse_ms = 250", "pulse_ms = 9000"), "commands.close.pulse_ms"),
    ],
)
def test_a_bad_file_names_itself_the_place_and_the_fault(written, change, words):
    path = written(WHOLE.replace(*change))
    with pytest.raises(ProfileError) as fault:
        load_profile(path)
    assert words in str(fault.value)
    assert all(line.startswith(str(path)) for line in str(fault.value).splitlines())


def test_a_missing_file_and_a_missing_limit(tmp_path, written, profiles):
    with pytest.raises(ProfileError, match="cannot be read: No such file"):
        load_profile(tmp_path / "none.toml")
    relay = (profiles / "relay-barrier.toml").read_text()
    with pytest.raises(ProfileError, match="names the point 'top', which is not in points"):
        load_profile(written(relay.replace('open_point = "open_limit"', 'open_point = "top"')))
