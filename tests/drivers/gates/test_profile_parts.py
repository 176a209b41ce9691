"""Profiles whose commands would do the same at the device are refused, of both families, with the remedy."""

from __future__ import annotations

import pytest

from drivers.modbus.profile import load_profile
from drivers.profile_file import ProfileError
from drivers.serial_line.profile import load_gate_profile

MODBUS = """
name = "Test"
address_base = 1
position = {{ closed_point = "closed", open_point = "opened" }}
[points]
closed = {{ table = "discrete_input", address = 1 }}
opened = {{ table = "discrete_input", address = 2 }}
[commands]
open = {{ {open} }}
close = {{ {close} }}
stop = {{ write = "coil", address = 9 }}
"""
SERIAL = """
family = "serial-line"
kind = "gate"
name = "Test"
[commands]
open = {{ send = "{open}", answer = "none", idempotent = true{more} }}
close = {{ send = "{close}", answer = "none", idempotent = true }}
"""


@pytest.mark.parametrize(
    ("opens", "closes", "fault"),
    [
        (
            'write = "coil", address = 1',
            'write = "coil", address = 1',
            "commands.close writes the same as commands.open",
        ),
        (
            'write = "coil", address = 1',
            'write = "coil", address = 1, value = 0xFF00',
            "commands.close writes the same",
        ),
        (
            'write = "coil", address = 9',
            'write = "coil", address = 1',
            "commands.stop writes the same as commands.open",
        ),
        (
            'write = "holding_register", address = 1, value = 7',
            'write = "holding_register", address = 1, value = 7, many = true',
            "commands.close writes the same as commands.open",
        ),
        (
            'write = "coil", address = 1, pulse_unit_ms = 100, pulse_ms = 500',
            'write = "coil", address = 1, pulse_unit_ms = 100, pulse_ms = 700',
            "commands.close writes the same as commands.open",
        ),
        (
            'write = "coil", address = 1, pulse_unit_ms = 100, pulse_ms = 500',
            'write = "coil", address = 1, value = 3',
            "commands.close writes the same as commands.open",
        ),
        (
            'write = "coil", address = 1, pulse_by = "host"',
            'write = "coil", address = 1, value = false',
            "the end of the pulse of commands.open writes the same as commands.close",
        ),
    ],
)
def test_commands_on_modbus_that_do_the_same(tmp_path, opens, closes, fault):
    path = tmp_path / "gate.toml"
    path.write_text(MODBUS.format(open=opens, close=closes))
    with pytest.raises(ProfileError) as refused:
        load_profile(path)
    (line,) = str(refused.value).splitlines()
    assert fault in line
    assert "give each its own output" in line


@pytest.mark.parametrize(
    ("place", "more"),
    [
        (r"prepare\[0\]", '[[prepare]]\nwhat = "mode set"\nwrite = "coil"\naddress = 2\nvalue = true'),
        ("heartbeat", '[heartbeat]\nwrite = "coil"\naddress = 2\nvalues = [false, true]\nevery_ms = 500'),
    ],
)
def test_other_writes_on_modbus_that_give_a_command(tmp_path, place, more):
    path = tmp_path / "gate.toml"
    path.write_text(MODBUS.format(open='write = "coil", address = 1', close='write = "coil", address = 2') + more)
    with pytest.raises(ProfileError, match=f"{place} writes the same as commands.close and would move the gate"):
        load_profile(path)


@pytest.mark.parametrize(
    ("place", "more"),
    [
        (r"prepare\[0\]", '[[prepare]]\nwhat = "length set"\nwrite = "holding_register"\naddress = 2\nvalue = 7'),
        ("heartbeat", '[heartbeat]\nwrite = "holding_register"\naddress = 2\nvalues = [1, 2]\nevery_ms = 500'),
    ],
)
def test_any_value_at_the_address_of_a_pulse_is_a_command(tmp_path, place, more):
    path = tmp_path / "gate.toml"
    pulse = 'write = "holding_register", address = 2, pulse_unit_ms = 100, pulse_ms = 500'
    path.write_text(MODBUS.format(open='write = "coil", address = 1', close=pulse) + more)
    with pytest.raises(ProfileError, match=f"{place} writes the same as commands.close and would move the gate"):
        load_profile(path)


def test_question_for_the_status_that_gives_a_command(tmp_path):
    path = tmp_path / "gate.toml"
    status = (
        '[replies]\nterminator = "0D"\n[status]\nsend = "A0 01 02 A3"\nanswer = "A0"\n'
        "[points]\narming_loop = { at = 1, mask = 1 }\n"
    )
    path.write_text(SERIAL.format(open="A0 01 01 A2", close="A0 01 02 A3", more="") + status)
    with pytest.raises(ProfileError, match=r"status writes the same as commands\.close and would move the gate"):
        load_gate_profile(path)


def test_step_by_step_input_that_is_marked_as_one_is_taken(tmp_path):
    path = tmp_path / "gate.toml"
    step = 'write = "coil", address = 1, idempotent = false'
    path.write_text(MODBUS.format(open=step, close=step))
    assert load_profile(path).commands.close is not None


@pytest.mark.parametrize(
    ("closes", "more", "fault"),
    [
        ("A0 01 01 A2", "", "commands.close writes the same as commands.open"),
        (
            "A0 01 00 A1",
            ', release = "A0 01 00 A1", pulse_ms = 500',
            "the end of the pulse of commands.open writes the same as commands.close",
        ),
    ],
)
def test_commands_on_a_serial_line_that_do_the_same(tmp_path, closes, more, fault):
    path = tmp_path / "gate.toml"
    path.write_text(SERIAL.format(open="A0 01 01 A2", close=closes, more=more))
    with pytest.raises(ProfileError, match=fault):
        load_gate_profile(path)
