"""Cards over a real pseudo-terminal."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest
from descriptors import open_files

from drivers.backoff import Reconnects
from drivers.contract import CardPresented, DeviceConnected, DeviceLost, MessageRefused
from drivers.link import LinkSpec
from drivers.serial_line.reader import LineForm, SerialReader
from gateway.domain.credentials import h10301_bits
from simulation.demo.devices import CardReaderFarEnd


@pytest.fixture
def far_end(tmp_path):
    reader = CardReaderFarEnd(path=tmp_path / "reader")
    reader.plug_in()
    yield reader
    reader.unplug()


def open_descriptors():
    return len(tuple(Path("/proc/self/fd").iterdir()))


def texts(listener):
    return [report.text for report in listener.of(CardPresented)]


async def test_a_card_is_reported_with_the_instant_of_its_last_byte(far_end, running, listener):
    reader = SerialReader(device_id=201, hold_seconds=0, spec=LinkSpec(far_end.url), lines=LineForm(form="wiegand26"))
    async with running(reader.run(listener)):
        await listener.until(lambda: listener.of(DeviceConnected))
        before = time.monotonic()
        far_end.present("001,11572")
        await listener.until(lambda: listener.of(CardPresented))
        (card,) = listener.of(CardPresented)
        assert (card.device_id, card.bit_length, card.bits) == (201, 26, h10301_bits(1, 11_572))
        assert before <= card.at <= time.monotonic()


async def test_a_line_that_pauses_on_its_way_is_one_card(far_end, running, listener):
    reader = SerialReader(device_id=201, hold_seconds=0, spec=LinkSpec(far_end.url))
    async with running(reader.run(listener)):
        await listener.until(lambda: listener.of(DeviceConnected))
        far_end.send([b"CARD"])
        await asyncio.sleep(0.5)  # longer than a serial server's resend
        far_end.send([b"-7\r\n"])
        await listener.until(lambda: listener.of(CardPresented))
        assert texts(listener) == ["CARD-7"]


async def test_noise_is_counted_and_the_next_card_is_read(far_end, running, listener):
    reader = SerialReader(device_id=201, hold_seconds=0, spec=LinkSpec(far_end.url), lines=LineForm(form="hex"))
    async with running(reader.run(listener)):
        await listener.until(lambda: listener.of(DeviceConnected))
        far_end.send([b"\xff\xfe\x00\r\n", b"y" * 2000 + b"\r\n", b"nonsense\r\n", b"7186A61E\r\n"])
        await listener.until(lambda: listener.of(CardPresented))
        assert [card.bits for card in listener.of(CardPresented)] == [0x7186A61E]
        refused = listener.of(MessageRefused)
        assert {one.device_id for one in refused} == {201}
        assert {b"\xff\xfe\x00", b"nonsense"} <= {one.raw for one in refused}
        assert len(refused) == 3


async def test_pulled_out_and_put_back(far_end, running, listener):
    reader = SerialReader(device_id=201, hold_seconds=0, spec=LinkSpec(far_end.url))
    async with running(reader.run(listener)):
        await listener.until(lambda: listener.of(DeviceConnected))
        device = far_end.device
        assert device in open_files()
        far_end.send([b"torn"])
        far_end.unplug()
        await listener.until(lambda: listener.of(DeviceLost))
        assert device not in open_files()
        far_end.plug_in()
        await listener.until(lambda: len(listener.of(DeviceConnected)) == 2)
        far_end.present("CARD-6")  # if the torn line was seen to begin, this may be its end
        far_end.present("CARD-7")
        await listener.until(lambda: "CARD-7" in texts(listener))
        assert texts(listener) in (["CARD-7"], ["CARD-6", "CARD-7"])
        assert len(listener.of(DeviceLost)) == 1


class TcpReader:
    """A reader behind a serial server; one caller at a time."""

    def __init__(self, greets=b""):
        self.greets = greets
        self.writer = None

    async def serve(self, _, writer):
        self.writer = writer
        writer.write(self.greets)

    async def drop(self):
        writer, self.writer = self.writer, None
        writer.close()
        await writer.wait_closed()


@pytest.fixture
async def tcp_reader():
    reader = TcpReader()
    async with await asyncio.start_server(reader.serve, "127.0.0.1", 0) as server:
        reader.spec = LinkSpec(f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        yield reader
        if reader.writer is not None:
            reader.writer.close()


@pytest.mark.parametrize(
    ("form", "head", "tail"), [("text", b"99", b"11572"), ("decimal", b"3", b"14"), ("hex", b"AB", b"CD")]
)
async def test_what_comes_of_a_torn_line_over_a_new_connection_is_no_card(
    tcp_reader, running, listener, form, head, tail
):
    reader = SerialReader(device_id=201, hold_seconds=0, spec=tcp_reader.spec, lines=LineForm(form=form))
    async with running(reader.run(listener)):
        await listener.until(lambda: listener.of(DeviceConnected))
        tcp_reader.writer.write(b"77\r\n" + head)
        await listener.until(lambda: listener.of(CardPresented))  # the head came in the same segment
        for connections in (2, 3):  # it is still torn after a second loss
            await tcp_reader.drop()
            await listener.until(lambda count=connections: len(listener.of(DeviceConnected)) == count)
        tcp_reader.writer.write(tail + b"\r\n88\r\n")
        await listener.until(lambda: len(listener.of(CardPresented)) == 2)
        assert len(listener.of(MessageRefused)) == 1
        assert {card.text or f"{card.bits:X}" for card in listener.of(CardPresented)} == {"77", "88"}


async def test_what_comes_right_after_opening_may_be_the_end_of_a_line(tcp_reader, running, listener):
    tcp_reader.greets = b"572\r\n"
    reader = SerialReader(device_id=201, hold_seconds=0, spec=tcp_reader.spec)
    async with running(reader.run(listener)):
        await listener.until(lambda: listener.of(DeviceConnected))
        tcp_reader.writer.write(b"11572\r\n")
        await listener.until(lambda: texts(listener))
        assert texts(listener) == ["11572"]


async def test_the_first_line_after_a_silence_is_a_card(tcp_reader, running, listener):
    reader = SerialReader(device_id=201, hold_seconds=0, spec=tcp_reader.spec)
    async with running(reader.run(listener)):
        for count in (1, 2):
            await listener.until(lambda count=count: len(listener.of(DeviceConnected)) == count)
            tcp_reader.writer.write(b"11572\r\n")
            await listener.until(lambda count=count: len(texts(listener)) == count)
            await tcp_reader.drop()
        assert not listener.of(MessageRefused)


async def test_an_adapter_that_is_unplugged_for_long_is_told_once_costs_nothing_and_comes_back(
    far_end, running, listener, monkeypatch
):
    tries = 0

    def at_once(_reconnects):
        nonlocal tries
        tries += 1
        return 0.0

    monkeypatch.setattr(Reconnects, "wait", at_once)
    reader = SerialReader(device_id=201, hold_seconds=0, spec=LinkSpec(far_end.url))
    async with running(reader.run(listener)):
        await listener.until(lambda: listener.of(DeviceConnected))
        far_end.unplug()
        await listener.until(lambda: tries >= 3, within=60)
        held, threads = open_descriptors(), threading.active_count()
        await listener.until(lambda: tries >= 15, within=120)
        assert open_descriptors() <= held
        assert threading.active_count() <= threads
        assert len(listener.of(DeviceLost)) == 1
        far_end.plug_in()
        await listener.until(lambda: len(listener.of(DeviceConnected)) == 2)
        far_end.present("CARD-7")
        await listener.until(lambda: texts(listener) == ["CARD-7"])


async def test_a_card_that_a_reader_repeats_while_it_is_held_is_presented_once(tcp_reader, running, listener):
    reader = SerialReader(device_id=201, hold_seconds=60, spec=tcp_reader.spec)
    async with running(reader.run(listener)):
        await listener.until(lambda: listener.of(DeviceConnected))
        tcp_reader.writer.write(b"11572\r\n" * 40 + b"88\r\n")
        await listener.until(lambda: "88" in texts(listener))
        assert texts(listener) == ["11572", "88"]


async def test_a_card_counts_right_behind_the_text_with_which_a_serial_server_greets(tcp_reader, running, listener):
    tcp_reader.greets = b"www.usr.cn"
    reader = SerialReader(device_id=201, hold_seconds=0, spec=tcp_reader.spec, lines=LineForm(form="decimal"))
    async with running(reader.run(listener)):
        await listener.until(lambda: listener.of(MessageRefused))  # the text was judged
        tcp_reader.writer.write(b"11572\r\n")
        await listener.until(lambda: texts(listener))
        assert texts(listener) == ["11572"]
        assert [one.raw for one in listener.of(MessageRefused)] == [b"www.usr.cn"]


async def test_what_is_left_of_a_tag_frame_is_no_card_once_the_reader_sent_one(tcp_reader, running, listener):
    reader = SerialReader(device_id=201, hold_seconds=0, spec=tcp_reader.spec, lines=LineForm(form="hex"))
    async with running(reader.run(listener)):
        await listener.until(lambda: listener.of(DeviceConnected))
        tcp_reader.writer.write(b"\r\n4D760332\r\n\x020A004D760332\r\n\x034D760332\r\n\x020A004D760332\r\n\x03")
        await listener.until(lambda: len(listener.of(CardPresented)) == 3)
        assert [card.bits for card in listener.of(CardPresented)] == [0x4D760332, 0x0A004D760332, 0x0A004D760332]


async def test_a_heartbeat_that_the_site_file_names_is_no_refusal(tcp_reader, running, listener):
    tcp_reader.greets = b"www.usr.cn"
    reader = SerialReader(device_id=201, hold_seconds=0, spec=tcp_reader.spec, lines=LineForm(heartbeat="www.usr.cn"))
    async with running(reader.run(listener)):
        await listener.until(lambda: listener.of(DeviceConnected))
        tcp_reader.writer.write(b"www.usr.cn11572\r\nwww.usr.cn11573\r\n")
        await listener.until(lambda: texts(listener))
        assert texts(listener) == ["11573"], "what came at the opening may be the end of a line"
        assert len(listener.of(MessageRefused)) == 1
