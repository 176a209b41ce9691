"""Cards over a real pseudo-terminal."""

from __future__ import annotations

import asyncio
import time

import pytest

from drivers.contract import CardPresented, DeviceConnected, DeviceLost
from drivers.link import LinkSpec
from drivers.serial_line.reader import SerialReader
from gateway.demo.card_reader import CardReaderFarEnd
from gateway.domain.credentials import h10301_bits


@pytest.fixture
def far_end(tmp_path):
    reader = CardReaderFarEnd(path=tmp_path / "reader")
    reader.plug_in()
    yield reader
    reader.unplug()


def texts(listener):
    return [report.text for report in listener.of(CardPresented)]


async def test_a_card_is_reported_with_the_instant_of_its_last_byte(far_end, running, listener):
    reader = SerialReader(device_id=201, spec=LinkSpec(far_end.url), form="wiegand26")
    async with running(reader.run(listener)):
        await listener.until(lambda: listener.of(DeviceConnected))
        before = time.monotonic()
        far_end.present("001,11572")
        await listener.until(lambda: listener.of(CardPresented))
        (card,) = listener.of(CardPresented)
        assert (card.device_id, card.bit_length, card.bits) == (201, 26, h10301_bits(1, 11_572))
        assert before <= card.at <= time.monotonic()


async def test_one_byte_at_a_time(far_end, running, listener, eventually):
    reader = SerialReader(device_id=201, spec=LinkSpec(far_end.url))
    async with running(reader.run(listener)):
        await listener.until(lambda: listener.of(DeviceConnected))
        for byte in b"CARD-7\r\nCARD-8\r\n":
            far_end.send([bytes((byte,))])
            await asyncio.sleep(0.001)
        await listener.until(lambda: len(listener.of(CardPresented)) == 2)
        assert texts(listener) == ["CARD-7", "CARD-8"]


async def test_a_line_that_pauses_on_its_way_is_one_card(far_end, running, listener):
    reader = SerialReader(device_id=201, spec=LinkSpec(far_end.url))
    async with running(reader.run(listener)):
        await listener.until(lambda: listener.of(DeviceConnected))
        far_end.send([b"CARD"])
        await asyncio.sleep(0.5)  # longer than a serial server's resend
        far_end.send([b"-7\r\n"])
        await listener.until(lambda: listener.of(CardPresented))
        assert texts(listener) == ["CARD-7"]


async def test_noise_is_counted_and_the_next_card_is_read(far_end, running, listener):
    reader = SerialReader(device_id=201, spec=LinkSpec(far_end.url), form="hex")
    async with running(reader.run(listener)):
        await listener.until(lambda: listener.of(DeviceConnected))
        far_end.send([b"\xff\xfe\x00\r\n", b"y" * 2000 + b"\r\n", b"nonsense\r\n", b"7186A61E\r\n"])
        await listener.until(lambda: listener.of(CardPresented))
        assert [card.bits for card in listener.of(CardPresented)] == [0x7186A61E]
        assert reader.refused_lines == 2


async def test_pulled_out_and_put_back(far_end, running, listener):
    reader = SerialReader(device_id=201, spec=LinkSpec(far_end.url))
    async with running(reader.run(listener)):
        await listener.until(lambda: listener.of(DeviceConnected))
        device = far_end.device
        far_end.send([b"torn"])
        far_end.unplug()
        await listener.until(lambda: listener.of(DeviceLost))
        far_end.plug_in()
        assert far_end.device == device, "the old descriptor is still open"
        await listener.until(lambda: len(listener.of(DeviceConnected)) == 2)
        far_end.present("CARD-7")
        await listener.until(lambda: texts(listener) == ["CARD-7"])
        assert len(listener.of(DeviceLost)) == 1


async def test_a_reader_that_is_not_there_is_lost_once_until_it_comes(tmp_path, running, listener):
    far_end = CardReaderFarEnd(path=tmp_path / "reader")
    reader = SerialReader(device_id=201, spec=LinkSpec(far_end.url))
    async with running(reader.run(listener)):
        await listener.until(lambda: listener.of(DeviceLost))
        await asyncio.sleep(0.4)
        assert len(listener.reports) == 1
        far_end.plug_in()
        await listener.until(lambda: listener.of(DeviceConnected))
    far_end.unplug()
