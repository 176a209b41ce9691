"""Written bytes arrive later when the line is back, unless their connection was reset."""

from __future__ import annotations

import asyncio
import random
import socket
import struct

import pytest

from simulation.virtual_site.lane_field import Troubles
from simulation.virtual_site.network import Network, Peer
from simulation.virtual_site.virtual_time import VirtualLoop

NO_LINGER = struct.pack("ii", 1, 0)


class Sink(asyncio.Protocol):
    def __init__(self):
        self.got = []
        self.ended = None

    def data_received(self, data):
        self.got.append((data, asyncio.get_running_loop().time()))

    def connection_lost(self, exc):
        self.ended = repr(exc)


def run(scene):
    """Run a scene with a connection to a sink, and give what the sink got."""
    loop = VirtualLoop()
    troubles, sink, here = Troubles(), Sink(), Sink()

    async def body():
        network = Network(loop=loop)
        loop.network = network
        peer = Peer(protocol=lambda: sink, troubles=troubles, alive=lambda: True, dice=random.Random(1))
        host = network.listen("there", peer)
        transport, _ = await loop.create_connection(lambda: here, host, 502)
        await scene(transport, troubles)

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(body())
    return sink, here


def test_what_was_written_in_a_cut_arrives_when_the_line_is_back():
    async def scene(transport, troubles):
        troubles.cut_until = 5.0
        transport.write(b"close")
        await asyncio.sleep(10)

    sink, _ = run(scene)
    ((data, at),) = sink.got
    assert data == b"close"
    assert 5.0 <= at < 6.0


@pytest.mark.parametrize(("reset", "arrives"), [(True, 0), (False, 1)])
def test_a_closed_connection_keeps_what_was_written_unless_it_is_reset(reset, arrives):
    async def scene(transport, troubles):
        if reset:
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        troubles.cut_until = 5.0
        transport.write(b"close")
        transport.abort()
        await asyncio.sleep(10)

    sink, _ = run(scene)
    assert len(sink.got) == arrives


def test_what_is_not_acknowledged_in_time_is_given_up():
    async def scene(transport, troubles):
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1_000)
        troubles.cut_until = 5.0
        transport.write(b"close")
        await asyncio.sleep(10)

    sink, here = run(scene)
    assert sink.got == []
    assert "TimeoutError" in here.ended


def test_a_far_end_that_started_again_knows_no_connection():
    async def scene(transport, troubles):
        await asyncio.sleep(1)
        troubles.away_until = 5.0
        transport.write(b"close")
        await asyncio.sleep(10)

    sink, here = run(scene)
    assert sink.got == []
    assert "ConnectionResetError" in here.ended
