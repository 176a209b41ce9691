"""Tag readers over real pseudo-terminals: asked, and speaking by themselves."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from waiting import until

from drivers.bus.bus import Bus
from drivers.contract import CardPresented, DeviceConnected, MessageRefused
from drivers.link import LinkSpec
from drivers.serial_line.profile import TagReaderProfile, load_tag_reader_profile
from drivers.serial_line.tag_reader import PolledTagReader, SpeakingTagReader
from simulation.far_ends.pseudo_terminal import PseudoTerminal
from simulation.far_ends.serial_devices import SerialTags
from simulation.far_ends.serial_far_end import SerialFarEnd

EPC = bytes.fromhex("E2 80 68 94 00 00 50 0A 9D 22 98 C6")
OTHER = bytes.fromhex("30 34 B7 08 AC 39 7E 00 00 00 06 49")

POLLED = "uhf-iqrfid-5102.toml"
SPEAKING = TagReaderProfile.model_validate(
    {
        "family": "serial-line",
        "kind": "tag-reader",
        "name": "STX, six characters, XOR, ETX",
        "replies": {"start": "02", "length": 9, "checks": [{"algorithm": "xor", "first": 1, "at": -2}]},
        "readings": ["02"],
        "tags": {"first": 1, "length": 6, "tail": 2, "text": True},
    }
)


@pytest.fixture
def polled(tmp_path, running, listener, profiles):
    @asynccontextmanager
    async def make(*, hold_seconds=30.0):
        profile = load_tag_reader_profile(profiles / POLLED).model_copy(update={"poll_ms": 30, "reply_ms": 200})
        tags = SerialTags(profile=profile)
        far_end = SerialFarEnd(devices={0: tags})
        async with far_end.serial(path=tmp_path / "line") as terminal:
            bus = Bus(name="line", spec=LinkSpec(f"serial:{terminal.path}", baud=115_200))
            reader = PolledTagReader(
                device_id=201, bus=bus, profile=profile, query=profile.poll, unit=0, hold_seconds=hold_seconds
            )
            async with running(bus.run(), reader.run(listener)):
                await listener.until(lambda: listener.of(DeviceConnected))
                yield tags, far_end, terminal

    return make


def bits(listener):
    return [report.bits for report in listener.of(CardPresented)]


async def test_a_tag_in_the_field_is_presented_once_in_its_time(polled, listener):
    async with polled() as (tags, far_end, _):
        tags.field = (EPC,)
        await listener.until(lambda: listener.of(CardPresented))
        asked = len(far_end.received)
        await until(lambda: len(far_end.received) > asked + 5)
        tags.field = (EPC, OTHER)
        await listener.until(lambda: len(bits(listener)) == 2)
        (card, _) = listener.of(CardPresented)
        assert (card.device_id, card.bit_length, card.text) == (201, 96, "")
        assert bits(listener) == [int.from_bytes(EPC, "big"), int.from_bytes(OTHER, "big")]


async def test_a_tag_that_stays_is_presented_again_after_its_time(polled, listener):
    async with polled(hold_seconds=0.2) as (tags, *_):
        tags.field = (EPC,)
        await listener.until(lambda: len(bits(listener)) >= 3)
    first, second, third, *_ = [card.at for card in listener.of(CardPresented)]
    assert second - first >= 0.2
    assert third - second >= 0.2


async def test_a_tag_that_contradicts_its_own_length_is_no_card(polled, listener, profiles):
    async with polled() as (tags, far_end, _):
        wrong = load_tag_reader_profile(profiles / POLLED).replies.sealed(
            bytes.fromhex("00 00 01 01 01 0C") + EPC[:4] + bytes(2)
        )
        tags.answer = lambda what, **_: wrong
        asked = len(far_end.received)
        await until(lambda: len(far_end.received) > asked + 3)
        assert bits(listener) == []


@pytest.fixture
def speaking(tmp_path):
    terminal = PseudoTerminal(path=tmp_path / "line")
    terminal.plug_in()
    yield terminal
    terminal.unplug()


def said(text: bytes) -> bytes:
    return SPEAKING.replies.sealed(b"\x02" + text + b"\x00\x03")


async def test_a_speaking_reader_in_pieces_among_noise_and_after_a_torn_frame(speaking, running, listener):
    reader = SpeakingTagReader(
        device_id=201, spec=LinkSpec(f"serial:{speaking.path}"), profile=SPEAKING, unit=0, hold_seconds=5
    )

    def texts():
        return [report.text for report in listener.of(CardPresented)]

    async with running(reader.run(listener)):
        await listener.until(lambda: listener.of(DeviceConnected))
        for byte in said(b"CARD-1"):
            speaking.write(bytes((byte,)))
            await asyncio.sleep(0.001)  # the pace of the line
        await listener.until(lambda: texts() == ["CARD-1"])
        speaking.write(b"\x00\xff" + said(b"CARD-1") + said(b"CARD-2"))
        await listener.until(lambda: texts() == ["CARD-1", "CARD-2"])
        speaking.write(said(b"CARD-3")[:5] + said(b"CARD-4"))
        await listener.until(lambda: texts() == ["CARD-1", "CARD-2", "CARD-4"])
        speaking.write(said(b"\xff\xfe\x01\x02\x03\x04") + said(b"CARD-5"))
        await listener.until(lambda: texts()[-1] == "CARD-5")
        assert len(texts()) == 4
        refused = listener.of(MessageRefused)
        assert "no frame" in refused[0].reason
        assert "no characters" in refused[-1].reason
        assert refused[-1].raw == said(b"\xff\xfe\x01\x02\x03\x04")
