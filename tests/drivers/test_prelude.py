"""Preludes of frames on some lines: silence, and a break; and devices that never answer."""

from __future__ import annotations

import asyncio
import fcntl
import time
from contextlib import asynccontextmanager

import pytest
from waiting import until

from drivers.bus.bus import Bus
from drivers.bus.transactions import Exchange, Prelude, Priority
from drivers.contract import DeadlinePassed, LinkError, NotPermitted
from drivers.link import LinkSpec, open_link
from simulation.far_ends.pseudo_terminal import PseudoTerminal

BREAK = 519e-6
WORDS = ("one", "two", "six", "ten")
TIOCSBRK, TIOCCBRK = 0x5427, 0x5428


class Wire:
    """The happenings on a serial port, in order: its breaks as the system was told of them, and its bytes."""

    def __init__(self, path, monkeypatch):
        self.happened: list[tuple[str, float]] = []
        self.terminal = PseudoTerminal(path=path, on_bytes=self._bytes)
        real = fcntl.ioctl
        names = {TIOCSBRK: "break", TIOCCBRK: "end of break"}

        def ioctl(fd, request, *rest):
            if request in names:
                self.happened.append((names[request], time.monotonic()))
            return real(fd, request, *rest)

        monkeypatch.setattr(fcntl, "ioctl", ioctl)

    def _bytes(self, data):
        self.happened.append((data.decode(), time.monotonic()))

    @property
    def order(self):
        return [what for what, _ in self.happened]


@pytest.fixture
async def wire(tmp_path, monkeypatch):
    wire = Wire(tmp_path / "line", monkeypatch)
    yield wire
    wire.terminal.unplug()


@pytest.fixture
def bus(wire, running):
    @asynccontextmanager
    async def make():
        wire.terminal.plug_in()
        bus = Bus(name="line", spec=LinkSpec(f"serial:{wire.terminal.path}", baud=9600))
        async with running(bus.run()):
            await until(lambda: bus.down_reason is None)
            yield bus

    return make


def exchange(word, *, prelude=None, answered=False):
    parse = (lambda received: received or None) if answered else (lambda received: received)
    return Exchange(unit=1, request=word.encode(), parse=parse, tagged=False, answered=answered, prelude=prelude)


async def send(bus, what, *, within=2.0, forbidden=None, timeout=0.3):
    deadline = time.monotonic() + within
    return await bus.transact(what, priority=Priority.COMMAND, deadline=deadline, timeout=timeout, forbidden=forbidden)


async def test_a_break_goes_before_the_frame_and_lasts(bus, wire):
    async with bus() as line:
        for word in WORDS:
            await send(line, exchange(word, prelude=Prelude(break_seconds=BREAK)))
            await until(lambda word=word: wire.order[-1] == word)
    assert wire.order == [what for word in WORDS for what in ("break", "end of break", word)]
    moments = [at for _, at in wire.happened]
    lasted = [end - begin for begin, end in zip(moments[::3], moments[1::3], strict=True)]
    assert min(lasted) >= BREAK


async def test_what_forbids_a_command_is_asked_after_the_break(bus, wire):
    async with bus() as line:
        asked = []

        def forbidden():
            asked.append(list(wire.order))
            return "somebody is under it"

        with pytest.raises(NotPermitted):
            await send(line, exchange("close", prelude=Prelude(break_seconds=BREAK)), forbidden=forbidden)
        assert asked == [["break", "end of break"]]
        await send(line, exchange("after"))
        await until(lambda: "after" in wire.order)
        assert "close" not in wire.order


async def test_a_deadline_that_passes_in_the_silence_before_the_frame(bus, wire):
    async with bus() as line:
        await send(line, exchange("one"))
        await until(lambda: wire.order == ["one"])
        with pytest.raises(DeadlinePassed):
            await send(line, exchange("two", prelude=Prelude(silence=0.6)), within=0.1)
        for word in ("six", "ten"):
            await send(line, exchange(word))
            await until(lambda: word in wire.order)  # noqa: B023 (waited for at once)
        assert wire.order == ["one", "six", "ten"]


async def test_silence_is_kept(bus, wire):
    async with bus() as line:
        began = time.monotonic()
        await send(line, exchange("one"))
        await until(lambda: wire.order == ["one"])
        await send(line, exchange("two", prelude=Prelude(silence=0.1)))
        assert time.monotonic() - began >= 0.1
        await until(lambda: wire.order == ["one", "two"])


async def test_what_is_never_answered_is_done_at_once_and_still_takes_its_time_on_the_line(bus, wire):
    async with bus() as line:
        began = time.monotonic()
        await send(line, exchange("x" * 96))
        await send(line, exchange("two"))
        await until(lambda: wire.order[-1] == "two")
        assert wire.happened[-1][1] - began >= 0.1  # 96 characters at 9600 baud
        await send(line, exchange("x" * 3000))
        with pytest.raises(DeadlinePassed):  # it was done, and is on the line for three seconds
            await send(line, exchange("late"), within=0.05)


async def test_no_break_goes_over_tcp(wire):
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        connection = await open_link(LinkSpec(f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
        with pytest.raises(LinkError, match="no serial port"):
            await connection.send_break(BREAK)
        await connection.close()


async def test_a_port_that_is_closed_in_a_break_is_closed_in_order(wire):
    wire.terminal.plug_in()
    connection = await open_link(LinkSpec(f"serial:{wire.terminal.path}"))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await connection.send_break(0.2)
    await connection.close()
    assert wire.order == ["break", "end of break"]
    with pytest.raises(LinkError):
        await connection.send_break(BREAK)
