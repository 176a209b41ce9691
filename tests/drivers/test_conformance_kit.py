"""The conformance kit itself: each of its rules can fail, and no driver is forgotten."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import inspect
import pkgutil
import re
import time
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from conformance import Conformance, Driven
from faulty_line import Fault

import drivers
from drivers.bus.bus import Bus
from drivers.contract import (
    CardPresented,
    DeadlinePassed,
    DeviceConnected,
    DeviceLost,
    Driver,
    GateMoved,
    GatePosition,
    LineDown,
    LinkError,
    NotPermitted,
)
from drivers.gates.http_gate import HttpGate
from drivers.link import LinkSpec, open_link

pytestmark = pytest.mark.long("every rule of the kit against every driver, in real time-outs")

EXEMPT = {
    "drivers.gates.limits.LimitedGate": "it has no line of its own: it wraps a gate that the kit judges",
    "drivers.plates.pushed.PushedPlates": "it opens nothing: its camera connects to a port of ours",
}
"""Drivers that the kit cannot judge, and why."""

# ---- no driver is forgotten


def is_driver(value: object) -> bool:
    """Return whether a class is a driver by `drivers.contract.Driver`: it runs with reports."""
    if not inspect.isclass(value) or inspect.isabstract(value) or getattr(value, "_is_protocol", False):
        return False
    run = getattr(value, "run", None)
    return inspect.iscoroutinefunction(run) and "reports" in inspect.signature(run).parameters


def all_drivers() -> dict[str, type]:
    found: dict[str, type] = {}
    for module in pkgutil.walk_packages(drivers.__path__, "drivers."):
        for value in vars(importlib.import_module(module.name)).values():
            if is_driver(value):
                found[f"{value.__module__}.{value.__qualname__}"] = value
    return found


def judged_drivers() -> set[str]:
    """Return the drivers that the kit's tests name; `at_work` holds each of them to it."""
    judged: set[str] = set()
    for number, path in enumerate(sorted(Path(__file__).parent.glob("*/test_*conformance*.py"))):
        spec = importlib.util.spec_from_file_location(f"looked_at_{number}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, value in vars(module).items():
            if name.startswith("Test") and inspect.isclass(value) and issubclass(value, Conformance):
                judged |= {f"{driver.__module__}.{driver.__qualname__}" for driver in value.drives}
    return judged


def test_every_driver_is_under_the_kit_or_exempt_with_a_reason():
    known = set(all_drivers())
    assert len(known) >= 10, "the walk finds them"
    assert judged_drivers() | set(EXEMPT) == known
    assert not judged_drivers() & set(EXEMPT), "what is judged needs no exemption"


def test_a_driver_is_told_from_what_is_none():
    assert is_driver(Sound)
    assert not is_driver(Driver)
    assert not is_driver(HttpGate), "a base is judged by what derives from it"
    assert not is_driver(Bus)


# ---- each rule can fail

FRAME = 5
START, CLOSED = 0xA5, 1
COMMAND = 0x21


class Device:
    """A gate with a reader: to `? number sum` it says `start number position card sum`; `! number sum` commands it."""

    def __init__(self):
        self.card = 0
        self.commanded = 0

    async def serve(self, reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                asked = await reader.readexactly(3)
                if asked[0] == COMMAND:
                    self.commanded += 1
                    continue
                body = bytes((START, asked[1], CLOSED, self.card))
                writer.write(body + bytes((sum(body) & 0xFF,)))
        writer.close()


class Sound:
    """A driver for it that keeps every rule. The others each break one."""

    poll_seconds = 0.02
    reply_seconds = 0.3

    def __init__(self, spec: LinkSpec):
        self.device_id = 7
        self.spec = spec
        self.is_online = None
        self.card = 0
        self.connection = None

    async def run(self, reports):
        while True:
            try:
                self.connection = connection = await open_link(self.link())
                self.opened()
                try:
                    await self.ask_for_ever(connection, reports)
                finally:
                    await connection.close()
            except LinkError as error:
                self.lost(str(error), reports)
            await self.after_loss()

    def opened(self):
        pass

    async def open(self, *, deadline, forbidden=None):
        await self.command(deadline, forbidden or (lambda: ""))

    async def close(self, *, deadline, forbidden):
        await self.command(deadline, forbidden)

    async def stop(self, *, deadline, forbidden=None):
        await self.command(deadline, forbidden or (lambda: ""))

    async def command(self, deadline, forbidden):
        self.expect_line()
        self.expect_time(deadline)
        self.expect_permission(forbidden)
        self.send()

    def expect_line(self):
        if not self.is_online or self.connection.lost:
            raise LineDown("it is away")

    def expect_time(self, deadline):
        if time.monotonic() >= deadline:
            raise DeadlinePassed("too late")

    def expect_permission(self, forbidden):
        if reason := forbidden():
            raise NotPermitted(reason)

    def send(self):
        self.connection.write(bytes((COMMAND, 1, COMMAND + 1)))

    def link(self):
        return self.spec

    async def after_loss(self):
        await asyncio.sleep(0.05)  # the pace of this driver

    async def ask_for_ever(self, connection, reports):
        number, buffer = 0, bytearray()
        while True:
            number = (number + 1) % 256
            asked = bytes((0x3F, number))
            connection.write(asked + bytes((sum(asked) & 0xFF,)))
            try:
                async with asyncio.timeout(self.reply_seconds):
                    frame = await self.answer(connection, buffer, number)
            except TimeoutError:
                self.silent(reports)
                buffer.clear()
                continue
            self.told(frame, reports)
            await self.pause()

    async def pause(self):
        await asyncio.sleep(self.poll_seconds)  # likewise

    async def answer(self, connection, buffer, number):
        while True:
            while len(buffer) >= FRAME:
                frame = bytes(buffer[:FRAME])
                if self.is_answer(frame, number):
                    del buffer[:FRAME]
                    return frame
                del buffer[:1]
            buffer += (await connection.read()).data

    def is_answer(self, frame, number):
        return frame[0] == START and frame[1] == number and frame[-1] == sum(frame[:-1]) & 0xFF

    def told(self, frame, reports):
        now = time.monotonic()
        if self.is_online is not True:
            self.is_online = True
            reports(DeviceConnected(7, now))
        reports(GateMoved(7, GatePosition.CLOSED if frame[2] == CLOSED else GatePosition.OPEN, now))
        if frame[3] != self.card:
            self.card = frame[3]
            reports(CardPresented(7, 8, self.card, "", now))

    def silent(self, reports):
        self.lost("it does not answer", reports)

    def lost(self, reason, reports):
        if self.is_online is not False:
            self.is_online = False
            reports(DeviceLost(7, reason, time.monotonic()))


class SleepsInTheLoop(Sound):
    async def pause(self):
        time.sleep(0.006)  # noqa: TID251 (the fault)
        await super().pause()


class ComputesInTheLoop(Sound):
    async def pause(self):
        until = time.thread_time() + 0.006
        while time.thread_time() < until:
            pass
        await super().pause()


class GivesUpWhenAbsent(Sound):
    async def after_loss(self):
        await asyncio.get_running_loop().create_future()


class GivesUpOnceLost(Sound):
    async def after_loss(self):
        if self.card:
            await asyncio.get_running_loop().create_future()
        await super().after_loss()


class KeepsTheOldPort(Sound):
    port = None

    def link(self):
        path = Path(self.spec.url.removeprefix("serial:"))
        if self.port is None and path.exists():
            self.port = path.resolve()
        return LinkSpec(f"serial:{self.port or path}")


class SaysLossAgainAndAgain(Sound):
    def lost(self, reason, reports):
        self.is_online = False
        reports(DeviceLost(7, reason, time.monotonic()))


class TakesPiecesForAnswers(Sound):
    async def answer(self, connection, buffer, number):
        while True:
            frame = bytes((await connection.read()).data)
            if len(frame) == FRAME and self.is_answer(frame, number):
                return frame


class IsImpatient(Sound):
    reply_seconds = 0.03


class TakesSpoiltAnswers(Sound):
    def is_answer(self, frame, number):
        return frame[0] == START


class TakesEchoes(Sound):
    async def answer(self, connection, buffer, number):
        data = (await connection.read()).data
        return data[:FRAME].ljust(FRAME, b"\0")


class TakesOldAnswers(Sound):
    def is_answer(self, frame, number):
        return frame[0] == START and frame[-1] == sum(frame[:-1]) & 0xFF


class TellsAllItHears(Sound):
    def told(self, frame, reports):
        self.card = 0
        super().told(frame, reports)


class TellsOldAnswersAsNew(TellsAllItHears):
    def is_answer(self, frame, number):
        return frame[0] == START and frame[-1] == sum(frame[:-1]) & 0xFF

    def silent(self, reports):
        pass  # it listens on, and so hears each answer after the next question


class NeverSaysLoss(Sound):
    def silent(self, reports):
        pass


class TakesItsTimeToStop(Sound):
    async def run(self, reports):
        try:
            await super().run(reports)
        finally:
            await asyncio.sleep(1.1)  # the fault


class AsksNobody(Sound):
    def expect_permission(self, forbidden):
        pass


class AsksAfterwards(Sound):
    async def command(self, deadline, forbidden):
        self.expect_line()
        self.expect_time(deadline)
        self.send()
        self.expect_permission(forbidden)


class HasAllTheTime(Sound):
    def expect_time(self, deadline):
        pass


class KeepsCommands(Sound):
    waits = False

    async def command(self, deadline, forbidden):
        try:
            await super().command(deadline, forbidden)
        except LineDown:
            self.waits = True
            raise

    def opened(self):
        if self.waits:
            self.send()


class SaysSentToNobody(Sound):
    async def command(self, deadline, forbidden):
        with contextlib.suppress(LineDown):
            await super().command(deadline, forbidden)


class TestSound(Conformance):
    """The sound driver passes the whole kit, so that each fault below is found for what it is."""

    drives = (Sound,)
    told_once = True

    @asynccontextmanager
    async def far_end(self, folder):
        self.device = Device()
        server = await asyncio.start_server(self.device.serve, "127.0.0.1", 0)
        async with server:
            yield LinkSpec(f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}")

    def driven(self, near):
        return Driven(self.drives[0](near))

    def commanded(self):
        return self.device.commanded

    async def stir(self):
        self.device.card += 1

    def serves(self, report):
        return isinstance(report, CardPresented) and report.bits == self.device.card

    def denies(self, report):
        return isinstance(report, CardPresented) and report.bits < self.device.card

    def is_true(self, report):
        if isinstance(report, CardPresented):
            return 1 <= report.bits <= self.device.card
        return not isinstance(report, GateMoved) or report.position is GatePosition.CLOSED


HOLDS = "test_holds_the_loop_for_no_time_and_stops_within_a_second"
LATE = "test_connects_late"
BACK = "test_comes_back_after_it_was_pulled_out"
OTHER_PORT = "test_comes_back_as_another_port_under_the_same_name"
STEADY = "test_does_not_mind"
SURVIVES = "test_survives"
SILENT = "test_is_lost_in_time_when_it_falls_silent"
LAGS = "test_tells_nothing_old_as_new_on_a_line_that_lags"
FORBIDDEN = "test_sends_no_command_that_is_forbidden"
LATE_COMMAND = "test_sends_no_command_after_its_deadline"
AWAY = "test_keeps_no_command_for_a_line_that_comes_back"

FAULTS = [
    (SleepsInTheLoop, "tcp", HOLDS, (), "the event loop stood still"),
    (ComputesInTheLoop, "tcp", HOLDS, (), "the event loop stood still"),
    (GivesUpWhenAbsent, "tcp", LATE, (), "connected: not within"),
    (GivesUpWhenAbsent, "serial", LATE, (), "connected: not within"),
    (GivesUpOnceLost, "tcp", BACK, (), "connected: not within"),
    (GivesUpOnceLost, "serial", BACK, (), "connected: not within"),
    (KeepsTheOldPort, "serial", OTHER_PORT, (), "connected: not within"),
    # Pieces that come while nobody reads are read as one: by chance it connects, and is found out a moment later.
    (TakesPiecesForAnswers, "serial", STEADY, (Fault.BYTEWISE,), "ed: not within|not to mind"),
    (TakesPiecesForAnswers, "serial", STEADY, (Fault.SPLIT,), "ed: not within|not to mind"),
    (IsImpatient, "serial", STEADY, (Fault.LATE,), "connected: not within"),
    (TakesSpoiltAnswers, "serial", SURVIVES, (Fault.CORRUPTED,), "the device never said so"),
    (TakesEchoes, "serial", SURVIVES, (Fault.ECHOED,), "the device never said so"),
    (TakesOldAnswers, "serial", SURVIVES, (Fault.DUPLICATED,), "old answers were taken for new ones"),
    (TellsAllItHears, "serial", SURVIVES, (Fault.DUPLICATED,), "one happening was reported"),
    (TellsOldAnswersAsNew, "serial", LAGS, (), "told as fresh"),
    (NeverSaysLoss, "serial", SILENT, (), "lost: not within"),
    (SaysLossAgainAndAgain, "tcp", LATE, (), "lost is said once"),
    (TakesItsTimeToStop, "tcp", HOLDS, (), "stopping took"),
    (AsksNobody, "tcp", FORBIDDEN, (), "DID NOT RAISE"),
    (AsksAfterwards, "serial", FORBIDDEN, (), "a forbidden command was sent"),
    (HasAllTheTime, "tcp", LATE_COMMAND, (), "DID NOT RAISE"),
    (KeepsCommands, "tcp", AWAY, (), "was kept for a device that was away"),
    (KeepsCommands, "serial", AWAY, (), "was kept for a device that was away"),
    (SaysSentToNobody, "tcp", AWAY, (), "DID NOT RAISE"),
]


@pytest.mark.parametrize(
    ("driver", "line", "rule", "bad", "words"),
    FAULTS,
    ids=[f"{driver.__name__}-{line}-{'-'.join((rule, *bad))}" for driver, line, rule, bad, _ in FAULTS],
)
async def test_a_driver_that_breaks_a_rule_is_found(driver, line, rule, bad, words, tmp_path):
    kit = TestSound()
    kit.drives = (driver,)
    kit.told_once = driver is TellsAllItHears  # some faults break this rule, too, and before the one looked for
    kit.fresh_within = 3 if driver is TakesOldAnswers else None  # likewise
    kit.offline_seconds = kit.online_seconds = 1.0
    with pytest.raises(BaseException) as caught:  # noqa: PT011 (what failed is looked at, in groups too)
        await getattr(kit, rule)(tmp_path, line, *bad)
    assert any(re.search(words, str(error)) for error in leaves(caught.value)), list(leaves(caught.value))


async def test_a_driver_that_the_kit_was_not_told_of_is_not_judged_in_secret(tmp_path):
    kit = TestSound()
    kit.driven = lambda near: Driven(NeverSaysLoss(near))
    with pytest.raises(ExceptionGroup) as caught:
        await kit.test_connects_late(tmp_path, "tcp")
    assert any("names the driver under test" in str(error) for error in leaves(caught.value))


def test_every_rule_of_the_kit_has_a_driver_that_breaks_it():
    rules = {name for name, _ in inspect.getmembers(Conformance, inspect.isfunction) if name.startswith("test_")}
    assert {rule for _, _, rule, _, _ in FAULTS} == rules
    assert {fault for _, _, _, bad, _ in FAULTS for fault in bad} == {
        *Conformance.steady_under,
        *Conformance.recovers_from,
    }


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The failures in a group of groups, and what they came from."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error
    if error.__context__ is not None:
        yield from leaves(error.__context__)
