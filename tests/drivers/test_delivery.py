"""The kernel's view of a connection: the interface it leaves by, and what the peer has acknowledged."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager

import pytest
from waiting import until

from drivers.delivery import Carrier, Delivery, TcpState


@asynccontextmanager
async def connected(host):
    loop = asyncio.get_running_loop()
    try:
        server = await loop.create_server(asyncio.Protocol, host, 0)
    except OSError as error:
        pytest.skip(f"this machine has no {host}: {error}")
    port = server.sockets[0].getsockname()[1]
    transport, _ = await loop.create_connection(asyncio.Protocol, host, port)
    try:
        yield transport
    finally:
        transport.abort()
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1", "::1"])
async def test_the_interface_is_found_by_the_route_whatever_the_address(host):
    async with connected(host) as transport:
        carrier = Carrier.under(transport.get_extra_info("socket"))
        assert carrier.interface == "lo"
        assert not carrier.is_lost()


async def test_a_packet_is_sent_again_no_sooner_than_the_kernel_does():
    async with connected("127.0.0.1") as transport:
        transport.write(b"close")
        await until(lambda: Delivery(transport).unacknowledged == 0)
        state = TcpState.of(transport.get_extra_info("socket"))
        assert state.retransmissions == 0
        assert 0.19 < state.sent_again_after < 0.5


async def test_an_interface_that_is_gone_has_no_carrier():
    assert Carrier("no-such-cable").is_lost()
    assert not Carrier("").is_lost()


async def test_a_line_that_is_no_connection_needs_no_watch():
    near, far = socket.socketpair()
    transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=near)
    with far:
        delivery = Delivery(transport)
        assert delivery.why_not_write == ""
        assert delivery.unacknowledged == 0
        transport.abort()
        await asyncio.sleep(0)
