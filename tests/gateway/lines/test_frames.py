"""Frames of lines at work, and what of them nobody is shown."""

from __future__ import annotations

import asyncio
import timeit

import pytest
from waiting import until

from drivers.bus.bus import Bus
from drivers.bus.recent import KEPT, RecentTurns
from drivers.bus.transactions import Exchange, Priority
from drivers.contract import DriverError
from drivers.link import LinkSpec
from drivers.modbus.frames import Read, Table
from drivers.modbus.unit_requests import ModbusRequests
from gateway.domain.errors import NotFoundError
from gateway.lines.frames import LineFrames, PolledLine
from gateway.runtime.clock import SystemClock
from simulation.far_ends.barrier import Barrier
from simulation.far_ends.line_devices import Misbehaviour
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import relay_module

INPUTS = Read(Table.DISCRETE_INPUT, 0, 6)
GATE, TAGS = 1, 9
CARD = b"CARD0012345678"


@pytest.fixture
async def yard(tmp_path):
    """A line with a barrier at address 1, and a way to ask it."""
    far_end = ModbusFarEnd(units={GATE: relay_module(Barrier())}, framing="rtu")
    async with far_end.serial(path=tmp_path / "port") as terminal, asyncio.TaskGroup() as group:
        bus = Bus(name="yard", spec=LinkSpec(f"serial:{terminal.path}", baud=115_200))
        serving = group.create_task(bus.run())
        await until(lambda: bus.down_reason is None)
        yield bus, far_end, terminal
        serving.cancel()


def frames_of(bus, *, card_units=frozenset(), framing="rtu"):
    line = PolledLine(
        bus=bus, framing=framing, names={GATE: ("Barrier",)}, card_units=card_units, is_moving=lambda: False
    )
    return LineFrames(lines={"yard": line}, clock=SystemClock())


async def ask(bus, unit=GATE):
    requests = ModbusRequests(bus=bus, unit=unit, framing="rtu", timeout=0.1)
    loop = asyncio.get_running_loop()
    try:
        await requests.read(INPUTS, deadline=loop.time() + 5)
    except DriverError as error:
        return str(error)
    return ""


async def send_beside(terminal, bus, frames, data):
    """Send what nobody asked for until it is seen as a stray: what meets a request under way counts as its answer."""
    async with asyncio.timeout(20):
        while not [one for one in frames.since("yard", 0) if one.purpose == "stray"]:
            terminal.write(data)
            await ask(bus, unit=78)
            await asyncio.sleep(0.01)  # a unit that rests is refused at once, and the line must have its turn


async def test_each_kind_of_outcome_has_its_words(yard):
    bus, far_end, terminal = yard
    frames = frames_of(bus)
    await ask(bus)
    far_end.misbehave(GATE, Misbehaviour(exception=4))
    await ask(bus)
    far_end.misbehave(GATE, Misbehaviour(corrupt=True))
    await ask(bus)
    await ask(bus, unit=77)
    await send_beside(terminal, bus, frames, bytes.fromhex("4d 02 01 00"))
    shown = frames.since("yard", 0)
    assert [(one.unit, one.asked, one.told.split(":")[0], one.good) for one in shown[:4]] == [
        (GATE, "read inputs 0-5", "1 0 0 0 0 0", True),
        (GATE, "read inputs 0-5", "refused", True),
        (GATE, "read inputs 0-5", "6 bytes that are no answer", False),
        (77, "read inputs 0-5", shown[3].told, False),
    ]
    waited = int(shown[3].told.removeprefix("no answer within ").removesuffix(" ms"))
    assert 100 <= waited == pytest.approx(shown[3].milliseconds, abs=1)
    assert shown[0].devices == ("Barrier",)
    assert shown[0].sent.startswith("01 02 00 00 00 06")
    stray = next(one for one in shown if one.purpose == "stray")
    assert stray.told == "4 bytes that nobody asked for, as from unit 77"
    assert frames.since("yard", shown[-1].number) == ()
    assert [one.number for one in frames.since("yard", shown[0].number)] == [one.number for one in shown[1:]]
    with pytest.raises(NotFoundError):
        frames.since("garage", 0)


async def test_numbers_of_cards_are_never_shown(yard):
    bus, far_end, terminal = yard
    far_end.take = lambda buffer, outlet: (buffer.clear(), outlet.send(CARD))
    answered = await bus.transact(
        Exchange(TAGS, b"\x05Q", lambda received: received or None, tagged=False),
        priority=Priority.POLL,
        deadline=asyncio.get_running_loop().time() + 5,
    )
    assert answered.reply
    far_end.take = lambda buffer, _: buffer.clear()
    await send_beside(terminal, bus, frames_of(bus, card_units=frozenset({TAGS})), CARD)
    for framing in (None, "rtu"):
        shown = frames_of(bus, card_units=frozenset({TAGS}), framing=framing).since("yard", 0)
        assert [one.unit for one in shown][:1] == [TAGS]
        assert "stray" in [one.purpose for one in shown]
        for secret in (CARD.decode(), CARD.hex(), CARD.hex(" ")):
            assert secret not in str(shown)


async def test_a_card_that_meets_the_question_to_another_unit_is_not_shown(yard):
    bus, far_end, _ = yard
    far_end.take = lambda buffer, outlet: (buffer.clear(), outlet.send(CARD))
    assert await ask(bus)
    for framing in (None, "rtu"):
        (shown,) = frames_of(bus, card_units=frozenset({TAGS}), framing=framing).since("yard", 0)[:1]
        assert (shown.unit, shown.good, shown.received) == (GATE, False, "")
        for secret in (CARD.decode(), CARD.hex(), CARD.hex(" ")):
            assert secret not in str(shown)


async def test_text_is_shown_as_text(yard):
    bus, _, _ = yard
    parse = bytes.decode
    await bus.transact(
        Exchange(GATE, b"$01OPEN\r", parse, tagged=False, answered=False),
        priority=Priority.POLL,
        deadline=asyncio.get_running_loop().time() + 5,
    )
    (shown,) = frames_of(bus, framing=None).since("yard", 0)
    assert (shown.asked, shown.told) == ("$01OPEN·", "nothing")


def test_a_line_keeps_a_bounded_number_and_pays_microseconds():
    recent = RecentTurns()
    times = timeit.repeat(
        lambda: recent.note(1.0, took=0.01, unit=1, priority=Priority.POLL, request=b"12345678", received=b"123456"),
        number=10_000, repeat=5,
    )  # fmt: skip
    assert min(times) / 10_000 < 50e-6
    print(f"{min(times) / 10_000 * 1e6:.2f} us a transaction")
    assert len(recent.since(0)) == KEPT
