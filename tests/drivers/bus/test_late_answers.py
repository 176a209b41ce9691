"""Answers without numbers that come late, over whole ranges of delays: nothing old is ever told as new."""

from __future__ import annotations

import asyncio
import itertools
import random
from pathlib import Path

import pytest
from lagging_line import LaggingLine, on_virtual_time

from drivers.bus.bus import Bus
from drivers.bus.late_answers import OWED_SECONDS, REMEMBERED_SECONDS, Lateness
from drivers.bus.transactions import Exchange
from drivers.contract import DeviceLost, GateMoved, GatePosition, LinkError, PointChanged, PointState
from drivers.link import LinkSpec
from drivers.modbus.frames import decode_request, encode_reply
from drivers.modbus.gate import ModbusGate
from drivers.modbus.profile import load_profile
from drivers.serial_line.gate import SerialGate
from drivers.serial_line.profile import load_gate_profile
from simulation.far_ends.barrier import Barrier
from simulation.far_ends.profile_wiring import relay_module
from simulation.far_ends.serial_devices import SerialBarrier

PROFILES = Path(__file__).parents[3] / "drivers" / "profiles"
RELAY = load_profile(PROFILES / "relay-barrier.toml")
LINE_BARRIER = load_gate_profile(PROFILES / "line-barrier.toml")
SPEC = LinkSpec("tcp://127.0.0.1:1", baud=115_200)


class Modbus:
    def __init__(self):
        self.barrier = Barrier()
        self.wiring = relay_module(self.barrier)

    def answers(self, data):
        asked = decode_request("rtu", data)
        now = asyncio.get_running_loop().time()
        reply = (
            self.wiring.write(asked.request, now=now)
            if hasattr(asked.request, "value")
            else self.wiring.read(asked.request, now=now)
        )
        return [encode_reply("rtu", asked=asked, reply=reply)]

    def gate(self, bus, monotonic):
        return ModbusGate(device_id=101, bus=bus, profile=RELAY, unit=1, framing="rtu", monotonic=monotonic)


class Serial:
    def __init__(self):
        self.barrier = Barrier()
        self.device = SerialBarrier(profile=LINE_BARRIER, barrier=self.barrier)

    def answers(self, data):
        what = self.device.requests(unit=1)[data]
        return [self.device.answer(what, unit=1, refuses=False, now=asyncio.get_running_loop().time())]

    def gate(self, bus, monotonic):
        return SerialGate(device_id=101, bus=bus, profile=LINE_BARRIER, unit=1, monotonic=monotonic)


class Scene:
    """A gate whose line begins to lag; then the closing loop comes on; then the line is well again."""

    def __init__(self, family):
        self.far = family()
        self.line = LaggingLine(self.far.answers)
        self.reports = []
        self.told_at = []
        self.reasons = []

    def play(self, monkeypatch, *, lag, before, commands=False):
        async def scene(loop):
            self.loop = loop
            bus = Bus(name="line", spec=SPEC, monotonic=loop.time)
            gate = self.far.gate(bus, loop.time)
            tasks = [loop.create_task(body) for body in (bus.run(), gate.run(self.hear))]
            await asyncio.sleep(3.0)
            assert self.last(PointChanged).state is not PointState.UNKNOWN
            self.line.lag = lag
            await asyncio.sleep(before)
            self.on_at = loop.time()
            self.far.barrier.set_closing_loop(occupied=True, now=self.on_at)
            until = loop.time() + 14.0
            while loop.time() < until:
                await asyncio.sleep(0.7)
                if commands:
                    tasks.append(loop.create_task(self.command(gate.stop(deadline=loop.time() + 2.0))))
            self.line.lag = 0.0
            self.well_at = loop.time()
            await asyncio.sleep(25.0)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

        on_virtual_time(monkeypatch, self.line, scene)

    async def command(self, body):
        try:
            await body
        except LinkError as error:
            self.reasons.append(str(error))

    def hear(self, report):
        self.reports.append(report)
        self.told_at.append(self.loop.time())

    def last(self, kind):
        return next(report for report in reversed(self.reports) if isinstance(report, kind))

    def false(self):
        """Reports that the loop is free, although it was not when they were asked for."""
        return [
            report
            for report in self.reports
            if isinstance(report, PointChanged)
            and report.point == "closing_loop"
            and report.state is PointState.OFF
            and report.at > self.on_at
        ]

    def stalest(self):
        """The greatest age that a state had when it was told."""
        known = (
            told - report.at
            for told, report in zip(self.told_at, self.reports, strict=True)
            if (isinstance(report, PointChanged) and report.state is not PointState.UNKNOWN)
            or (isinstance(report, GateMoved) and report.position is not GatePosition.UNKNOWN)
        )
        return max(known)

    def back_after(self):
        """Seconds from the end of the lag to the first proof."""
        return next(
            told - self.well_at
            for told, report in zip(self.told_at, self.reports, strict=True)
            if told > self.well_at and isinstance(report, PointChanged) and report.point == "closing_loop"
        )


@pytest.mark.parametrize("family", [Modbus, Serial])
@pytest.mark.parametrize("lag", [0.2, 0.31, 0.5, 0.7, 1.0, 1.15, 1.3, 1.6, 2.2, 3.4, 5.2, 6.1, 8.2])
@pytest.mark.parametrize("commands", [False, True], ids=["watched", "commanded"])
def test_a_line_that_lags_says_nothing_old_as_new(monkeypatch, family, lag, commands):
    scene = Scene(family)
    scene.play(monkeypatch, lag=lag, before=0.1 + 5 * (lag * 7.3 % 1.0), commands=commands)
    assert scene.false() == []
    assert scene.stalest() < 0.35
    assert scene.back_after() < max(4.0, 1.5 * lag + 3.0)


@pytest.mark.parametrize("seed", range(8))
def test_nor_does_one_that_lags_now_more_now_less(monkeypatch, seed):
    dice = random.Random(seed)
    least, most = sorted((dice.uniform(0.0, 3.0), dice.uniform(0.0, 5.0)))
    scene = Scene(Modbus)
    scene.play(monkeypatch, lag=iter(lambda: dice.uniform(least, most), None), before=dice.uniform(0.05, 6.0))
    assert scene.false() == []
    assert scene.stalest() < 0.35


@pytest.mark.parametrize("family", [Modbus, Serial])
def test_one_lost_answer_loses_no_device(monkeypatch, family):
    scene = Scene(family)

    async def body(loop):
        scene.loop = loop
        bus = Bus(name="line", spec=SPEC, monotonic=loop.time)
        tasks = [loop.create_task(bus.run()), loop.create_task(scene.far.gate(bus, loop.time).run(scene.hear))]
        await asyncio.sleep(3.0)
        for _ in range(20):
            scene.line.loses = 1
            await asyncio.sleep(3.0)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    on_virtual_time(monkeypatch, scene.line, body)
    assert not [report for report in scene.reports if isinstance(report, DeviceLost)]
    told = [report.at for report in scene.reports if isinstance(report, GateMoved)]
    assert max(later - earlier for earlier, later in itertools.pairwise(told)) < 2.0


def test_a_line_that_is_late_is_told_by_that(monkeypatch):
    scene = Scene(Modbus)
    scene.play(monkeypatch, lag=1.15, before=1.0, commands=True)
    assert any("answers too late, 1.2 s after it was asked" in reason for reason in scene.reasons)


# ---- the judge alone


def read(name="status", *, unit=1, answer=b"A"):
    """A request that any single `answer` satisfies."""
    return Exchange(unit, name.encode(), lambda data: data if answer in data else None, tagged=False)


def judged(lateness, exchange, received=b"A", *, asked_at, took=0.01, is_command=False):
    return lateness.is_proven(exchange, received, is_command=is_command, asked_at=asked_at, at=asked_at + took)


def test_what_nobody_owes_is_believed():
    assert judged(Lateness(), read(), asked_at=10.0)


def test_what_may_be_owed_is_believed_once_nothing_followed():
    lateness = Lateness()
    lateness.unanswered(read(), asked_at=10.0, now=10.3)
    assert not judged(lateness, read(), asked_at=10.4)
    assert 0.5 < lateness.rest_left(1, now=10.41) < 0.8
    assert lateness.rest_left(2, now=10.41) == 0.0
    assert lateness.rest_left(1, now=11.2) == 0.0
    assert judged(lateness, read(), asked_at=11.2)


def test_what_follows_shows_that_the_line_is_late():
    lateness = Lateness()
    lateness.unanswered(read(), asked_at=10.0, now=10.3)
    assert not judged(lateness, read(), asked_at=10.4, took=0.1)
    assert not lateness.take(b"half of", now=10.8)
    assert lateness.take(b"A", now=10.9)
    assert lateness.late_by(1, now=10.9) == pytest.approx(0.5)
    assert judged(lateness, read(), asked_at=11.0), "nothing is owed any more"
    lateness.unanswered(read(), asked_at=12.0, now=12.3)
    assert lateness.rest_left(1, now=12.3) == pytest.approx(0.7), (
        "it was late by 0.5 s, and may be by half as much more"
    )
    assert lateness.late_by(1, now=10.9 + REMEMBERED_SECONDS + 1) == 0.0


def test_an_answer_of_another_form_proves_itself_and_ends_what_was_owed():
    lateness = Lateness()
    lateness.unanswered(read(), asked_at=10.0, now=10.3)
    assert judged(lateness, read("other", answer=b"B"), b"B", asked_at=10.4)
    assert judged(lateness, read(), asked_at=10.5)


def test_late_answers_are_found_beside_those_of_other_units():
    lateness = Lateness()
    lateness.unanswered(read(), asked_at=10.0, now=10.3)
    lateness.take_beside(b"B A", unit=2, now=10.5)
    assert judged(lateness, read(), asked_at=10.6)


def test_a_command_that_is_given_again_is_acknowledged_either_way():
    lateness = Lateness()
    lateness.unanswered(read("open"), asked_at=10.0, now=10.3)
    assert judged(lateness, read("open"), asked_at=10.4, is_command=True)
    assert lateness.rest_left(1, now=10.5) > 0, "and yet nothing is proven"
    assert not judged(lateness, read("close"), asked_at=10.5, is_command=True)


def test_after_long_enough_nothing_is_owed():
    lateness = Lateness()
    lateness.unanswered(read(), asked_at=10.0, now=10.3)
    assert judged(lateness, read(), asked_at=10.0 + OWED_SECONDS + 0.1)
