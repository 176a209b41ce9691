"""A Hikvision barrier over real HTTP, well-behaved and not. What counts most: no command has its effect twice."""

import asyncio
import logging
import time
from contextlib import asynccontextmanager

import pytest
from free_ports import free_port
from waiting import soon

from drivers.contract import (
    DeadlinePassed,
    DeviceConnected,
    DeviceFault,
    DeviceLost,
    GateMoved,
    GatePosition,
    LineDown,
    LinkError,
    NotPermitted,
)
from drivers.hikvision.barrier import HikvisionBarrier
from drivers.hikvision.isapi import BarrierControl
from drivers.http_session import DeviceAccount
from simulation.far_ends.barrier import Barrier
from simulation.far_ends.hikvision_barrier import HikvisionBarrierFarEnd

PASSWORD = "correct-horse-battery"
ACCOUNT = DeviceAccount("gateway", PASSWORD)


def nothing():
    return ""


def gate_at(port, account=ACCOUNT, *, answer_seconds=0.5):
    url = f"http://127.0.0.1:{port}"
    return HikvisionBarrier(device_id=101, url=url, account=account, poll_seconds=0.1, answer_seconds=answer_seconds)


class Field:
    def __init__(self, barrier, far_end, gate):
        self.barrier = barrier
        self.far_end = far_end
        self.gate = gate


@pytest.fixture
def field(running, listener):
    @asynccontextmanager
    async def make(*, opened=False):
        barrier = Barrier(travel_seconds=0.2)
        if opened:
            barrier.force(opening=1.0, now=time.monotonic())
        far_end = HikvisionBarrierFarEnd(barrier=barrier, account=ACCOUNT)
        async with far_end.serve() as port:
            gate = gate_at(port)
            async with running(gate.run(listener)):
                await listener.until(lambda: listener.of(GateMoved))
                try:
                    yield Field(barrier, far_end, gate)
                finally:
                    far_end.speaking.set()

    return make


async def test_opens_and_closes_and_says_where_it_stands(field, listener):
    async with field() as site:
        assert listener.positions() == [GatePosition.CLOSED]
        await site.gate.open(deadline=soon())
        await listener.until(lambda: listener.positions()[-1] is GatePosition.OPEN)
        await site.gate.close(deadline=soon(), forbidden=nothing)
        await listener.until(lambda: listener.positions()[-1] is GatePosition.CLOSED)
    assert site.far_end.obeyed == [BarrierControl.OPEN, BarrierControl.CLOSE]
    assert len(listener.of(DeviceConnected)) == 1


async def test_position_is_told_again_while_nothing_changes(field, listener):
    async with field():
        await listener.until(lambda: len(listener.of(GateMoved)) == 3)
    first, second, third = (moved.at for moved in listener.of(GateMoved))
    assert second - first < 2.0
    assert third - second < 2.0


async def test_arm_between_its_limits_is_of_unknown_position(field, listener):
    async with field() as site:
        site.barrier.force(opening=0.5, now=time.monotonic())
        await listener.until(lambda: listener.positions()[-1] is GatePosition.UNKNOWN)


async def test_deadline_that_passed_sends_nothing(field):
    async with field() as site:
        with pytest.raises(DeadlinePassed):
            await site.gate.open(deadline=time.monotonic() - 0.1)
        assert site.far_end.obeyed == []


async def test_locked_barrier_acknowledges_and_is_not_said_to_move(field, listener):
    async with field() as site:
        await site.gate.lock(deadline=soon())
        await site.gate.open(deadline=soon())
        await listener.until(lambda: len(listener.of(GateMoved)) >= 2)
        assert set(listener.positions()) == {GatePosition.CLOSED}
        await site.gate.unlock(deadline=soon())
        await site.gate.open(deadline=soon())
        await listener.until(lambda: listener.positions()[-1] is GatePosition.OPEN)


async def test_line_that_breaks_after_the_command_is_not_commanded_again(field):
    async with field() as site:
        site.far_end.hanging_up = True
        with pytest.raises(LinkError) as raised:
            await site.gate.open(deadline=soon())
        assert not isinstance(raised.value, LineDown)  # the barrier may have obeyed
        site.far_end.hanging_up = False
        await site.gate.close(deadline=soon(), forbidden=nothing)  # a second open would come before it
        assert site.far_end.obeyed == [BarrierControl.OPEN, BarrierControl.CLOSE]


async def test_changed_challenge_costs_a_round_and_no_second_effect(field):
    async with field() as site:
        site.far_end.guard.expire()
        before = site.far_end.guard.turned_down
        await site.gate.open(deadline=soon())
        assert site.far_end.guard.turned_down > before
        assert site.far_end.obeyed == [BarrierControl.OPEN]


async def test_what_forbids_a_close_is_asked_before_each_attempt(field):
    answers = iter(["", "a vehicle is on the closing loop"])
    async with field(opened=True) as site:
        site.far_end.guard.expire()
        with pytest.raises(NotPermitted, match="closing loop"):
            await site.gate.close(deadline=soon(), forbidden=lambda: next(answers))
        assert site.far_end.obeyed == []
        await site.gate.close(deadline=soon(), forbidden=nothing)
        assert site.far_end.obeyed == [BarrierControl.CLOSE]


@pytest.mark.parametrize("order", ["open", "close"])
async def test_forbidden_command_sends_nothing(field, order):
    asked = []
    async with field(opened=order == "close") as site:
        before = site.far_end.guard.turned_down
        with pytest.raises(NotPermitted):
            await getattr(site.gate, order)(deadline=soon(), forbidden=lambda: asked.append(1) or "no")
        assert asked == [1]
        assert (site.far_end.obeyed, site.far_end.guard.turned_down) == ([], before)


async def test_refusal_is_a_fault_of_the_device(field):
    async with field() as site:
        site.far_end.refusing = True
        with pytest.raises(DeviceFault, match="deviceBusy"):
            await site.gate.open(deadline=soon())


async def test_stop_is_refused(field):
    async with field() as site:
        with pytest.raises(DeviceFault, match="stop"):
            await site.gate.stop(deadline=soon())


async def test_barrier_that_falls_silent_is_lost_within_its_budget(field, listener):
    async with field() as site:
        site.far_end.speaking.clear()
        await listener.until(lambda: listener.of(DeviceLost))
        with pytest.raises(LineDown):
            await site.gate.open(deadline=soon())
        site.far_end.speaking.set()
        await listener.until(lambda: len(listener.of(DeviceConnected)) == 2)
        assert site.far_end.obeyed == []


async def test_silence_after_a_command_is_of_unknown_outcome(field):
    async with field() as site:
        site.far_end.speaking.clear()
        with pytest.raises(LinkError) as raised:
            await site.gate.open(deadline=soon(0.2))
        assert not isinstance(raised.value, LineDown)


async def test_barrier_that_is_not_there(running, listener):
    port = free_port()
    gate = gate_at(port)
    with pytest.raises(LineDown):
        await gate.open(deadline=soon())
    async with running(gate.run(listener)):
        await listener.until(lambda: listener.of(DeviceLost))
        far_end = HikvisionBarrierFarEnd(barrier=Barrier(), account=ACCOUNT)
        async with far_end.serve(port=port):
            await listener.until(lambda: listener.of(DeviceConnected))


@pytest.mark.parametrize(
    "answer",
    [
        b'HTTP/1.1 401 No\r\nWWW-Authenticate: Digest realm="x"\r\nContent-Length: 0\r\n\r\n',
        b"\xff\xfe\x00",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
    ],
)
async def test_whatever_answers_is_a_reason_and_no_success(running, listener, answer):
    async def speak(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    gate = gate_at(server.sockets[0].getsockname()[1])
    async with server:
        with pytest.raises(LinkError):
            await gate.open(deadline=soon())
        async with running(gate.run(listener)):
            await listener.until(lambda: listener.of(DeviceLost))
    assert not listener.of(GateMoved)


async def test_wrong_password_is_said_and_shown_nowhere(running, listener, caplog, capsys):
    caplog.set_level(logging.DEBUG)
    far_end = HikvisionBarrierFarEnd(barrier=Barrier(), account=ACCOUNT)
    async with far_end.serve() as port:
        gate = gate_at(port, DeviceAccount("gateway", "incorrect-horse"))
        with pytest.raises(DeviceFault, match="password"):
            await gate.open(deadline=soon())
        async with running(gate.run(listener)):
            await listener.until(lambda: listener.of(DeviceLost))
            before = far_end.guard.turned_down
            await asyncio.sleep(0.8)  # eight polls would have come meanwhile
            assert far_end.guard.turned_down == before  # a device locks the account of who keeps trying
    out = capsys.readouterr()
    assert "incorrect-horse" not in listener.of(DeviceLost)[0].reason + caplog.text + out.out + out.err
    assert far_end.obeyed == []


class Silence(asyncio.Event):
    """A barrier's silence, which tells when somebody was met with it."""

    def __init__(self):
        super().__init__()
        self.met = asyncio.Event()

    async def wait(self):
        self.met.set()
        return await super().wait()


async def test_stops_at_once_while_the_barrier_is_silent(running, listener):
    far_end = HikvisionBarrierFarEnd(barrier=Barrier(), account=ACCOUNT)
    far_end.speaking = Silence()
    async with far_end.serve() as port, running(gate_at(port, answer_seconds=600.0).run(listener)):
        await far_end.speaking.met.wait()
