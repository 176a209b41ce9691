"""Ports that can be pulled out and put back, opened with pyserial as anyone would."""

from __future__ import annotations

import asyncio

import pytest
import serial
from waiting import until

from simulation.demo.devices import CardReaderFarEnd
from simulation.far_ends.pseudo_terminal import PseudoTerminal


def opened(terminal):
    return serial.Serial(str(terminal.path), timeout=1)


async def test_bytes_go_both_ways_unchanged(tmp_path):
    heard = bytearray()
    terminal = PseudoTerminal(path=tmp_path / "port", on_bytes=heard.extend)
    terminal.plug_in()
    sent = bytes(range(256))
    with opened(terminal) as port:
        terminal.write(sent)
        assert await asyncio.to_thread(port.read, 256) == sent
        port.write(sent)
        await until(lambda: len(heard) >= 256)
        assert bytes(heard) == sent
    terminal.unplug()


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


def test_a_card_goes_out_as_one_line(tmp_path):
    reader = CardReaderFarEnd(path=tmp_path / "reader", terminator="\r", prefix="ID:")
    reader.plug_in()
    assert reader.is_plugged_in
    with serial.Serial(reader.url.removeprefix("serial:"), timeout=1) as port:
        reader.present("001,11572")
        assert port.read_until(b"\r") == b"ID:001,11572\r"
    reader.unplug()
    assert not reader.is_plugged_in
