"""Every driver of the serial line family on bad lines."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from pathlib import Path

from conformance import Conformance, Driven
from faulty_line import Fault

from drivers.bus.bus import Bus
from drivers.contract import CardPresented, GateMoved, GatePosition, PointChanged, PointState
from drivers.link import LinkSpec
from drivers.serial_line.gate import SerialGate
from drivers.serial_line.profile import TagReaderProfile, load_gate_profile, load_tag_reader_profile
from drivers.serial_line.reader import SerialReader
from drivers.serial_line.tag_reader import PolledTagReader, SpeakingTagReader
from simulation.demo.devices import CardReaderFarEnd
from simulation.far_ends.barrier import Barrier
from simulation.far_ends.serial_devices import SerialBarrier, SerialTags
from simulation.far_ends.serial_far_end import SerialFarEnd

PROFILES = Path(__file__).parents[3] / "drivers" / "profiles"
TAGS = [bytes((0xE2, 0x80, *bytes(9), number)) for number in range(200)]


class TestSerialGate(Conformance):
    drives = (SerialGate,)
    lines = ("serial",)
    profile = load_gate_profile(PROFILES / "speed-gate-7e-left.toml").model_copy(update={"poll_ms": 100})

    @asynccontextmanager
    async def far_end(self, folder):
        self.barrier, self.interrupted = Barrier(), False
        devices = {1: SerialBarrier(profile=self.profile, barrier=self.barrier)}
        self.far = SerialFarEnd(devices=devices)
        async with self.far.serial(path=folder / "far") as terminal:
            yield LinkSpec(f"serial:{terminal.path}", baud=115_200)

    def commanded(self):
        return len(self.far.commands)

    def driven(self, near):
        bus = Bus(name="line", spec=near)
        return Driven(SerialGate(device_id=101, bus=bus, profile=self.profile, unit=1), beside=(bus.run,))

    async def stir(self):
        self.interrupted = not self.interrupted
        self.barrier.set_photocell(interrupted=self.interrupted, now=time.monotonic())

    def serves(self, report):
        wanted = PointState.ON if self.interrupted else PointState.OFF
        return isinstance(report, PointChanged) and report.point == "photocell" and report.state is wanted

    def is_true(self, report):
        if isinstance(report, PointChanged) and report.point != "photocell":
            return report.state is not PointState.ON
        return not isinstance(report, GateMoved) or report.position in {GatePosition.CLOSED, GatePosition.UNKNOWN}


class TestPolledTagReader(Conformance):
    drives = (PolledTagReader,)
    told_once = True
    lines = ("serial",)
    profile = load_tag_reader_profile(PROFILES / "uhf-iqrfid-5102.toml").model_copy(
        update={"poll_ms": 50, "reply_ms": 300}
    )

    @asynccontextmanager
    async def far_end(self, folder):
        self.tags, self.shown = SerialTags(profile=self.profile), 0
        async with SerialFarEnd(devices={0: self.tags}).serial(path=folder / "far") as terminal:
            yield LinkSpec(f"serial:{terminal.path}", baud=115_200)

    def driven(self, near):
        bus = Bus(name="line", spec=near)
        reader = PolledTagReader(
            device_id=201, bus=bus, profile=self.profile, query=self.profile.poll, unit=0, hold_seconds=30
        )
        return Driven(reader, beside=(bus.run,))

    async def stir(self):
        self.shown += 1
        self.tags.field = (TAGS[self.shown],)

    def serves(self, report):
        return isinstance(report, CardPresented) and report.bits == int.from_bytes(TAGS[self.shown], "big")

    def is_true(self, report):
        shown = {int.from_bytes(tag, "big") for tag in TAGS[: self.shown + 1]}
        return not isinstance(report, CardPresented) or (report.bits in shown and report.bit_length == 96)


class _Speaking(Conformance):
    """A device that says nothing until somebody comes. Each stir is one card, and what a bad line swallows is gone."""

    lines = ("serial",)
    loses_when_silent = False
    numbered = True  # nobody asks

    @asynccontextmanager
    async def far_end(self, folder):
        self.reader, self.shown = CardReaderFarEnd(path=folder / "far"), 100
        self.reader.plug_in()
        try:
            yield LinkSpec(self.reader.url)
        finally:
            self.reader.unplug()

    def says(self, card: int) -> bytes:
        raise NotImplementedError

    async def stir(self):
        self.shown += 1
        self.reader.send([self.says(self.shown)])

    def serves(self, report):
        return isinstance(report, CardPresented) and report.text == f"CARD{self.shown}"

    def is_true(self, report):
        shown = {f"CARD{card}" for card in range(101, self.shown + 1)}
        return not isinstance(report, CardPresented) or report.text in shown


class TestSpeakingTagReader(_Speaking):
    drives = (SpeakingTagReader,)
    told_once = True
    profile = TagReaderProfile.model_validate(
        {
            "family": "serial-line",
            "kind": "tag-reader",
            "name": "STX, seven characters, CRC",
            "replies": {"start": "02", "length": 10, "checks": [{"algorithm": "crc16-x25", "at": -2}]},
            "readings": ["02"],
            "tags": {"first": 1, "length": 7, "tail": 2, "text": True},
        }
    )

    def driven(self, near):
        return Driven(SpeakingTagReader(device_id=201, spec=near, profile=self.profile, unit=0, hold_seconds=5))

    def says(self, card):
        return self.profile.replies.sealed(f"\x02CARD{card}\0\0".encode())


class TestSerialReader(_Speaking):
    drives = (SerialReader,)
    recovers_from = (Fault.DUPLICATED, Fault.ECHOED)  # lines bear no check: a spoilt one cannot be told

    def driven(self, near):
        return Driven(SerialReader(device_id=201, hold_seconds=0, spec=near))

    def says(self, card):
        return f"CARD{card}\r\n".encode()
