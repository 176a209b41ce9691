"""Lines over real sockets and pseudo-terminals."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import asynccontextmanager

import pytest
from descriptors import open_files
from free_ports import free_port
from waiting import until

from drivers.backoff import Reconnects
from drivers.contract import LinkError
from drivers.link import LinkSpec, open_link
from simulation.far_ends.pseudo_terminal import PseudoTerminal


@asynccontextmanager
async def tcp_peer():
    """A port that hands its connections over."""
    callers: asyncio.Queue = asyncio.Queue()
    server = await asyncio.start_server(lambda r, w: callers.put_nowait((r, w)), "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], callers
    finally:
        server.close()
        while not callers.empty():
            callers.get_nowait()[1].close()
        await server.wait_closed()


@pytest.fixture
def port(tmp_path):
    terminal = PseudoTerminal(path=tmp_path / "port")
    terminal.plug_in()
    yield terminal
    terminal.unplug()


async def test_tcp_carries_bytes_both_ways_at_once(monkeypatch):
    async with tcp_peer() as (number, callers):
        connect, transports = asyncio.get_running_loop().create_connection, []

        async def noted(*asked):
            made = await connect(*asked)
            transports.append(made[0])
            return made

        monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", noted)
        connection = await open_link(LinkSpec(f"tcp://127.0.0.1:{number}"))
        reader, writer = await callers.get()
        line = transports[0].get_extra_info("socket")
        assert line.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert line.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        connection.write(b"ask")
        assert await reader.readexactly(3) == b"ask"
        before = time.monotonic()
        writer.write(b"answer")
        arrival = await connection.read()
        assert arrival.data == b"answer"
        assert before <= arrival.at <= time.monotonic()
        await connection.close()
        writer.close()


async def test_tcp_hang_up_comes_after_the_last_bytes():
    async with tcp_peer() as (number, callers):
        changes = []
        connection = await open_link(LinkSpec(f"tcp://127.0.0.1:{number}"), on_change=lambda: changes.append(1))
        _, writer = await callers.get()
        writer.write(b"last")
        writer.close()
        assert (await connection.read()).data == b"last"
        with pytest.raises(LinkError, match="hung up"):
            await connection.read()
        with pytest.raises(LinkError):
            connection.write(b"more")
        assert connection.lost
        assert changes
        await connection.close()


async def test_refused_and_nonsensical_lines_are_link_errors(tmp_path):
    for url in (f"tcp://127.0.0.1:{free_port()}", "tcp://nowhere", "serial:relative", f"serial:{tmp_path}/none"):
        with pytest.raises(LinkError, match=url) as refused:
            await open_link(LinkSpec(url))
        assert "rrno" not in str(refused.value)
        assert "(" not in str(refused.value)


async def test_a_refused_connection_is_told_in_words():
    with pytest.raises(LinkError, match=r"does not open: Connection refused$"):
        await open_link(LinkSpec(f"tcp://127.0.0.1:{free_port()}"))


async def test_a_port_that_is_not_there_says_why_that_may_be(tmp_path):
    with pytest.raises(LinkError, match=r"does not open: there is no such port: its adapter is unplugged"):
        await open_link(LinkSpec(f"serial:{tmp_path}/none"))


async def test_a_pseudo_terminal_without_parity_is_a_link_error_not_a_crash(port):
    with pytest.raises(LinkError, match="does not open"):
        await open_link(LinkSpec(f"serial:{port.path}", parity="even"))


async def test_an_opening_that_takes_too_long_is_given_up():
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        spec = LinkSpec(f"tcp://127.0.0.1:{deaf.getsockname()[1]}")
        opened, refusal = [], None
        while refusal is None and len(opened) < 8:
            try:
                opened.append(await open_link(spec, timeout=0.2))
            except LinkError as error:
                refusal = str(error)
        for connection in opened:
            await connection.close()
        assert "did not open within 0.2 s" in refusal


async def test_serial_carries_bytes_and_one_owner(port):
    connection = await open_link(LinkSpec(f"serial:{port.path}"))
    port.write(b"\x00\xffcard\r\n")
    assert (await connection.read()).data == b"\x00\xffcard\r\n"
    with pytest.raises(LinkError, match="does not open"):
        await open_link(LinkSpec(f"serial:{port.path}"))
    await connection.close()


async def test_a_serial_port_comes_back_under_its_own_name(port):
    connection = await open_link(LinkSpec(f"serial:{port.path}"))
    device = port.device
    port.unplug()
    with pytest.raises(LinkError, match="hung up"):
        await connection.read()
    await connection.close()
    assert device not in open_files()
    port.plug_in()
    again = await open_link(LinkSpec(f"serial:{port.path}"))
    port.write(b"x")
    assert (await again.read()).data == b"x"
    await again.close()


async def test_draining_ends_with_quiet_or_in_time(port):
    connection = await open_link(LinkSpec(f"serial:{port.path}"))
    port.write(b"stale")
    await until(lambda: connection.has_arrivals)
    dropped = await connection.drain_to_quiet(quiet=0.02, longest=1.0)
    assert dropped == b"stale"

    async def babble():
        while True:
            port.write(b"x")
            await asyncio.sleep(0.002)  # the pace of the babbler

    async with asyncio.TaskGroup() as group:
        babbling = group.create_task(babble())
        started = time.monotonic()
        await connection.drain_to_quiet(quiet=60.0, longest=0.3)  # so long is no babbler kept from the processor
        assert time.monotonic() - started > 0.25
        babbling.cancel()
    await connection.close()


async def test_a_line_that_nobody_reads_is_dropped_not_kept():
    async with tcp_peer() as (number, callers):
        connection = await open_link(LinkSpec(f"tcp://127.0.0.1:{number}"))
        _, writer = await callers.get()
        writer.write(bytes(200_000))
        await until(lambda: connection.lost is not None)
        assert "more than anyone reads" in connection.lost
        await connection.close()
        writer.close()


def test_waits_double_up_to_the_longest():
    reconnects, waits = Reconnects(longest=5.0, steady=2.0), []
    for _ in range(1, 40):
        reconnects.failed()
        waits.append(reconnects.wait())
    assert 0.1 <= waits[0] <= 0.2
    assert all(0.05 < wait <= 5.0 for wait in waits)
    assert waits[-1] >= 2.5
    reconnects.failed(lasted=2.1)
    assert reconnects.wait() <= 0.2, "a line that lasted was good"


def test_the_gap_between_frames_follows_the_speed():
    assert LinkSpec("serial:/dev/ttyS0", baud=9600).frame_gap == pytest.approx(0.00401, abs=1e-5)
    assert LinkSpec("serial:/dev/ttyS0", baud=115_200).frame_gap == 0.00175
