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
