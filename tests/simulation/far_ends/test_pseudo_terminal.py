"""Ports that can be pulled out and put back, opened with pyserial as anyone would."""

from __future__ import annotations

import pytest
import serial

from simulation.far_ends.pseudo_terminal import PseudoTerminal


def opened(terminal):
    return serial.Serial(str(terminal.path), timeout=1)


def test_pulling_the_plug_hangs_up_and_takes_the_name_away(tmp_path):
    terminal = PseudoTerminal(path=tmp_path / "port")
    terminal.plug_in()
    terminal.plug_in()
    with opened(terminal) as port:
        terminal.unplug()
        terminal.unplug()
        assert not terminal.path.exists()
        with pytest.raises(serial.SerialException):
            port.read(1)
    terminal.write(b"to nobody")
    assert terminal.device is None


def test_a_port_that_nobody_reads_never_blocks(tmp_path):
    terminal = PseudoTerminal(path=tmp_path / "port")
    terminal.plug_in()
    for _ in range(100):
        terminal.write(bytes(4096))
    terminal.unplug()
